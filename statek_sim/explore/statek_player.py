"""Plays variations of a scenario on the statek engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Final

from statek_sim import trace as events
from statek_sim.backends.deviation_plan import Point
from statek_sim.backends.deviations import FirstRun
from statek_sim.backends.reference import ReferenceRun
from statek_sim.errors import StatekSimError
from statek_sim.explore import plan
from statek_sim.explore.invariants import (
    AFTER,
    AT_LEAST_ONCE,
    BEFORE,
    BUILT_IN,
    DURING,
    LEAKS,
    OWNERS,
    SAFE,
    TWICE,
    own_tools,
)
from statek_sim.explore.orders import REPLIES, SHARED
from statek_sim.explore.player import Footprint, Picking, Violation, ended_by
from statek_sim.explore.state import States
from statek_sim.explore.variation import Variation, undisturbed, varied
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.schema import JobText, Scenario
from statek_sim.trace import Event
from statek_sim.values import JSON

PLANS: Final[Mapping[str, Callable[[Variation], list[Deviation]]]] = {
    "crashes": plan.kills,
    "limits": plan.limits,
    "faults": plan.faults,
    "moves": plan.moves,
    "commits": plan.lost_commits,
}
"""Maps each kind to the function that returns all single deviations of the kind."""

OTHER: Final = "the-other-owner"
"""The second owner's id, and the suffix of that owner's jobs."""

_CLAIMS: Final = frozenset({"no-claim-leaked", "no-claim-released-twice", "no-claim-taken-twice"})

_TOUCHING: Final = (
    events.ToolCalled,
    events.WorldChanged,
    events.JobCreated,
    events.HandlerRan,
    events.Notified,
    events.UserMessage,
    events.SubtaskCompleted,
)


class StatekPlayer:
    """Plays a scenario on the statek engine under one profile."""

    built_in = BUILT_IN

    def __init__(self, scenario: Scenario, profile: str) -> None:
        self.base = undisturbed(scenario, profile)
        self.scenario, self.profile = self.base.scenario, profile
        self.restart = plan.restart_of(self.base)
        self.touched: Callable[[Event], Footprint] | None = Touches(self.base)
        self.phases = dict(_phases(self.base))
        self._own = own_tools(scenario)
        self._items = frozenset(item for item, _, _ in self.base.ending.items)

    def singles(self, kinds: Sequence[str]) -> dict[str, list[Deviation]]:
        """Return the single deviations of these kinds."""
        return {kind: make(self.base) for kind, make in PLANS.items() if kind in kinds}

    def varied(
        self, deviations: Sequence[Deviation], *, pick: Picking | None = None
    ) -> AbstractContextManager[Variation]:
        """Play a variation, which can be queried inside the block."""
        return varied(self.base, deviations, pick=pick)

    def again(self) -> Variation:
        """Play the base run again."""
        if self.base.error is not None:
            # A variation needs all answers, but this run ended early, for example because its script ran out.
            return undisturbed(self.scenario, self.profile)
        with varied(self.base, ()) as variation:
            return variation

    def crashes_after(self, first: Deviation) -> list[Deviation]:
        """Return kills at the distinct points after a run's first crash."""
        points: dict[str, Point] = {}
        seen = States()

        def watch(run: ReferenceRun, point: Point) -> None:
            state = seen.of(run, point)
            if run.deviations is not None and run.deviations.deaths:
                points.setdefault(state, point)

        with varied(self.base, (first,), watch=watch):
            return [plan.kill_at(point, self.restart) for point in points.values()]

    def refused(self, deviations: Sequence[Deviation], error: Exception) -> Violation:
        """Return the violation for a run ended by `error`; raise the error if the run did not cause it."""
        return ended_by(error)

    # -- certificates ------------------------------------------------------------------------------------------

    def verdict(self, run: Variation, tool: str, phase: str, wrong: Iterable[Violation]) -> str:
        """Return whether a tool is safe in a run, has its effect at least once, or leaks a claim.

        A user tool's effects outside the world are not visible, so a second call counts as a second effect.
        """
        broken = {one.invariant for one in wrong}
        done = self.base.done.get(tool, Counter())
        if phase == OWNERS:
            leaks = bool(broken & _CLAIMS) and any(subject in self._items for subject, _ in done)
        else:
            leaks = "no-claim-leaked" in broken
        if leaks:
            return LEAKS
        own = tool in self._own
        if phase in (TWICE, OWNERS):
            now = run.done.get(tool, Counter())
            again = (own and not now) or any(now[one] > times for one, times in done.items())
        else:
            called_again = run.tool_calls[tool] > self.base.tool_calls[tool]
            again = bool(run.effects - self.base.effects) or (own and phase != BEFORE and called_again)
        return AT_LEAST_ONCE if again else SAFE

    def two_owners(self) -> Iterator[Variation]:
        """Yield two runs (one per order) in which a second owner does the same work; none if there are no owners."""
        both = _with_other_owner(self.base)
        if both is None:
            return
        scenario, first_run = both
        for order in ("fifo", "newest"):
            ordered = scenario.model_copy(update={"order": order})
            try:
                with varied(self.base, (), scenario=ordered, first_run=first_run) as variation:
                    yield variation
            except StatekSimError:
                # The scenario does not allow a second owner, for a reason unrelated to crashes.
                return


class Touches:
    """Determines which shared objects an event touches, so that equivalent orders can be skipped."""

    def __init__(self, base: Variation) -> None:
        scenario = base.scenario
        self._alone = {
            name
            for name, job in scenario.jobs.items()
            if not job.locals and job.parent is None and not scenario.agents[job.agent or ""].tools
        }
        self._watched = any(isinstance(event, events.Waiting | events.Notified) for event in base.events)
        self._live = any(
            reply.said("when") or reply.said("call") for lane in scenario.script.values() for reply in lane
        )

    def __call__(self, event: Event) -> Footprint:
        """Return the objects that an event touched."""
        if isinstance(event, _TOUCHING):
            return frozenset({SHARED})
        if isinstance(event, events.CodeExecuted) and event.job not in self._alone:
            return frozenset({SHARED})
        if isinstance(event, events.LLMRequested) and self._live:
            return frozenset({REPLIES})
        if isinstance(event, events.StatusChanged) and event.new == "DONE" and self._watched:
            return frozenset({SHARED})
        return frozenset()


def _phases(base: Variation) -> Iterator[tuple[int, set[tuple[str, str]]]]:
    """Yield the number of each point that belongs to a tool call, with the tool and the phase."""
    by_event: dict[int, tuple[str, str]] = {}
    running: dict[str, list[str]] = {}
    for number, event in enumerate(base.events, 1):
        open_calls = running.setdefault(event.job, [])
        match event:
            case events.ToolCalled():
                open_calls.append(str(event.name))
                by_event[number] = (str(event.name), BEFORE)
            case events.ToolReturned():
                if open_calls:
                    open_calls.pop()
                by_event[number] = (str(event.name), AFTER)
            case _ if open_calls:
                by_event[number] = (open_calls[-1], DURING)
    for number, point in enumerate(base.points):
        at, silent = point.place
        if at in by_event and not silent:
            yield number, {by_event[at]}


def _with_other_owner(base: Variation) -> tuple[Scenario, FirstRun] | None:
    """Return the scenario with each owner's jobs duplicated for another owner, with the same messages.

    Returns None if no job has an owner.
    """
    scenario, jobs = base.scenario, dict[str, JobText]()
    for name, text in scenario.jobs.items():
        local = {key: _other(value) for key, value in text.locals.items()}
        if local != dict(text.locals):
            jobs[name] = text.model_copy(update={"locals": local})
    if not jobs:
        return None
    second = {_seconds(name): text for name, text in jobs.items()}
    answers = {
        (_seconds(job), number): each for (job, number), each in base.first_run.answers.items() if job in jobs
    }
    roles = {_seconds(job): role for job, role in base.first_run.roles.items() if job in jobs}
    first_run = replace(
        base.first_run,
        answers={**base.first_run.answers, **answers},
        roles={**base.first_run.roles, **roles},
    )
    return scenario.model_copy(update={"jobs": {**scenario.jobs, **second}, "deviations": ()}), first_run


def _seconds(job: str) -> str:
    """Return the name of this job's copy for the second owner."""
    return f"{job}-{OTHER}"


def _other(value: JSON) -> JSON:
    """Return a local variable with the first owner replaced by the second."""
    return {"$world": f"owner:{OTHER}"} if value == {"$world": "owner"} else value
