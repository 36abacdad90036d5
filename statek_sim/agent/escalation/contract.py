"""A public checker that every ladder passes, ours or a user's, through a small adapter.

    def test_my_ladder_climbs_right() -> None:
        check_ladder(MyAdapter)

Every way in which the attempts of a ladder of three levels can end is played, in virtual time, beside the table of
what climbs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from statek_sim.agent.escalation.causes import Cause
from statek_sim.agent.escalation.climbing import Attempt, Climb, after, begun
from statek_sim.agent.escalation.ladder import Ladder, Level
from statek_sim.agent.virtual_loop import VirtualLoop, run_in
from statek_sim.errors import ContractViolation, ProviderHTTPError

LEVELS: Final = (("fast", 2), ("other", 1), ("strong", 2))
"""Names and attempts of the ladder that is climbed."""

_ENDS: Final = (Cause.SOLVED, Cause.POOR_QUALITY, Cause.UNAVAILABLE, Cause.UNAUTHORISED)
_STATUS: Final = {Cause.UNAVAILABLE: 503, Cause.UNAUTHORISED: 401}
_MOST: Final = 20
"""Attempts after which a ladder is stopped."""


class LadderFinding(StrEnum):
    """What can be wrong with a ladder."""

    ORDER = "another level is asked than the next one"
    GIVES_UP = "it ends while a level has attempts left"
    GOES_ON = "it goes on after what no other level can help with, or after its end"
    HASTY = "it does not wait for a provider that is down before it asks it again"
    WRONG_ANSWER = "it gives another answer than the good one, or a bad one for good"
    SWALLOWS_CANCELLATION = "a cancelled task goes on"


AttemptAt = Callable[[str], Awaitable[str]]
"""Makes an attempt at the level of this name; returns an answer, or raises what a provider raises."""


class LadderAdapter(Protocol):
    """One ladder of `LEVELS`, for the checker. An answer is good when it begins with `good`."""

    async def climb(self, attempt: AttemptAt) -> str | None:
        """Work on a task; return the good answer, None when there is none."""


MakeLadder = Callable[[], LadderAdapter]
"""Returns a fresh adapter; called inside a running event loop."""


@dataclass(frozen=True, slots=True)
class LadderViolation:
    """What is wrong, after attempts that ended so."""

    finding: LadderFinding
    ends: tuple[Cause, ...]
    detail: str

    def __str__(self) -> str:
        """Return it as a sentence."""
        return f"{self.finding}: after {', '.join(self.ends) or 'nothing'}: {self.detail}"


def check_ladder(make_ladder: MakeLadder) -> int:
    """Play every climb; return how many there are. Raises `ContractViolation` with the first that shows a finding."""
    played = 0
    for ends in _climbs():
        violation = _play(make_ladder, ends)
        if violation is not None:
            raise ContractViolation(str(violation))
        played += 1
    violation = _cancel(make_ladder)
    if violation is not None:
        raise ContractViolation(str(violation))
    return played


def ladder_findings(make_ladder: MakeLadder) -> dict[LadderFinding, LadderViolation]:
    """Return the first climb that shows each finding, the shortest first."""
    found: dict[LadderFinding, LadderViolation] = {}
    for ends in _climbs():
        violation = _play(make_ladder, ends)
        if violation is not None:
            found.setdefault(violation.finding, violation)
    cancelled = _cancel(make_ladder)
    return found if cancelled is None else {**found, cancelled.finding: cancelled}


# -- what is played ---------------------------------------------------------------------------------------------


def _ladder() -> Ladder:
    return Ladder(levels=tuple(Level(name=name, model=name, attempts=attempts) for name, attempts in LEVELS))


def _climbs() -> Iterator[tuple[Cause, ...]]:
    """Yield how the attempts of every whole climb end, short ones first."""
    open_: list[tuple[tuple[Cause, ...], Climb]] = [((), begun("task"))]
    while open_:
        further: list[tuple[tuple[Cause, ...], Climb]] = []
        for ends, state in open_:
            for cause in _ENDS:
                later, over = _moved(state, cause)
                if over:
                    yield (*ends, cause)
                else:
                    further.append(((*ends, cause), later))
        open_ = further


def _moved(state: Climb, cause: Cause) -> tuple[Climb, bool]:
    name = LEVELS[state.level][0]
    later, decision = after(
        state, Attempt(level=name, number=state.number, model=name, cause=cause), _ladder()
    )
    return later, decision.kind in ("done", "stop")


def _expected(ends: Sequence[Cause]) -> list[str]:
    """Return the levels that the attempts of a climb are at."""
    state, levels = begun("task"), list[str]()
    for cause in ends:
        levels.append(LEVELS[state.level][0])
        state, _ = _moved(state, cause)
    return levels


def _play(make_ladder: MakeLadder, ends: tuple[Cause, ...]) -> LadderViolation | None:
    attempts: list[tuple[str, float]] = []

    async def attempt(level: str) -> str:
        at = len(attempts)
        attempts.append((level, asyncio.get_running_loop().time()))
        if at >= _MOST:
            raise asyncio.CancelledError
        cause = ends[at] if at < len(ends) else Cause.POOR_QUALITY
        if cause in _STATUS:
            raise ProviderHTTPError(f"status {_STATUS[cause]}", status=_STATUS[cause])
        return f"good {at}" if cause is Cause.SOLVED else f"bad {at}"

    async def go() -> str | None:
        return await make_ladder().climb(attempt)

    try:
        answer = run_in(VirtualLoop(), go())
    except asyncio.CancelledError:
        answer = None
    return _judged(ends, attempts, answer)


def _judged(
    ends: tuple[Cause, ...], attempts: Sequence[tuple[str, float]], answer: str | None
) -> LadderViolation | None:
    levels = [level for level, _ in attempts]
    expected = _expected(ends)
    for at, (got, want) in enumerate(zip(levels, expected, strict=False)):
        if got != want:
            return LadderViolation(LadderFinding.ORDER, ends[:at], f"{got!r} is asked, expected {want!r}")
    if len(levels) > len(expected):
        return LadderViolation(LadderFinding.GOES_ON, ends, f"{levels[len(expected)]!r} is asked")
    if len(levels) < len(expected):
        wanted = expected[len(levels)]
        return LadderViolation(LadderFinding.GIVES_UP, ends[: len(levels)], f"{wanted!r} is not asked")
    for at in range(1, len(attempts)):
        again = attempts[at][0] == attempts[at - 1][0] and ends[at - 1] is Cause.UNAVAILABLE
        if again and not attempts[at][1] > attempts[at - 1][1]:
            return LadderViolation(LadderFinding.HASTY, ends[:at], f"{attempts[at][0]!r} is asked at once")
    good = f"good {len(ends) - 1}" if ends[-1] is Cause.SOLVED else None
    if answer != good:
        return LadderViolation(LadderFinding.WRONG_ANSWER, ends, f"it gives {answer!r}, expected {good!r}")
    return None


def _cancel(make_ladder: MakeLadder) -> LadderViolation | None:
    """Cancel a task in the middle of its first attempt."""
    attempts: list[str] = []

    async def attempt(level: str) -> str:
        attempts.append(level)
        await asyncio.sleep(60.0)
        return "bad"

    async def go() -> bool:
        task = asyncio.ensure_future(make_ladder().climb(attempt))
        await asyncio.sleep(1.0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=1.0)
        gone = bool(done) and task.cancelled()
        if not done:
            task.cancel()
            await asyncio.wait([task], timeout=1_000.0)
        return gone

    if run_in(VirtualLoop(), go()):
        return None
    return LadderViolation(LadderFinding.SWALLOWS_CANCELLATION, (), f"{len(attempts)} attempts are made")
