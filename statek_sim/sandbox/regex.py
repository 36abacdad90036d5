"""`re` for model-written code: the same functions, paid for."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.lazy import LazyIterator
from statek_sim.sandbox.regex_cost import pay_for_search
from statek_sim.sandbox.regex_steps import folded_characters, parsed

# Patterns and texts are whatever model-written code passes.
Value = Any
Args = tuple[Value, ...]

_COMPILING: Final = 50
_MAX_PATTERNS: Final = 256
_MUCH_TEXT: Final = 65_536
_FOUND_BYTES: Final = 16
_FOUND_SHIFT: Final = 4
_ATTRIBUTES: Final = ("flags", "groupindex", "groups", "pattern")


class PaidPattern:
    """A compiled pattern whose searches are paid for. Shows itself as `re.Pattern`."""

    __slots__ = ("_statek_budget", "_statek_pattern")

    def __init__(self, budget: ExecutionBudget, pattern: re.Pattern[Any]) -> None:
        self._statek_budget = budget
        self._statek_pattern = pattern

    def __getattr__(self, name: str) -> Value:
        if name in _ATTRIBUTES:
            return getattr(self._statek_pattern, name)
        raise AttributeError(f"'re.Pattern' object has no attribute '{name}'")

    def __repr__(self) -> str:
        return repr(self._statek_pattern)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PaidPattern) and self._statek_pattern == other._statek_pattern

    def __hash__(self) -> int:
        return hash(self._statek_pattern)

    def match(self, string: Value, *bounds: int) -> Value:
        """As `re.Pattern.match`."""
        self._pay(string, bounds, anchored=True)
        return self._statek_pattern.match(string, *bounds)

    def fullmatch(self, string: Value, *bounds: int) -> Value:
        """As `re.Pattern.fullmatch`."""
        self._pay(string, bounds, anchored=True, whole=True)
        return self._statek_pattern.fullmatch(string, *bounds)

    def search(self, string: Value, *bounds: int) -> Value:
        """As `re.Pattern.search`."""
        self._pay(string, bounds)
        return self._statek_pattern.search(string, *bounds)

    def findall(self, string: Value, *bounds: int) -> list[Value]:
        """As `re.Pattern.findall`."""
        self._pay(string, bounds, every=True)
        return self._statek_paid(self._statek_pattern.findall(string, *bounds))

    def finditer(self, string: Value, *bounds: int) -> Iterator[Value]:
        """As `re.Pattern.finditer`."""
        self._pay(string, bounds, every=True)
        return LazyIterator(self._statek_budget, self._statek_pattern.finditer(string, *bounds))

    def split(self, string: Value, maxsplit: int = 0) -> list[Value]:
        """As `re.Pattern.split`."""
        self._pay(string, every=True)
        return self._statek_paid(self._statek_pattern.split(string, maxsplit))

    def sub(self, repl: Value, string: Value, count: int = 0) -> Value:
        """As `re.Pattern.sub`."""
        return self.subn(repl, string, count)[0]

    def subn(self, repl: Value, string: Value, count: int = 0) -> Value:
        """As `re.Pattern.subn`."""
        self._pay(string, every=True)
        text, found = self._statek_pattern.subn(self._paid_replacement(repl, string), string, count)
        self._statek_budget.work(found >> _FOUND_SHIFT)
        return text, found

    def _statek_paid(self, found: list[Value]) -> list[Value]:
        """Pay for what was found; each piece of text is an object of its own."""
        self._statek_budget.work(len(found) >> _FOUND_SHIFT)
        self._statek_budget.allocate(_FOUND_BYTES * len(found))
        return found

    def _pay(
        self,
        string: Value,
        bounds: tuple[Value, ...] = (),
        *,
        anchored: bool = False,
        every: bool = False,
        whole: bool = False,
    ) -> None:
        if bounds and isinstance(string, str | bytes) and all(isinstance(each, int) for each in bounds):
            # Where the search begins and ends; what is before the beginning only anchors could see.
            start, end = max(bounds[0], 0), max(bounds[1], 0) if len(bounds) > 1 else None
            string = string[start:end]
        pay_for_search(
            self._statek_budget, self._statek_pattern, string, anchored=anchored, every=every, whole=whole
        )

    def _paid_replacement(self, repl: Value, string: Value) -> Value:
        """Charge the text that replacing makes."""
        if callable(repl):
            return self._charging(repl)
        if isinstance(repl, str | bytes) and isinstance(string, str | bytes):
            references = str(repl).count("\\")
            found = len(string) + 1
            if found * len(repl) > _MUCH_TEXT:
                found = sum(1 for _ in self._statek_pattern.finditer(string))
                self._statek_budget.work(found >> _FOUND_SHIFT)
            self._statek_budget.allocate(found * len(repl) + references * len(string))
        return repl

    def _charging(self, repl: Callable[[Value], Value]) -> Callable[[Value], Value]:
        def replacement(match: Value) -> Value:
            self._statek_budget.tick()
            text = repl(match)
            if isinstance(text, str | bytes):
                self._statek_budget.allocate(len(text))
            return text

        return replacement


PaidPattern.__name__ = "Pattern"
PaidPattern.__qualname__ = "Pattern"
PaidPattern.__module__ = "re"


def paying_plain(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """Pay for a search with a pattern of Python's own, such as `match.re`, as if it looked for every match."""
    if isinstance(owner, re.Pattern):
        for text in args:
            pay_for_search(budget, owner, text, anchored=False, every=True)
        if len(args) > 1 and isinstance(args[0], str | bytes) and isinstance(args[1], str | bytes):
            found = len(args[1]) + 1
            budget.allocate(found * len(args[0]) + str(args[0]).count("\\") * len(args[1]))
    return args


class _PatternCache:
    """Compiles a pattern once per step, so that what ran in earlier steps does not change what this one costs."""

    def __init__(self, budget: ExecutionBudget) -> None:
        self._budget = budget
        self._step = budget.step
        self._patterns: dict[tuple[Value, int], PaidPattern] = {}

    def compiled(self, pattern: Value, flags: int = 0) -> PaidPattern:
        """As `re.compile`."""
        if not isinstance(pattern, str | bytes):
            # `re` itself says what is wrong with it.
            return PaidPattern(self._budget, re.compile(getattr(pattern, "_statek_pattern", pattern), flags))
        if self._step != self._budget.step or len(self._patterns) >= _MAX_PATTERNS:
            self._step = self._budget.step
            self._patterns.clear()
        found = self._patterns.get((pattern, flags))
        if found is None:
            self._budget.work(_COMPILING + 4 * len(pattern))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if "-" in str(pattern) and (flags & re.IGNORECASE or "(?" in str(pattern)):
                    tree = parsed(pattern, flags)
                    self._budget.work(folded_characters(tree, tree.state.flags) >> 1)
                found = PaidPattern(self._budget, re.compile(pattern, flags))
            self._patterns[pattern, flags] = found
        return found


def paid_functions(
    budget: ExecutionBudget, guard: Callable[[Value], Value]
) -> dict[str, Callable[..., Value]]:
    """Return the functions of `re` that restricted code may use; `guard` makes functions that C calls pay."""
    compiled = _PatternCache(budget).compiled

    def escape(pattern: Value) -> Value:
        budget.allocate(2 * len(pattern) if isinstance(pattern, str | bytes) else 0)
        return re.escape(pattern)

    return {
        "compile": compiled,
        "search": lambda pattern, string, flags=0: compiled(pattern, flags).search(string),
        "match": lambda pattern, string, flags=0: compiled(pattern, flags).match(string),
        "fullmatch": lambda pattern, string, flags=0: compiled(pattern, flags).fullmatch(string),
        "findall": lambda pattern, string, flags=0: compiled(pattern, flags).findall(string),
        "finditer": lambda pattern, string, flags=0: compiled(pattern, flags).finditer(string),
        "split": lambda pattern, string, maxsplit=0, flags=0: compiled(pattern, flags).split(
            string, maxsplit
        ),
        "sub": lambda pattern, repl, string, count=0, flags=0: compiled(pattern, flags).sub(
            guard(repl), string, count
        ),
        "subn": lambda pattern, repl, string, count=0, flags=0: compiled(pattern, flags).subn(
            guard(repl), string, count
        ),
        "escape": escape,
    }
