"""Lists a scenario's single deviations: kills, failing requests, moved events, limits and lost commits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, get_args

from statek_sim import trace as events
from statek_sim.backends.deviation_plan import Point
from statek_sim.clock import FOREVER
from statek_sim.explore.player import Run
from statek_sim.explore.variation import Variation
from statek_sim.harness.limits import HarnessLimits, LimitName
from statek_sim.scenario.events import RESTART, Deviation, Fault
from statek_sim.scenario.schema import Scenario
from statek_sim.usage.token_usage import approx_tokens

AUTOCOMMIT: Final = 0.25
"""The seconds between dbzero's automatic commits; changes since the last commit may be lost."""

MOST_COMMITS: Final = 8
"""The maximum number of earlier commits to reset the store to for each ledger line, latest first."""

MOST_TIMES: Final = 8
"""The approximate maximum number of times to which a world event is moved."""

_SOON: Final = 1.0
"""Virtual seconds until a restart in scenarios that end at a given time."""

_MOVABLE: Final = frozenset({"resolve", "fail", "push", "notify", "complete", "answer", "refuse"})


def distinct_points(run: Run) -> list[Point]:
    """Return a run's first point for each durable state. Kills at other points would have the same outcome."""
    first: dict[object, Point] = {}
    for point, state in zip(run.points, run.states, strict=True):
        first.setdefault(state, point)
    return [*first.values()]


def kill_at(point: Point, restart: float | None) -> Deviation:
    """Return a deviation that kills the worker at a point."""
    event, silent = point.place
    what = f"{point.what} of {point.job}" if point.job else point.what
    if silent:
        return Deviation(kill=event, silent=silent, what=what, restart=restart)
    return Deviation(kill=event, what=what, restart=restart)


def restart_of(base: Variation) -> float:
    """Return the virtual seconds until a new worker starts; shorter if the scenario has an end time."""
    return RESTART if base.scenario.until >= FOREVER else _SOON


def kills(base: Variation) -> list[Deviation]:
    """Return a kill for every distinct point."""
    restart = restart_of(base)
    return [kill_at(point, restart) for point in distinct_points(base)]


def lost_commits(base: Variation) -> list[Deviation]:
    """Return deviations that reset the store to a commit before an effect outside the store, as dbzero may do."""
    # Only events can be the target of a lost commit; later events of the same second are tried first.
    commits = [point for point in distinct_points(base) if point.place[1] == 0]
    found = []
    for event, line in base.first_run.lines:
        at = base.events[event - 1].at
        before = [one for one in commits if one.place[0] < event and one.at >= at - AUTOCOMMIT]
        found += [
            Deviation(lose=event, to_event=one.place[0], what=f"ledger: {line}", restart=restart_of(base))
            for one in before[-MOST_COMMITS:]
        ]
    return found


def faults(base: Variation) -> list[Deviation]:
    """Return a deviation for each kind of failure of each request."""
    return faults_of(base.first_run.answers)


def faults_of(answered: Iterable[tuple[str, int]]) -> list[Deviation]:
    """Return a deviation for each kind of failure of the requests for these replies, given by job and number."""
    return [
        Deviation(fault=fault, job=job, reply=reply)
        for job, reply in answered
        if _nameable(job)
        for fault in get_args(Fault)
    ]


def _nameable(job: str) -> bool:
    return bool(job) and (job[0].isalpha() or job[0] == "_")


def moves(base: Variation) -> list[Deviation]:
    """Return deviations that move each world event to other times at which something happens, and to the end."""
    return moves_of(base.scenario, (point.at for point in base.points))


def moves_of(scenario: Scenario, moments: Iterable[float]) -> list[Deviation]:
    """Return deviations that move each event in a scenario's world to other `moments`, and to a later time."""
    seconds = sorted({*moments, 0.0})
    last = seconds[-1] + RESTART
    times = [*seconds[:: max(1, len(seconds) // MOST_TIMES)], last]
    return [
        Deviation(move=number, to=time)
        for number, event in enumerate(scenario.events, 1)
        if event.action in _MOVABLE
        for time in times
        if event.after is not None or time != event.at
    ]


def limits(base: Variation) -> list[Deviation]:
    """Return a deviation for each limit value that stops a job earlier than in the base run."""
    return limits_below(base.counts, base.events, base.limits)


def limits_below(
    counts: Sequence[tuple[int, int, int, int]], trace: Sequence[events.Event], own: HarnessLimits
) -> list[Deviation]:
    """Return a deviation for each limit value below the jobs' usage and below the scenario's `own` limit.

    `counts` contains each job's final turns, exceptions, consecutive exceptions and tokens.
    """
    turns, exceptions, streaks, _ = (
        set(column) for column in (zip(*counts, strict=True) if counts else [()] * 4)
    )
    wanted: dict[LimitName, Iterable[int]] = {
        LimitName.MAX_TURNS: range(max(turns, default=0)),
        LimitName.MAX_EXCEPTIONS: range(max(exceptions, default=0)),
        LimitName.MAX_CONSECUTIVE_EXCEPTIONS: range(max(streaks, default=0)),
        LimitName.MAX_TOKEN_USAGE: sorted({tokens - 1 for tokens in _estimates(trace) if tokens > 0}),
    }
    return [
        Deviation(limit=limit, value=value)
        for limit, values in wanted.items()
        for value in values
        if (known := getattr(own, limit.value)) is None or value < known
    ]


def _estimates(trace: Sequence[events.Event]) -> Iterator[int]:
    """Yield STATEK's estimate of a job's tokens after each of its replies."""
    sent: dict[str, int] = {}
    used: dict[str, list[tuple[int, int]]] = {}
    for event in trace:
        if isinstance(event, events.LLMRequested):
            sent[event.job] = event.bytes_sent
        elif isinstance(event, events.LLMReplied):
            used.setdefault(event.job, []).append((sent[event.job], event.bytes_received))
    for pairs in used.values():
        for total in accumulate(pairs, lambda so_far, pair: (so_far[0] + pair[0], so_far[1] + pair[1])):
            yield approx_tokens(*total)
