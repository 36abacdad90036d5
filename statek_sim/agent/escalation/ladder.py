"""A ladder as data: its levels, how often each is tried, what an attempt is told, what an answer is worth."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final, Literal, get_args

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput

Carry = Literal["nothing", "reason", "best"]
"""What an attempt is told of those before: nothing, why the last one failed, or that and the best answer so far."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a check thinks of an answer; `score` says which of several bad ones is the best."""

    good: bool
    reason: str = ""
    score: float = 0.0


QualityCheck = Callable[[str, str], Judgement | bool]
"""Judges an answer, given the task and the answer: a plain function."""

Strategy = Callable[[str], str]
"""Makes another task of a task: with examples, in parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per million tokens of a level's model, prompts and completions alike."""

    per_million: Decimal

    def __post_init__(self) -> None:
        if not _is_amount(self.per_million) or self.per_million < 0:
            raise BadInput(
                f"price is {self.per_million} USD per million tokens, expected a Decimal of 0 or more"
            )

    def cost(self, tokens: int) -> Decimal:
        """Return what so many tokens cost."""
        return tokens * self.per_million / 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level: a model, or a person where `model` is None.

    `model` is tried `attempts` times; `strategy` changes the task. A person is asked `question`, `{task}` and
    `{attempts}` filled in, and has `seconds` to answer (None: as long as it takes); the answer is the task's.
    """

    name: str
    model: str | None = None
    attempts: int = 1
    strategy: Strategy | None = None
    carry: Carry = "nothing"
    price: Price | None = None
    question: str = "{task}"
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.carry not in get_args(Carry):
            raise BadInput(
                f"level {self.name!r}: carry is {self.carry!r}, expected {', '.join(get_args(Carry))}"
                f"{suggestion(str(self.carry), get_args(Carry))}"
            )
        if self.seconds is not None and not (_is_number(self.seconds) and self.seconds > 0):
            raise BadInput(
                f"level {self.name!r}: seconds is {_shown(self.seconds)}, expected more than 0, or None for no deadline"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """The levels from the first to the last, and what holds for all of them.

    `backoff` are the seconds before the second attempt after a cause that time may cure; they double up to `longest`.
    """

    levels: tuple[Level, ...]
    checks: Sequence[QualityCheck] = ()
    backoff: float = 3.0
    longest: float = 60.0

    def __post_init__(self) -> None:
        names = [level.name for level in self.levels]
        if not names:
            raise BadInput("a ladder has at least one level")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise BadInput(f"level {twice!r} is there twice; expected levels to have names of their own")
        for level in self.levels:
            # A file may say 1.5, which is never reached by counting.
            if not _is_number(level.attempts) or level.attempts < 1 or level.attempts != int(level.attempts):
                raise BadInput(
                    f"level {level.name!r}: attempts is {_shown(level.attempts)}, expected 1 or more"
                )
        people = [level.name for level in self.levels[:-1] if level.model is None]
        if people:
            raise BadInput(f"level {people[0]!r}: a person is the last level")
        for name, seconds in (("backoff", self.backoff), ("longest", self.longest)):
            if not _is_number(seconds) and seconds != math.inf:
                raise BadInput(f"{name} is {_shown(seconds)} s, expected a number")
        if not 0 <= self.backoff <= self.longest:
            raise BadInput(f"backoff is {self.backoff:g} s, expected 0 to longest, {self.longest:g} s")

    def judged(self, task: str, answer: str) -> Judgement:
        """Return the first bad judgement of an answer, or a good one; the score is the least of all.

        `BadInput` for a check that returns no judgement, like a coroutine function.
        """
        return _together(_judgement(check, check(task, answer)) for check in self.checks)


def _is_amount(value: object) -> bool:
    return isinstance(value, Decimal | int) and not isinstance(value, bool) and Decimal(value).is_finite()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _shown(value: object) -> str:
    """Return a value as a message has it: a number as it is written in a file."""
    return f"{value:g}" if isinstance(value, float) else repr(value)


def _together(judgements: Iterable[Judgement]) -> Judgement:
    found = list(judgements)
    score = min([judgement.score for judgement in found], default=1.0)
    bad = next((judgement for judgement in found if not judgement.good), None)
    return Judgement(True, score=score) if bad is None else Judgement(False, bad.reason, score)


def _judgement(check: QualityCheck, judgement: object) -> Judgement:
    if isinstance(judgement, Judgement):
        return replace(judgement, good=_truth(check, judgement.good, "a Judgement whose good is"))
    good = _truth(check, judgement)
    return Judgement(good, "" if good else "a check says no", float(good))


def _truth(check: QualityCheck, given: object, what: str = "") -> bool:
    """Return whether a check says yes; a number is a score rather, of which 0.1 would be a yes."""
    if isinstance(given, bool):
        return given
    if inspect.iscoroutine(given):
        given.close()
    # numpy's comparisons return a truth value of their own.
    kind = type(given)
    if given is None or not hasattr(kind, "__bool__") or issubclass(kind, int | float | complex | Decimal):
        raise BadInput(
            f"check {getattr(check, '__name__', check)!r} returned {f'{what} {kind.__name__}'.strip()}, "
            "expected a Judgement, True or False"
        )
    return bool(given)


CARRIED: Final = "\n\nAn earlier attempt failed: {reason}."
BEST: Final = "\nThe best answer so far:\n{best}"
