"""One run of engine two that departs from the undisturbed one, and what must hold of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim.backends.agent_sessions import Moments
from statek_sim.backends.deviation_plan import Choice, Point
from statek_sim.backends.record import RunRecord
from statek_sim.explore.player import ANY_ORDER, Invariant
from statek_sim.harness.limits import LimitName, limits_in_force
from statek_sim.scenario.events import Deviation
from statek_sim.trace import CallRefused, Event, PersonAsked, Reactivated, ToolCalled, ToolReturned
from statek_sim.usage.totals import TurnUsage

ASKED: Final = "Unanswered"
"""The error of a run in which nobody answers: of calls that may have happened a person is asked."""
MISSED: Final = "NotAsked"
"""The error of a run in which somebody answers what nobody asks."""
LEFT_OVER: Final = "Unused"
"""How errors begin that say what of a scenario was not used."""
NO_RESULT: Final = "ScriptExhausted"
"""The error of a run in which a tool has no result for a call, or a program none for its next run."""


@dataclass(frozen=True, slots=True)
class AgentVariation:
    """One run and the undisturbed one it departs from."""

    record: RunRecord
    moments: Moments
    base: AgentVariation | None
    again: frozenset[str]
    """Tools of which the scenario says that they may be called again after a crash."""
    deviations: tuple[Deviation, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def only_dies(self) -> bool:
        """Whether nothing but its process fails, so that it has to come to the same."""
        return all(one.action == "kill" for one in self.deviations)

    @property
    def events(self) -> Sequence[Event]:
        """The trace."""
        return self.record.events

    @property
    def digest(self) -> str:
        """SHA-256 of the trace."""
        return self.record.digest

    @property
    def points(self) -> Sequence[Point]:
        """The moments at which its process may die."""
        return self.moments.points

    @property
    def states(self) -> Sequence[tuple[float, int, int, int, int]]:
        """What tells apart how a new process goes on from each moment."""
        return self.moments.states

    @property
    def choices(self) -> Sequence[Choice]:
        """Where another run, or the end of another call, may come first."""
        return self.moments.plan.choices

    @property
    def absent(self) -> tuple[str, ...]:
        """The kills, faults and choices that it gave no occasion for."""
        return self.moments.plan.absent()

    @property
    def effects(self) -> Counter[tuple[str, str]]:
        """How often each tool did its work, by job and tool."""
        return Counter(self.moments.worked)

    @property
    def tool_calls(self) -> Counter[str]:
        """How often each tool did its work."""
        return Counter(tool for _, tool in self.moments.worked)

    @property
    def known(self) -> bool:
        """Whether the scenario says everything that was asked for: every answer of the model, every tool's result."""
        error = self.record.error
        base = None if self.base is None else self.base.record.error
        exhausted = error is not None and error.type == NO_RESULT and (base is None or base.type != NO_RESULT)
        return not self.moments.unknown and not exhausted

    @property
    def came(self) -> str:
        """Whether a person is asked who was not before, or it ended as the undisturbed run."""
        if self.asks:
            return "asks"
        return "same" if ends_as_undisturbed(self) is None else "differs"

    @property
    def misses_person(self) -> bool:
        """Whether a person answers when nobody asks: not after a crash alone, another order asks at other seconds."""
        error = self.record.error
        return error is not None and error.type == MISSED and not self.only_dies

    @property
    def turns(self) -> list[tuple[str, TurnUsage]]:
        """What every answer used, with its job: also of those that died with their process."""
        return [*((call.job, call.usage) for call in self.record.calls), *self.moments.lost]

    @property
    def asks(self) -> bool:
        """Whether a person is asked who was not before: a call may have happened, and nobody knows."""
        error = self.record.error
        before = None if self.base is None else self.base.record.error
        if error is None or (before is not None and before.type == error.type):
            return False
        # Whoever is to answer something else has not been asked that yet, and what follows on the call never happens.
        others = error.type == MISSED or error.type.startswith(LEFT_OVER)
        return error.type == ASKED or (others and bool(self._questions - self._known_questions))

    @property
    def _questions(self) -> set[str]:
        return {event.question for event in self.record.events if isinstance(event, PersonAsked)}

    @property
    def _known_questions(self) -> set[str]:
        return set() if self.base is None else self.base._questions


def ends_as_undisturbed(run: AgentVariation) -> str | None:
    """Every job that ends undisturbed ends here too, in the same way and with the same answer."""
    if run.base is None or not run.known or run.asks or not run.only_dies:
        return None
    return _other_ending(run, run.base)


def order_does_not_matter(run: AgentVariation) -> str | None:
    """Where a scenario says `any-order`, every job ends the same whatever goes on first, as far as scripts say."""
    if run.base is None or run.misses_person:
        return None
    if ANY_ORDER not in run.tags or any(one.action != "choose" for one in run.deviations):
        return None
    return _other_ending(run, run.base)


def _other_ending(run: AgentVariation, base: AgentVariation) -> str | None:
    """Return how a job that ends undisturbed ends otherwise."""
    for name, before in base.record.jobs.items():
        now = run.record.jobs.get(name)
        if before.status != "DONE" or any(job == name for job, _ in run.moments.unknown):
            continue
        if now is None or now.status != "DONE":
            return (
                f"{name} is {'not there' if now is None else now.status} at the end, undisturbed it is DONE"
            )
        for what in ("stop", "answer", "steps_done"):
            mine, theirs = getattr(now, what), getattr(before, what)
            if mine != theirs:
                return f"{name}: {what} is {mine!r}, undisturbed {theirs!r}"
    return None


def tools_work_once(run: AgentVariation) -> str | None:
    """No tool does its work more often than undisturbed, but those that may be called again.

    Where no process dies, only work that succeeded counts: that a call is tried again is no second one, and a breaker
    may let through later what it refused.
    """
    if run.base is None:
        return None
    if not any(one.action == "kill" for one in run.deviations):
        return _succeeds_again(run, run.base)
    before = Counter(run.base.moments.worked)
    for (job, tool), times in sorted(Counter(run.moments.worked).items()):
        if tool not in run.again and times > before[job, tool]:
            return f"{tool} worked {times} times for {job}, undisturbed {before[job, tool]} times"
    return None


def _succeeds_again(run: AgentVariation, base: AgentVariation) -> str | None:
    """Return which tool succeeds more often than it was called undisturbed, with the calls that were refused then."""
    called = Counter((event.job, event.name) for event in base.events if isinstance(event, ToolCalled))
    # Attempts at one call work, and are called once.
    called |= Counter(base.moments.worked)
    called.update((event.job, event.name) for event in base.events if isinstance(event, CallRefused))
    succeeded = Counter(
        (event.job, event.name)
        for event in run.events
        if isinstance(event, ToolReturned) and event.error is None
    )
    for (job, tool), times in sorted(succeeded.items()):
        if tool not in run.again and times > called[job, tool]:
            return (
                f"{tool} worked {times} times for {job}, undisturbed it was called {called[job, tool]} times"
            )
    return None


def no_error_of_the_loop(run: AgentVariation) -> str | None:
    """A crash makes no error that the undisturbed run does not have; what is left over of scripts does not count."""
    error = run.record.error
    base = None if run.base is None else run.base.record.error
    if (
        run.asks
        or not run.known
        or not run.only_dies
        or error is None
        or error.type.startswith(LEFT_OVER)
        or (base is not None and base.type == error.type)
    ):
        return None
    return f"{error.type}: {error.message}"


def every_run_ends(run: AgentVariation) -> str | None:
    """Whatever fails: a job that ends undisturbed ends, or says what it stopped for."""
    if run.base is None or not run.known or run.asks or run.misses_person:
        return None
    for name, before in run.base.record.jobs.items():
        now = run.record.jobs.get(name)
        if before.status == "DONE" and now is not None and now.status != "DONE" and now.stop is None:
            return f"{name} is {now.status} at the end and says nothing, undisturbed it is DONE"
    return None


def limits_hold(run: AgentVariation) -> str | None:
    """No job that is over its limit of turns sends a request: one turn over it is the documented slack.

    A job that has answered and is asked again has the limit that its completions extend.
    """
    harness = run.moments.harness
    if harness is None or not any(_limits_turns(one) for one in run.deviations):
        return None
    completions = {
        event.job: event.completions for event in run.record.events if isinstance(event, Reactivated)
    }
    for name, job in run.record.jobs.items():
        most = limits_in_force(harness.limits, completions.get(name), harness.rule).max_turns
        if most is not None and job.turns > most + 1:
            return f"{name} takes {job.turns} turns, and may take {most:g}"
    return None


def _limits_turns(deviation: Deviation) -> bool:
    return deviation.action == "limit" and deviation.limit == LimitName.MAX_TURNS


RESUMES: Final = "agent-resumes-without-error"

AGENT_INVARIANTS: Final[Mapping[str, Invariant]] = {
    "agent-ends-as-undisturbed": ends_as_undisturbed,
    "agent-tools-work-once": tools_work_once,
    RESUMES: no_error_of_the_loop,
    "agent-every-run-ends": every_run_ends,
    "agent-limits-hold": limits_hold,
    "agent-any-order": order_does_not_matter,
}
"""What must hold of engine two, by the names that reports use."""
