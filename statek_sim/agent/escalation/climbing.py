"""Why attempts end, what follows from it, and going up a ladder: a value that can be stored, a pure function of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Literal

from statek_sim.agent.escalation.ladder import BEST, CARRIED, Ladder, Level
from statek_sim.errors import (
    BadInput,
    ProviderFailure,
    ProviderHTTPError,
    ProviderTimeout,
    ProviderUnreachable,
)
from statek_sim.values import JSON, Message

_TO_FILL: Final = re.compile(r"\{attempts\}|\{task\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt that ended. `number` counts those of its level; `cost` is US dollars, None without prices."""

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
    """How far a task is: the level it is on, counted from 0, its next attempt there, and every attempt that ended."""

    task: str
    level: int = 0
    number: int = 1
    attempts: tuple[Attempt, ...] = ()

    @property
    def best(self) -> Attempt | None:
        """The attempt with the best answer, the first of equals; None when none had an answer."""
        answered = [attempt for attempt in self.attempts if attempt.answer is not None]
        return max(answered, key=lambda attempt: attempt.score, default=None)

    @property
    def tokens(self) -> int:
        """Tokens of all attempts."""
        return sum(attempt.tokens for attempt in self.attempts)

    @property
    def cost(self) -> Decimal | None:
        """US dollars of all attempts; None when one has no price."""
        costs = [attempt.cost for attempt in self.attempts if attempt.model is not None]
        return None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0))


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows an attempt: `done`, another one after `wait` seconds (`again`, `climb`), or the end (`stop`)."""

    kind: Literal["done", "again", "climb", "stop"]
    wait: float = 0.0


def begun(task: str) -> Climb:
    """Return a task at the foot of a ladder."""
    return Climb(task=task)


def after(climb: Climb, attempt: Attempt, ladder: Ladder) -> tuple[Climb, Decision]:
    """Return how far a task is after an attempt, and what follows."""
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
    """Return the task as the next attempt is told it."""
    level = ladder.levels[climb.level]
    task = climb.task if level.strategy is None else level.strategy(climb.task)
    if not isinstance(task, str):
        raise BadInput(f"level {level.name!r}: its strategy returned {type(task).__name__}, expected a text")
    if level.carry == "nothing" or not climb.attempts:
        return task
    last, best = climb.attempts[-1], climb.best
    carried = CARRIED.format(reason=last.detail or last.cause.value)
    if level.carry == "best" and best is not None:
        carried += BEST.format(best=best.answer)
    return task + carried


def question_text(climb: Climb, level: Level) -> str:
    """Return what a person is asked."""
    attempts = "\n".join(
        f"{attempt.level} #{attempt.number}: {attempt.detail or attempt.cause.value}"
        for attempt in climb.attempts
    )
    words = {"{attempts}": attempts, "{task}": climb.task}
    # At once: what is filled in may have such words itself.
    return _TO_FILL.sub(lambda found: words[found[0]], level.question)


# -- as data ----------------------------------------------------------------------------------------------------


def climb_json(climb: Climb) -> dict[str, JSON]:
    """Return a climb as plain values, for a checkpoint or a ticket."""
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
    """Return the climb that `climb_json` made plain values of."""
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
    return Climb(task=document["task"], level=document["level"], number=document["number"], attempts=attempts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Climbing:
    """Where a run is on a ladder, and what its attempt in hand began with.

    `before` is the conversation before the task; `began` in seconds, `tokens` and `model` are those of the run then.
    """

    climb: Climb
    before: Sequence[Message]
    level: str
    model: str
    began: float
    tokens: int

    def values(self) -> dict[str, object]:
        """Return it as values that a checkpoint can hold."""
        fields = {name: getattr(self, name) for name in ("level", "model", "began", "tokens")}
        return fields | {"climb": climb_json(self.climb), "before": list(self.before)}


def climbing_of(fields: Mapping[str, Any], ladder: Ladder | None, job: str) -> Climbing:
    """Return what `Climbing.values` made values of; `BadInput` when this ladder has not that level at that place."""
    at, name = fields["climb"]["level"], fields["level"]
    names = [] if ladder is None else [level.name for level in ladder.levels]
    if names[at : at + 1] != [name]:
        raise BadInput(
            f"run {job!r} was committed at level {name!r}, number {at + 1} of its ladder, which now has "
            f"{', '.join(names) or 'no levels'}; take it up with the ladder that it had"
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
"""What follows: nothing; the same level again while it has attempts, then the next; the next at once; the end."""

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
"""What a stronger model could help with climbs; a wrong key, a spent budget, a bug and a ban do not."""

WAITED_FOR: Final = frozenset({Cause.RATE_LIMITED, Cause.UNAVAILABLE})
"""Causes that time may cure: the next attempt waits."""

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
    """Return the cause that a run's stop reason is; `failure` is what raised it, where something did."""
    if stop.startswith("budget"):
        return Cause.BUDGET
    if isinstance(failure, ProviderFailure):
        return cause_of_failure(failure)
    return _STOPS.get(stop, Cause.LIMIT)


def cause_of_failure(failure: ProviderFailure) -> Cause:
    """Return the cause that a provider's failure is."""
    if not isinstance(failure, ProviderHTTPError):
        return Cause.UNAVAILABLE if isinstance(failure, ProviderTimeout | ProviderUnreachable) else Cause.BUG
    if failure.status == 429:
        return Cause.RATE_LIMITED
    if failure.status in (401, 402, 403):
        return Cause.UNAUTHORISED
    return Cause.UNAVAILABLE if failure.status == 408 or failure.status >= 500 else Cause.BAD_REQUEST
