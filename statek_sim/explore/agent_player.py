"""Plays variations of a scenario on the agent engine.

Commits are always on, even if the scenario turns them off, because without commits every crash restarts the whole run.
The model gives the same answers at the same turns in every variation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Final

from statek_sim.backends.agent import run_agent_scenario
from statek_sim.backends.agent_sessions import SOON, Moments
from statek_sim.backends.deviation_plan import Choice, DeviationPlan, Point, with_deviations
from statek_sim.backends.record import RunRecord
from statek_sim.errors import BadInput, Untimely
from statek_sim.explore.invariants import AFTER, AT_LEAST_ONCE, BEFORE, DURING, SAFE
from statek_sim.explore.plan import distinct_points, faults_of, kill_at, limits_below, moves_of
from statek_sim.explore.player import ANY_ORDER, Footprint, Invariant, Picking, Violation, ended_by
from statek_sim.harness.limits import HarnessLimits, LimitName, limits_in_force
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.schema import Scenario
from statek_sim.trace import CallRefused, Event, PersonAsked, Reactivated, ToolCalled, ToolReturned

ASKED: Final = "Unanswered"
"""The error type if a run asks a person whether a call happened before the crash, but gets no answer."""
MISSED: Final = "NotAsked"
"""The error type if a person answers a question that was not asked."""
LEFT_OVER: Final = "Unused"
"""The prefix of error types about unused parts of a scenario."""
NO_RESULT: Final = "ScriptExhausted"
"""The error type if a tool or a program has no scripted results left."""


@dataclass(frozen=True, slots=True)
class AgentVariation:
    """A run on the agent engine; `base` is the run without deviations, or None for the base run itself."""

    record: RunRecord
    moments: Moments
    base: AgentVariation | None
    again: frozenset[str]
    """The tools that may be called again after a crash."""
    deviations: tuple[Deviation, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def only_dies(self) -> bool:
        """Whether all deviations kill the process, so that the outcome must be the same."""
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
        """The points at which the process may die."""
        return self.moments.points

    @property
    def states(self) -> Sequence[tuple[float, int, int, int, int]]:
        """Digests that identify how a new process continues from each point."""
        return self.moments.states

    @property
    def choices(self) -> Sequence[Choice]:
        """The points at which another job could continue first or another call could end first."""
        return self.moments.plan.choices

    @property
    def absent(self) -> tuple[str, ...]:
        """This variation's kills, faults and choices that never applied."""
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
        """Whether the scenario contains every model answer and tool result that the run requested."""
        error = self.record.error
        base = None if self.base is None else self.base.record.error
        exhausted = error is not None and error.type == NO_RESULT and (base is None or base.type != NO_RESULT)
        return not self.moments.unknown and not exhausted

    @property
    def came(self) -> str:
        """The outcome: `asks` if the run asks a person an additional question, otherwise `same` or `differs`."""
        if self.asks:
            return "asks"
        return "same" if ends_as_undisturbed(self) is None else "differs"

    @property
    def misses_person(self) -> bool:
        """Whether a person answers too early because a different order asks the questions at other times."""
        error = self.record.error
        return error is not None and error.type == MISSED and not self.only_dies

    @property
    def tokens(self) -> int:
        """The measured tokens across all answers, including those lost with their process."""
        usage = [*(call.usage for call in self.record.calls), *(turn for _, turn in self.moments.lost)]
        return sum(turn.measured_tokens for turn in usage)

    @property
    def asks(self) -> bool:
        """Whether the run asks a person an additional question because a call's outcome is unknown."""
        error = self.record.error
        before = None if self.base is None else self.base.record.error
        if error is None or (before is not None and before.type == error.type):
            return False
        # While the run waits for this answer, the scenario's other questions and later events never happen.
        others = error.type == MISSED or error.type.startswith(LEFT_OVER)
        return error.type == ASKED or (others and bool(self._questions - self._known_questions))

    @property
    def _questions(self) -> set[str]:
        return {event.question for event in self.record.events if isinstance(event, PersonAsked)}

    @property
    def _known_questions(self) -> set[str]:
        return set() if self.base is None else self.base._questions


def ends_as_undisturbed(run: AgentVariation) -> str | None:
    """After kills, every job that ends in the base run ends the same way with the same answer."""
    if run.base is None or not run.known or run.asks or not run.only_dies:
        return None
    return _other_ending(run, run.base)


def order_does_not_matter(run: AgentVariation) -> str | None:
    """If a scenario is tagged `any-order`, every job ends the same way in every order that the scripts cover."""
    if run.base is None or run.misses_person:
        return None
    if ANY_ORDER not in run.tags or any(one.action != "choose" for one in run.deviations):
        return None
    return _other_ending(run, run.base)


def _other_ending(run: AgentVariation, base: AgentVariation) -> str | None:
    """Describe the first job that ends in the base run but ends differently here, or return None."""
    for name, before in base.record.jobs.items():
        now = run.record.jobs.get(name)
        if before.status != "DONE" or any(job == name for job, _ in run.moments.unknown):
            continue
        if now is None or now.status != "DONE":
            return (
                f"{name} is {'missing' if now is None else now.status} at the end, but DONE in the base run"
            )
        for what in ("stop", "answer", "steps_done"):
            mine, theirs = getattr(now, what), getattr(before, what)
            if mine != theirs:
                return f"{name}: {what} is {mine!r}, but {theirs!r} in the base run"
    return None


def tools_work_once(run: AgentVariation) -> str | None:
    """No tool does its work more often than in the base run, except tools that may be called again.

    If no process dies, only successful work counts, because a retry is not a second call, and a circuit breaker may
    later admit a call that it rejected before.
    """
    if run.base is None:
        return None
    if not any(one.action == "kill" for one in run.deviations):
        return _succeeds_again(run, run.base)
    before = Counter(run.base.moments.worked)
    for (job, tool), times in sorted(Counter(run.moments.worked).items()):
        if tool not in run.again and times > before[job, tool]:
            return f"{tool} worked {times} times for {job}, but {before[job, tool]} times in the base run"
    return None


def _succeeds_again(run: AgentVariation, base: AgentVariation) -> str | None:
    """Describe a tool that succeeds more often than the base run called it, including rejected calls."""
    called = Counter((event.job, event.name) for event in base.events if isinstance(event, ToolCalled))
    # Each attempt at a call does the work, and all attempts are one call.
    called |= Counter(base.moments.worked)
    called.update((event.job, event.name) for event in base.events if isinstance(event, CallRefused))
    succeeded = Counter(
        (event.job, event.name)
        for event in run.events
        if isinstance(event, ToolReturned) and event.error is None
    )
    for (job, tool), times in sorted(succeeded.items()):
        if tool not in run.again and times > called[job, tool]:
            return f"{tool} worked {times} times for {job}; the base run called it {called[job, tool]} times"
    return None


def no_error_of_the_loop(run: AgentVariation) -> str | None:
    """A crash causes no errors that are missing from the base run, except errors about unused script entries."""
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
    """Under any fault, a job that ends in the base run also ends or has a stop reason."""
    if run.base is None or not run.known or run.asks or run.misses_person:
        return None
    for name, before in run.base.record.jobs.items():
        now = run.record.jobs.get(name)
        if before.status == "DONE" and now is not None and now.status != "DONE" and now.stop is None:
            return f"{name} is {now.status} at the end without a stop reason, but DONE in the base run"
    return None


def limits_hold(run: AgentVariation) -> str | None:
    """No job takes more turns than its limit plus one (the extra turn is documented).

    Completions extend the limit of a job that answered and received another message.
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
            return f"{name} takes {job.turns} turns, expected at most {most:g}"
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
"""The agent engine's invariants, keyed by their names in reports."""


FOR_GOOD: Final = "the worker dies and is not restarted, so crashes cannot be explored"

MOST_EVENTS: Final = 300_000
"""Maximum number of events across all crashes of a run, estimated from the base run's length: about 20 seconds.

A run with many turns commits hundreds of times, and each crash is played to the end; beyond the limit, crash points
are sampled evenly.
"""

_UNLIMITED: Final = HarnessLimits(
    max_turns=None, max_exceptions=None, max_consecutive_exceptions=None, max_token_usage=None
)


class AgentPlayer:
    """Plays a scenario on the agent engine under one profile, with commits on.

    Crashes in the scenario itself happen in every run.
    """

    restart = SOON
    built_in = AGENT_INVARIANTS
    touched: Callable[[Event], Footprint] | None = None

    def __init__(self, scenario: Scenario, profile: str) -> None:
        self.scenario, self.profile = committing(with_deviations(scenario, ())), profile
        self._again = frozenset(name for name, text in scenario.tools.items() if text.after_crash == "again")
        acts = Counter(event.action for event in scenario.events)
        if acts["crash"] > acts["restart"]:
            raise BadInput(f"scenario {scenario.id!r}: {FOR_GOOD}")
        moments = Moments()
        record = run_agent_scenario(self.scenario, profile, moments=moments)
        self.base = AgentVariation(record, moments, None, self._again, (), tuple(scenario.tags))
        self.phases = _phases(moments)

    def singles(self, kinds: Sequence[str]) -> dict[str, list[Deviation]]:
        """Return the single deviations of these kinds; if there are too many kills, return an even sample."""
        base = self.base
        jobs = base.record.jobs.values()
        counts = [(job.turns, job.exceptions, job.streak, 0) for job in jobs]
        distinct = distinct_points(base)
        most = 1 + MOST_EVENTS // max(1, len(base.events))
        every = {
            "crashes": [kill_at(point, SOON) for point in distinct[:: 1 + len(distinct) // (most + 1)]],
            "limits": limits_below(counts, base.events, _UNLIMITED),
            "faults": faults_of(base.moments.taken),
            "moves": moves_of(self.scenario, [point.at for point in base.points]),
        }
        return {kind: wanted for kind, wanted in every.items() if kind in kinds}

    def varied(
        self, deviations: Sequence[Deviation], *, pick: Picking | None = None
    ) -> AbstractContextManager[AgentVariation]:
        """Play a variation like `play`; the choices that `pick` makes become part of its deviations."""
        run = self.play(deviations, pick)
        return nullcontext(run if pick is None else replace(run, deviations=pick.deviations))

    def play(self, deviations: Sequence[Deviation], pick: Picking | None = None) -> AgentVariation:
        """Play a variation; `pick` makes the choices that the deviations leave open."""
        moments = Moments(DeviationPlan(deviations, pick), self.base.moments.taken)
        record = run_agent_scenario(with_deviations(self.scenario, deviations), self.profile, moments=moments)
        return AgentVariation(
            record, moments, self.base, self._again, tuple(deviations), tuple(self.scenario.tags)
        )

    def again(self) -> AgentVariation:
        """Play the base run again."""
        return self.play(())

    def crashes_after(self, first: Deviation) -> list[Deviation]:
        """Return kills at the distinct points after a run's first crash."""
        after = distinct_points(self.play((first,)))
        return [kill_at(point, SOON) for point in after if point.place > (first.kill, first.silent)]

    def refused(self, deviations: Sequence[Deviation], error: Exception) -> Violation:
        """Return the violation for a run ended by `error`; raise the error if the run did not cause it."""
        refused = isinstance(error, BadInput) and not isinstance(error, Untimely)
        if refused and deviations and all(one.action == "kill" for one in deviations):
            # A new process cannot resume the run: a tool from its commit is missing.
            return Violation(RESUMES, str(error))
        return ended_by(error)

    def verdict(self, run: AgentVariation, tool: str, phase: str, wrong: Iterable[Violation]) -> str:
        """Return whether a tool repeated its work in a run, regardless of its declaration.

        A call repeated only after asking a person whether it happened is safe.
        """
        return AT_LEAST_ONCE if run.tool_calls[tool] > self.base.tool_calls[tool] else SAFE

    def two_owners(self) -> Iterable[AgentVariation]:
        """Yield nothing, because the agent engine has no work owners and no claims."""
        return ()


def committing(scenario: Scenario) -> Scenario:
    """Return the scenario with commits turned on for all agents."""
    agents = {
        role: text.model_copy(update={"harness": text.harness.model_copy(update={"commits": True})})
        for role, text in scenario.agents.items()
    }
    return scenario.model_copy(update={"agents": agents})


def _phases(moments: Moments) -> dict[int, set[tuple[str, str]]]:
    """Return each point's tool and call phase, keyed by point number.

    The phase `before` is the commit that announces the call, `after` the commit that records its receipt.
    """
    found: dict[int, set[tuple[str, str]]] = {}
    calling: dict[str, int] = {}
    worked: dict[str, str] = {}
    for number, point in enumerate(moments.points):
        if point.what == "commit calling":
            calling[point.job] = number
        elif point.what.endswith(" worked"):
            tool = point.what.removesuffix(" worked")
            worked[point.job] = tool
            found.setdefault(number, set()).add((tool, DURING))
            if point.job in calling:
                found.setdefault(calling[point.job], set()).add((tool, BEFORE))
        elif point.what.startswith("receipt ") and point.job in worked:
            found.setdefault(number, set()).add((worked.pop(point.job), AFTER))
    return found
