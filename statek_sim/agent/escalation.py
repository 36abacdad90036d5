"""Escalation: model ladders as data, and pure functions that choose the next attempt."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import (
    BadInput,
    ProviderFailure,
    ProviderHTTPError,
    ProviderTimeout,
    ProviderUnreachable,
)
from statek_sim.values import JSON, Message

Carry = Literal["nothing", "reason", "best"]
"""What an attempt's prompt contains about earlier ones: nothing, why the last attempt failed, or both the reason and
the best answer so far.
"""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A check's verdict on an answer; `score` ranks several bad answers."""

    good: bool
    reason: str = ""
    score: float = 0.0


QualityCheck = Callable[[str, str], Judgement | bool]
"""A synchronous function that takes the task and an answer and returns whether the answer is good."""

Strategy = Callable[[str], str]
"""Takes a task and returns a rewritten one, for example with examples or split into parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """A model's price in US dollars per million tokens, the same for prompts and completions."""

    per_million: Decimal

    def __post_init__(self) -> None:
        if not _is_amount(self.per_million) or self.per_million < 0:
            raise BadInput(
                f"the price per million tokens must be a non-negative Decimal, got {self.per_million}"
            )

    def cost(self, tokens: int) -> Decimal:
        """Return the cost of this many tokens."""
        return tokens * self.per_million / 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A level on a ladder: a model, or a person if `model` is None.

    A model gets `attempts` attempts; `strategy` rewrites the task. A person is asked `question`, with `{task}` and
    `{attempts}` filled in, and has `seconds` to answer (None: no limit); the answer is the task's result.
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
                f"level {self.name!r}: unknown carry {self.carry!r}; expected {', '.join(get_args(Carry))}"
                f"{suggestion(str(self.carry), get_args(Carry))}"
            )
        if self.seconds is not None and not (_is_number(self.seconds) and self.seconds > 0):
            raise BadInput(
                f"level {self.name!r}: seconds is {_shown(self.seconds)}; expected a number above 0, or "
                "None for no deadline"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """The levels from first to last, and settings that apply to all of them.

    `backoff` is the delay in seconds before the second attempt after a temporary failure; it doubles up to `longest`.
    """

    levels: tuple[Level, ...]
    checks: Sequence[QualityCheck] = ()
    backoff: float = 3.0
    longest: float = 60.0

    def __post_init__(self) -> None:
        names = [level.name for level in self.levels]
        if not names:
            raise BadInput("a ladder needs at least one level")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise BadInput(f"level {twice!r} is listed twice; expected a different name for each level")
        for level in self.levels:
            # Reject 1.5 from a file, because a counter never equals it.
            if not _is_number(level.attempts) or level.attempts < 1 or level.attempts != int(level.attempts):
                raise BadInput(
                    f"level {level.name!r}: attempts must be 1 or more, got {_shown(level.attempts)}"
                )
        people = [level.name for level in self.levels[:-1] if level.model is None]
        if people:
            raise BadInput(f"level {people[0]!r}: only the last level can be a person")
        for name, seconds in (("backoff", self.backoff), ("longest", self.longest)):
            if not _is_number(seconds) and seconds != math.inf:
                raise BadInput(f"{name} must be a number of seconds, got {_shown(seconds)}")
        if not 0 <= self.backoff <= self.longest:
            raise BadInput(f"backoff is {self.backoff:g} s; expected 0 to `longest`, {self.longest:g} s")

    def judged(self, task: str, answer: str) -> Judgement:
        """Return an answer's first bad judgement, or else a good one with the lowest score of all checks.

        Raises `BadInput` if a check does not return a judgement, for example because it is a coroutine function.
        """
        found = [_judgement(check, check(task, answer)) for check in self.checks]
        score = min([judgement.score for judgement in found], default=1.0)
        bad = next((judgement for judgement in found if not judgement.good), None)
        return Judgement(True, score=score) if bad is None else Judgement(False, bad.reason, score)


def _is_amount(value: object) -> bool:
    return isinstance(value, Decimal | int) and not isinstance(value, bool) and Decimal(value).is_finite()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _shown(value: object) -> str:
    """Format a value for a message, with numbers as they would appear in a file."""
    return f"{value:g}" if isinstance(value, float) else repr(value)


def _judgement(check: QualityCheck, given: object) -> Judgement:
    """Return a check's result as a `Judgement`; raises `BadInput` unless it is a `Judgement`, True or False.

    Numbers are rejected, because a number is probably a score, and 0.1 would count as true.
    """
    good = given.good if isinstance(given, Judgement) else given
    if isinstance(good, bool):
        return (
            given
            if isinstance(given, Judgement)
            else Judgement(good, "" if good else "a check failed", float(good))
        )
    if inspect.iscoroutine(given):
        given.close()
    what = "a Judgement whose `good` is " if isinstance(given, Judgement) else ""
    raise BadInput(
        f"check {getattr(check, '__name__', check)!r} returned {what}{type(good).__name__}, "
        "expected a Judgement, True or False"
    )


CARRIED: Final = "\n\nAn earlier attempt failed: {reason}."
BEST: Final = "\nThe best answer so far:\n{best}"


_TO_FILL: Final = re.compile(r"\{attempts\}|\{task\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A finished attempt. `number` counts within its level; `cost` is in US dollars, or None if no prices are set."""

    level: str
    number: int
    model: str | None
    cause: Cause
    detail: str = ""
    tokens: int = 0
    cost: Decimal | None = None
    seconds: float = 0.0
    answer: str | None = None
    score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Climb:
    """A task's progress: its zero-based level, its next attempt at that level, and all finished attempts.

    `task_type` is the type of task whose tools are offered to the agent (`Choice.task`), or None.
    """

    task: str
    task_type: str | None = None
    level: int = 0
    number: int = 1
    attempts: tuple[Attempt, ...] = ()

    @property
    def best(self) -> Attempt | None:
        """The attempt with the best answer (the first if several are equally good), or None if there is no answer."""
        answered = [attempt for attempt in self.attempts if attempt.answer is not None]
        return max(answered, key=lambda attempt: attempt.score, default=None)

    @property
    def tokens(self) -> int:
        """The number of tokens used by all attempts."""
        return sum(attempt.tokens for attempt in self.attempts)

    @property
    def cost(self) -> Decimal | None:
        """The total cost of all attempts, in US dollars; None if any price is unknown."""
        costs = [attempt.cost for attempt in self.attempts if attempt.model is not None]
        return None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0))


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do after an attempt: `done`, `again` (the same level), `climb` (the next level), or `stop`.

    Another attempt begins after `wait` seconds.
    """

    kind: Literal["done", "again", "climb", "stop"]
    wait: float = 0.0


def after(climb: Climb, attempt: Attempt, ladder: Ladder) -> tuple[Climb, Decision]:
    """Return a task's progress after an attempt, and the decision on what comes next."""
    climbed = replace(climb, attempts=(*climb.attempts, attempt))
    reaction = REACTIONS[attempt.cause]
    if reaction in ("done", "stop"):
        return climbed, Decision("done" if reaction == "done" else "stop")
    if reaction == "again" and climb.number < ladder.levels[climb.level].attempts:
        return replace(climbed, number=climb.number + 1), Decision(
            "again", _wait(climb, attempt.cause, ladder)
        )
    level = climb.level + 1
    if level >= len(ladder.levels):
        return climbed, Decision("stop")
    return replace(climbed, level=level, number=1), Decision("climb")


def _wait(climb: Climb, cause: Cause, ladder: Ladder) -> float:
    if cause not in WAITED_FOR:
        return 0.0
    return min(ladder.longest, ladder.backoff * 2.0 ** (climb.number - 1))


def task_text(climb: Climb, ladder: Ladder) -> str:
    """Return the task's text for the next attempt, following the level's `strategy` and `carry`."""
    level = ladder.levels[climb.level]
    task = climb.task if level.strategy is None else level.strategy(climb.task)
    if not isinstance(task, str):
        raise BadInput(
            f"level {level.name!r}: its strategy returned {type(task).__name__}, expected a string"
        )
    if level.carry == "nothing" or not climb.attempts:
        return task
    last, best = climb.attempts[-1], climb.best
    carried = CARRIED.format(reason=last.detail or last.cause.value)
    if level.carry == "best" and best is not None:
        carried += BEST.format(best=best.answer)
    return task + carried


def question_text(climb: Climb, level: Level) -> str:
    """Return a level's question to a person, with the task and the attempts filled in."""
    attempts = "\n".join(
        f"{attempt.level} #{attempt.number}: {attempt.detail or attempt.cause.value}"
        for attempt in climb.attempts
    )
    words = {"{attempts}": attempts, "{task}": climb.task}
    # Replace all placeholders in one pass, because inserted text may contain placeholders too.
    return _TO_FILL.sub(lambda found: words[found[0]], level.question)


# -- as data ----------------------------------------------------------------------------------------------------


def climb_json(climb: Climb) -> dict[str, JSON]:
    """Convert a climb to plain values, for a checkpoint or a ticket."""
    document = asdict(climb)
    document["attempts"] = [
        {
            **attempt,
            "cause": attempt["cause"].value,
            "cost": None if attempt["cost"] is None else str(attempt["cost"]),
        }
        for attempt in document["attempts"]
    ]
    return document


def climb_of(document: Mapping[str, Any]) -> Climb:
    """Return the climb from plain values produced by `climb_json`."""
    attempts = tuple(
        Attempt(
            **{
                **attempt,
                "cause": Cause(attempt["cause"]),
                "cost": None if attempt["cost"] is None else Decimal(attempt["cost"]),
            }
        )
        for attempt in document["attempts"]
    )
    return Climb(**{**document, "attempts": attempts})


@dataclass(frozen=True, slots=True, kw_only=True)
class Climbing:
    """A run's position on a ladder, and the start of its current attempt.

    `before` is the conversation before the task. `began` (in seconds), `tokens` and `model` are the run's values when
    the attempt started.
    """

    climb: Climb
    before: Sequence[Message]
    level: str
    model: str
    began: float
    tokens: int

    def values(self) -> dict[str, object]:
        """Return the position as values that a checkpoint can store."""
        fields = {name: getattr(self, name) for name in ("level", "model", "began", "tokens")}
        return fields | {"climb": climb_json(self.climb), "before": list(self.before)}


def climbing_of(fields: Mapping[str, Any], ladder: Ladder | None, job: str) -> Climbing:
    """Restore a `Climbing` from its `values`.

    Raises `BadInput` if the ladder no longer has that level at that position.
    """
    at, name = fields["climb"]["level"], fields["level"]
    names = [] if ladder is None else [level.name for level in ladder.levels]
    if names[at : at + 1] != [name]:
        raise BadInput(
            f"run {job!r} was saved at level {name!r}, number {at + 1} of its ladder, but the ladder now has "
            f"{', '.join(names) or 'no levels'}; resume it with its original ladder"
        )
    return Climbing(
        climb=climb_of(fields["climb"]),
        **{key: fields[key] for key in ("before", "level", "model", "began", "tokens")},
    )


class Cause(StrEnum):
    """How an attempt ended."""

    SOLVED = "solved"
    POOR_QUALITY = "poor_quality"
    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"
    MAX_NUDGES = "max_nudges"
    MAX_ITERATIONS = "max_iterations"
    STUCK = "stuck"
    TOOL_ERRORS = "tool_errors"
    CONTEXT_OVERFLOW = "context_overflow"
    UNAUTHORISED = "unauthorised"
    BAD_REQUEST = "bad_request"
    BUDGET = "budget"
    LIMIT = "limit"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"
    BUG = "bug"
    REFUSED = "refused"
    EXPIRED = "expired"


Reaction = Literal["done", "again", "climb", "stop"]
"""The reaction to a cause: `again` stays on the same level until its attempts are used up, then moves to the next;
`climb` moves to the next level immediately.
"""

REACTIONS: Final[Mapping[Cause, Reaction]] = MappingProxyType(
    {
        Cause.SOLVED: "done",
        Cause.POOR_QUALITY: "again",
        Cause.RATE_LIMITED: "again",
        Cause.UNAVAILABLE: "again",
        Cause.MAX_NUDGES: "again",
        Cause.MAX_ITERATIONS: "climb",
        Cause.STUCK: "climb",
        Cause.TOOL_ERRORS: "climb",
        Cause.CONTEXT_OVERFLOW: "climb",
        Cause.UNAUTHORISED: "stop",
        Cause.BAD_REQUEST: "stop",
        Cause.BUDGET: "stop",
        Cause.LIMIT: "stop",
        Cause.BLOCKED: "stop",
        Cause.CANCELLED: "stop",
        Cause.BUG: "stop",
        Cause.REFUSED: "climb",
        Cause.EXPIRED: "climb",
    }
)
"""The reaction to each cause. Only causes that a stronger model might solve lead to the next level; a wrong key, an
exceeded budget, a bug or a ban do not.
"""

WAITED_FOR: Final = frozenset({Cause.RATE_LIMITED, Cause.UNAVAILABLE})
"""Temporary causes, after which the next attempt at the same level waits."""

_STOPS: Final[Mapping[str, Cause]] = MappingProxyType(
    {
        "final": Cause.SOLVED,
        "max_nudges": Cause.MAX_NUDGES,
        "max_iterations": Cause.MAX_ITERATIONS,
        "stuck": Cause.STUCK,
        "tool_errors": Cause.TOOL_ERRORS,
        "context_overflow": Cause.CONTEXT_OVERFLOW,
        "blocked": Cause.BLOCKED,
        "crash": Cause.BUG,
    }
)


def cause_of_stop(stop: str, failure: BaseException | None = None) -> Cause:
    """Return the cause that corresponds to a run's stop reason; `failure` is the exception, if any."""
    if stop.startswith("budget"):
        return Cause.BUDGET
    if isinstance(failure, ProviderFailure):
        return cause_of_failure(failure)
    return _STOPS.get(stop, Cause.LIMIT)


def cause_of_failure(failure: ProviderFailure) -> Cause:
    """Return the cause that corresponds to a provider failure."""
    if not isinstance(failure, ProviderHTTPError):
        return Cause.UNAVAILABLE if isinstance(failure, ProviderTimeout | ProviderUnreachable) else Cause.BUG
    if failure.status == 429:
        return Cause.RATE_LIMITED
    if failure.status in (401, 402, 403):
        return Cause.UNAUTHORISED
    return Cause.UNAVAILABLE if failure.status == 408 or failure.status >= 500 else Cause.BAD_REQUEST
