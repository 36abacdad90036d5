"""The record of a run: calls, requests, answer and usage, and expectations on them that hold for any framework."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import zip_longest
from types import EllipsisType
from typing import Any, Final, Literal

from statek_sim.errors import BadInput
from statek_sim.values import Message

Order = Literal["exact", "subsequence", "any"]
"""`exact`: these calls and no others. `subsequence`: in this order, others between. `any`: each once, others too."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool.

    `arguments` by name; a text where they are no object of JSON, or, in a trace, no values that can be read back.
    `result` is what the model was told of it, None as long as it was told nothing. `error` is `Type: message` where
    the tool raised and that was seen: a server sees results only. `turn` counts the answers of the model from 1.
    """

    name: str
    arguments: Mapping[str, Any] | str
    result: str | None
    error: str | None
    turn: int

    def __str__(self) -> str:
        """Return the call as Python writes it."""
        if isinstance(self.arguments, str):
            return f"{self.name}({self.arguments})"
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


@dataclass(frozen=True, slots=True)
class Request:
    """One request for an answer of the model.

    `turn` is that of the answer, 0 where there was none; then `error` says why: a status, a fault, a mismatch. Tokens
    are those that the script reports, or what the model's tokenizer counts; 0 where nothing was answered.
    """

    turn: int
    model: str
    messages: tuple[Message, ...]
    error: str | None
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of the answered requests, and how many answers there were."""

    prompt: int
    completion: int
    turns: int

    @property
    def tokens(self) -> int:
        """Tokens of prompts and completions together."""
        return self.prompt + self.completion

    def cost(self, prices: tuple[float, float]) -> float:
        """Return the cost, with the prices of a million prompt tokens and a million completion tokens."""
        return (self.prompt * prices[0] + self.completion * prices[1]) / 1_000_000


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """A call that is expected, made by `call`; `open` when it may have more arguments than `arguments`."""

    name: str
    arguments: Mapping[str, Any]
    open: bool

    def fits(self, made: Call) -> bool:
        """Return whether a call is this one."""
        if not fnmatchcase(made.name, self.name):
            return False
        given = made.arguments
        if isinstance(given, str):
            return self.open and not self.arguments
        if not self.open and given.keys() != self.arguments.keys():
            return False
        return all(
            name in given and _value_fits(wanted, given[name]) for name, wanted in self.arguments.items()
        )

    def __str__(self) -> str:
        """Return the call as a test writes it."""
        shown = ["..."] if self.open else []
        shown += [f"{name}={_shown(value)}" for name, value in self.arguments.items()]
        return f"{self.name}({', '.join(shown)})"


def call(name: str, more: EllipsisType | None = None, /, **arguments: Any) -> ExpectedCall:
    """Return a call to expect. `name` may be a pattern, `search_*`; with `...` other arguments may be there too.

    An argument is a value that must be equal (`unittest.mock.ANY` and `pytest.approx` are), a compiled regular
    expression that is found in the text, a `range` that has the number, or a function that returns whether it fits.
    """
    return ExpectedCall(name, arguments, more is not None)


def _value_fits(wanted: Any, given: Any) -> bool:
    if isinstance(wanted, re.Pattern):
        return isinstance(given, str) and wanted.search(given) is not None
    if isinstance(wanted, range):
        return given in wanted
    if isinstance(wanted, dict) and isinstance(given, dict):
        return wanted.keys() == given.keys() and all(
            _value_fits(part, given[name]) for name, part in wanted.items()
        )
    if isinstance(wanted, list) and isinstance(given, list):
        return len(wanted) == len(given) and all(map(_value_fits, wanted, given))
    if wanted == given:
        return True
    return callable(wanted) and bool(wanted(given))


def _shown(wanted: Any) -> str:
    if isinstance(wanted, re.Pattern):
        return f"/{wanted.pattern}/"
    return getattr(wanted, "__name__", None) or repr(wanted)


NUMBERS: Final = r"\d+(?:[.,]\d+)*"
"""Numbers as people write them."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """What an agent did: the record of a run. `trajectory` makes it.

    `calls` are those that were made, `blocked` those that the harness refused (never known from a server), `answer` is
    the last text, None where the last answer was none. `stop` says why it ended: the harness's reason (`final`,
    `max_turns`), or what came last: `answer`, `calls` without results, `error`; None without requests.

    The expectations raise AssertionError, with what was wanted beside what was found.
    """

    calls: tuple[Call, ...]
    requests: tuple[Request, ...] = ()
    answer: str | None = None
    stop: str | None = None
    blocked: tuple[Call, ...] = ()

    @property
    def usage(self) -> Usage:
        """Tokens and turns."""
        answered = [request for request in self.requests if request.error is None]
        return Usage(
            sum(request.prompt_tokens for request in answered),
            sum(request.completion_tokens for request in answered),
            len(answered),
        )

    def __repr__(self) -> str:
        """Return the run in one line, for assertions that fail."""
        usage = self.usage
        return (
            f"<Trajectory {', '.join(map(str, self.calls)) or 'without calls'}; answer {self.answer!r}; "
            f"stop {self.stop!r}; {usage.turns} turns, {usage.tokens} tokens>"
        )

    def expect_calls(self, *wanted: ExpectedCall, order: Order = "exact") -> None:
        """Raise unless the wanted calls were made, in an `Order`."""
        __tracebackhide__ = True
        if order not in ("exact", "subsequence", "any"):
            raise BadInput(f"order={order!r}: expected 'exact', 'subsequence' or 'any'")
        missing = _missing(wanted, self.calls, order)
        if missing is not None:
            raise AssertionError(f"{missing}\n{_side_by_side(wanted, self.calls)}")

    def never_called(self, *patterns: str) -> None:
        """Raise when a tool was called whose name fits one of the patterns, `delete_*`."""
        __tracebackhide__ = True
        for number, made in enumerate(self.calls, 1):
            for pattern in patterns:
                if fnmatchcase(made.name, pattern):
                    raise AssertionError(f"{pattern} must never be called, but call {number} is {made}")

    def at_most(self, pattern: str, times: int) -> None:
        """Raise when tools whose names fit the pattern were called more than so many times."""
        __tracebackhide__ = True
        made = [one for one in self.calls if fnmatchcase(one.name, pattern)]
        if len(made) > times:
            listed = "\n".join(f"  {one}" for one in made)
            raise AssertionError(
                f"{pattern} was called {len(made)} times, expected at most {times}:\n{listed}"
            )

    def within(
        self,
        *,
        tokens: int | None = None,
        turns: int | None = None,
        cost: float | None = None,
        prices: tuple[float, float] | None = None,
    ) -> None:
        """Raise when the run took more than a budget; a cost needs the `prices` that `Usage.cost` takes."""
        __tracebackhide__ = True
        usage = self.usage
        if cost is not None and prices is None:
            raise BadInput("a budget of cost needs prices=(prompt, completion), per million tokens")
        spent = (
            ("tokens", usage.tokens, tokens),
            ("turns", usage.turns, turns),
            ("of cost", usage.cost(prices) if prices else 0, cost),
        )
        over = [
            f"{used:g} {what}, expected at most {most:g}"
            for what, used, most in spent
            if most is not None and used > most
        ]
        if over:
            listed = "\n".join(
                f"  turn {request.turn}: {request.prompt_tokens} + {request.completion_tokens} tokens"
                for request in self.requests
                if request.error is None
            )
            raise AssertionError(f"the run took {'; '.join(over)}:\n{listed}")

    def answer_quotes_results(self, pattern: str = NUMBERS) -> None:
        """Raise unless each match of `pattern` in the answer, every number of it, is in a tool's result too.

        It is compared as text: 9 is in 19, and 9.0 is not in 9.
        """
        __tracebackhide__ = True
        results = [made.result or "" for made in self.calls]
        for found in re.finditer(pattern, self.answer or ""):
            if not any(found[0] in result for result in results):
                listed = "\n".join(f"  {made} -> {made.result!r}" for made in self.calls)
                raise AssertionError(
                    f"the answer says {found[0]!r}, which no tool returned: {self.answer!r}\n{listed or '  (no calls)'}"
                )


def _missing(wanted: Sequence[ExpectedCall], made: Sequence[Call], order: Order) -> str | None:
    """Return what is not as wanted, None when all is."""
    if order == "exact":
        for number, (one, other) in enumerate(zip_longest(wanted, made), 1):
            if one is None:
                return f"call {number} is one too many: {other}"
            if other is None or not one.fits(other):
                return f"call {number}: expected {one}, got {other or 'no more calls'}"
        return None
    rest = list(made)
    for one in wanted:
        place = next((place for place, other in enumerate(rest) if one.fits(other)), None)
        if place is None:
            behind = "" if order == "any" else " behind the calls that are expected before it"
            return f"expected {one}{behind}: it was not called"
        rest = rest[place + 1 :] if order == "subsequence" else rest[:place] + rest[place + 1 :]
    return None


def _side_by_side(wanted: Sequence[ExpectedCall], made: Sequence[Call]) -> str:
    left = ["expected", *map(str, wanted)] if wanted else ["expected", "(no calls)"]
    right = ["called", *map(str, made)] if made else ["called", "(no calls)"]
    width = max(map(len, left))
    return "\n".join(
        f"  {one:{width}}  {other}".rstrip() for one, other in zip_longest(left, right, fillvalue="")
    )
