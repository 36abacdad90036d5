"""A run's record (calls, requests, answer and usage), with assertions that work for any framework."""

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
"""`exact`: these calls and no others. `subsequence`: in this order, with others in between. `any`: each once, in any
order, with others.
"""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call.

    `arguments` are keyed by name; they are a string if they are not a JSON object, or if they cannot be parsed from a
    trace. `result` is the result sent to the model, or None if there was none. `error` is `Type: message` if the tool
    raised an exception and it is known; a server never sees it. `turn` is the number of the model's answer, from 1.
    """

    name: str
    arguments: Mapping[str, Any] | str
    result: str | None
    error: str | None
    turn: int

    def __str__(self) -> str:
        """Return the call in Python notation."""
        if isinstance(self.arguments, str):
            return f"{self.name}({self.arguments})"
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the model.

    `turn` is the number of the answer, or 0 if there was none; `error` is then the reason: a status, a fault or a
    mismatch. Tokens are scripted or counted with the model's tokenizer; they are 0 if there was no answer.
    """

    turn: int
    model: str
    messages: tuple[Message, ...]
    error: str | None
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens used by answered requests, and the number of answers."""

    prompt: int
    completion: int
    turns: int

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt + self.completion

    def cost(self, prices: tuple[float, float]) -> float:
        """Return the cost, given the prices per million prompt tokens and per million completion tokens."""
        return (self.prompt * prices[0] + self.completion * prices[1]) / 1_000_000


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """An expected call, created by `call`. `open`: the actual call may have more arguments."""

    name: str
    arguments: Mapping[str, Any]
    open: bool

    def fits(self, made: Call) -> bool:
        """Return whether an actual call matches this one."""
        if not fnmatchcase(made.name, self.name):
            return False
        given = made.arguments
        if isinstance(given, str):
            return self.open and not self.arguments
        if not self.open and given.keys() != self.arguments.keys():
            return False
        return all(
            name in given and value_fits(wanted, given[name]) for name, wanted in self.arguments.items()
        )

    def __str__(self) -> str:
        """Return the call as a test would write it."""
        shown = ["..."] if self.open else []
        shown += [f"{name}={_shown(value)}" for name, value in self.arguments.items()]
        return f"{self.name}({', '.join(shown)})"


def call(name: str, more: EllipsisType | None = None, /, **arguments: Any) -> ExpectedCall:
    """Return an expected call. `name` may be a pattern like `search_*`; with `...`, other arguments are allowed.

    An argument is expected to equal the given value (which may be `unittest.mock.ANY` or `pytest.approx`), to match a
    compiled regular expression, to be in a `range`, or to be accepted by a function.
    """
    if not isinstance(more, EllipsisType | None):
        raise BadInput(f"call {name!r} has {more!r}; pass arguments by keyword: call({name!r}, name=value)")
    return ExpectedCall(name, arguments, more is not None)


def value_fits(wanted: Any, given: Any) -> bool:
    """Return whether an argument equals the expected value, or meets the condition given in its place."""
    if isinstance(wanted, re.Pattern):
        return isinstance(given, str) and wanted.search(given) is not None
    if isinstance(wanted, range):
        return given in wanted
    if isinstance(wanted, dict) and isinstance(given, dict):
        return wanted.keys() == given.keys() and all(
            value_fits(part, given[name]) for name, part in wanted.items()
        )
    if isinstance(wanted, list) and isinstance(given, list):
        return len(wanted) == len(given) and all(map(value_fits, wanted, given))
    if wanted == given:
        return True
    return callable(wanted) and bool(wanted(given))


def _shown(wanted: Any) -> str:
    if isinstance(wanted, re.Pattern):
        return f"/{wanted.pattern}/"
    return getattr(wanted, "__name__", None) or repr(wanted)


NUMBERS: Final = r"\d+(?:[.,]\d+)*"
"""A regular expression that matches numbers as people write them."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The record of an agent's run, created by `trajectory`.

    `calls` are the calls that were made, and `blocked` those that the harness rejected, which a server does not see.
    `answer` is the last text, or None if the last answer had no text. `stop` is why the run ended: the harness's reason
    (`final`, `max_turns`), or the last event: `answer`, `calls` without results, or `error`. It is None if there were
    no requests.

    The expectations raise an AssertionError that shows expected and actual calls.
    """

    calls: tuple[Call, ...]
    requests: tuple[Request, ...] = ()
    answer: str | None = None
    stop: str | None = None
    blocked: tuple[Call, ...] = ()

    @property
    def usage(self) -> Usage:
        """The tokens used by answered requests, and the number of answers."""
        answered = [request for request in self.requests if request.error is None]
        return Usage(
            sum(request.prompt_tokens for request in answered),
            sum(request.completion_tokens for request in answered),
            len(answered),
        )

    def __repr__(self) -> str:
        """Return the run on one line, as shown in failed assertions."""
        usage = self.usage
        return (
            f"<Trajectory {', '.join(map(str, self.calls)) or 'without calls'}; answer {self.answer!r}; "
            f"stop {self.stop!r}; turns {usage.turns}, tokens {usage.tokens:,}>"
        )

    def expect_calls(self, *wanted: ExpectedCall, order: Order = "exact") -> None:
        """Raise an AssertionError unless the expected calls were made in the given `Order`."""
        __tracebackhide__ = True
        if order not in ("exact", "subsequence", "any"):
            raise BadInput(f"order={order!r}: expected 'exact', 'subsequence' or 'any'")
        missing = _missing(wanted, self.calls, order)
        if missing is not None:
            raise AssertionError(f"{missing}\n{_side_by_side(wanted, self.calls)}")

    def never_called(self, *patterns: str) -> None:
        """Raise an AssertionError if a tool was called whose name matches one of the patterns, such as `delete_*`."""
        __tracebackhide__ = True
        for number, made in enumerate(self.calls, 1):
            for pattern in patterns:
                if fnmatchcase(made.name, pattern):
                    raise AssertionError(f"{pattern} must never be called, but call {number} is {made}")

    def at_most(self, pattern: str, times: int) -> None:
        """Raise an AssertionError if tools whose names match the pattern were called more than `times` times."""
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
        """Raise an AssertionError if the run exceeded a budget; a `cost` in US dollars requires `prices`."""
        __tracebackhide__ = True
        usage = self.usage
        if cost is not None and prices is None:
            raise BadInput("a cost budget requires prices=(prompt, completion), per million tokens")
        spent = (
            ("tokens", usage.tokens, tokens),
            ("turns", usage.turns, turns),
        )
        over = [
            f"{used:,} {what}, expected at most {most:,}"
            for what, used, most in spent
            if most is not None and used > most
        ]
        paid = usage.cost(prices) if prices else 0.0
        if cost is not None and paid > cost:
            over.append(f"a cost of {paid:g}, expected at most {cost:g}")
        if over:
            listed = "\n".join(
                f"  turn {request.turn}: {request.prompt_tokens} + {request.completion_tokens} tokens"
                for request in self.requests
                if request.error is None
            )
            raise AssertionError(f"the run took {'; '.join(over)}:\n{listed}")

    def answer_quotes_results(self, pattern: str = NUMBERS) -> None:
        """Raise an AssertionError if the answer contains a match for `pattern` (default: numbers) that no result has.

        Numbers are compared as text: 9 is in 19, but 9.0 is not in 9.
        """
        __tracebackhide__ = True
        results = [made.result or "" for made in self.calls]
        for found in re.finditer(pattern, self.answer or ""):
            if not any(found[0] in result for result in results):
                listed = "\n".join(f"  {made} -> {made.result!r}" for made in self.calls)
                raise AssertionError(
                    f"the answer contains {found[0]!r}, which no tool returned: {self.answer!r}\n"
                    f"{listed or '  (no calls)'}"
                )


def _missing(wanted: Sequence[ExpectedCall], made: Sequence[Call], order: Order) -> str | None:
    """Return how the actual calls differ from the expected ones, or None if they do not."""
    if order == "exact":
        for number, (one, other) in enumerate(zip_longest(wanted, made), 1):
            if one is None:
                return f"call {number} is one too many: {other}"
            if other is None or not one.fits(other):
                return f"call {number}{_difference(one, other)}"
        return None
    rest = list(made)
    for number, one in enumerate(wanted, 1):
        place = next((place for place, other in enumerate(rest) if one.fits(other)), None)
        if place is None:
            after = "" if order == "any" or number == 1 else " after the preceding expected calls"
            return f"expected {one}{after}: it was not called"
        rest = rest[place + 1 :] if order == "subsequence" else rest[:place] + rest[place + 1 :]
    return None


def _difference(one: ExpectedCall, other: Call | None) -> str:
    """Return how a call differs from the expected one; if the tool is the same, only the arguments that differ."""
    if other is None or isinstance(other.arguments, str) or not fnmatchcase(other.name, one.name):
        return f": expected {one}, got {other or 'no more calls'}"
    wanted, given = one.arguments, other.arguments
    names = [name for name in wanted if name not in given or not value_fits(wanted[name], given[name])] + [
        name for name in given if name not in wanted and not one.open
    ]
    expected = ", ".join(
        f"{name}={_shown(wanted[name])}" if name in wanted else f"no {name}" for name in names
    )
    got = ", ".join(f"{name}={given[name]!r}" if name in given else f"no {name}" for name in names)
    return f" ({other.name}): expected {expected}, got {got}"


def _side_by_side(wanted: Sequence[ExpectedCall], made: Sequence[Call]) -> str:
    left = ["expected", *map(str, wanted)] if wanted else ["expected", "(no calls)"]
    right = ["called", *map(str, made)] if made else ["called", "(no calls)"]
    width = max(map(len, left))
    return "\n".join(
        f"  {one:{width}}  {other}".rstrip() for one, other in zip_longest(left, right, fillvalue="")
    )
