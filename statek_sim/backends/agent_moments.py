"""Moments of a run of engine two at which its process may die: what is durable by then is what a new one finds.

A moment is before or after a commit, when a tool has done its work and there is no receipt, and when there is one.
Places count as those of engine one do: events of the trace so far, and moments since the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from statek_sim.backends.deviating import Place, Point
from statek_sim.backends.pinned_replies import FAULTS
from statek_sim.errors import ProviderFailure
from statek_sim.metering.usage import TurnUsage
from statek_sim.providers.delivery import deliver, manner
from statek_sim.providers.protocol import ChatRequest, Provider, RawReply
from statek_sim.providers.script import fault
from statek_sim.scenario.deviation import Deviation, Fault
from statek_sim.trace import LLMReplied, Trace

Answers = dict[tuple[str, int], list[RawReply | ProviderFailure]]
"""What the undisturbed run was told: by job and turn, failed attempts first."""


@dataclass(slots=True)
class Moments:
    """Notes the moments of one run, and says where it dies.

    `said` None: this is the undisturbed run, whose answers `taken` collects.
    """

    wanted: Sequence[Deviation] = ()
    said: Answers | None = None
    points: list[Point] = field(default_factory=list)
    taken: Answers = field(default_factory=dict)
    unknown: list[tuple[str, int]] = field(default_factory=list)
    worked: list[tuple[str, str]] = field(default_factory=list)
    """Every call whose tool did its work: job and tool."""
    lost: list[tuple[str, TurnUsage]] = field(default_factory=list)
    """What was answered to a process that died before it was durable, job by job: paid for, and counted by no run."""
    durable: int = 0
    """How many commits and receipts a new process would find."""
    states: list[tuple[float, int, int, int]] = field(default_factory=list)
    """At each moment the second, what is durable and what tools have done, which decide how a new process goes on,
    and how many answers came, which decide what the crash costs.
    """
    needed: frozenset[int] | None = None
    """Which commits a new process will look for, by the numbers of their points; None: any, since nobody knows."""
    happened: set[Place] = field(default_factory=set)
    failed: set[tuple[str, int]] = field(default_factory=set)
    """The turns whose request has failed as it should: job and turn."""
    _silent: int = 0
    _events: int = -1
    _answers: int = 0

    def reached(self, trace: Trace, at: float, what: str, job: str) -> Deviation | None:
        """Take note of a moment; return the kill that strikes here, if any."""
        events = len(trace.events)
        self._silent = self._silent + 1 if events == self._events else 0
        self._answers += sum(
            isinstance(one, LLMReplied) for one in trace.events[max(0, self._events) : events]
        )
        self._events = events
        place = (events, self._silent)
        self.points.append(Point(place, what, job, at))
        self.states.append((at, self.durable, len(self.worked), self._answers))
        kill = next((one for one in self._kills() if (one.kill, one.silent) == place), None)
        if kill is None or place in self.happened:
            return None
        self.happened.add(place)
        return kill

    @property
    def is_needed(self) -> bool:
        """Whether a new process will look for the commit that is made now."""
        return self.needed is None or len(self.points) in self.needed

    def needed_by(self, deviations: Sequence[Deviation]) -> frozenset[int] | None:
        """Return which commits a run with these deviations needs, where this is the undisturbed one.

        A run that only dies, once, is this one until then: each job's last commit before that is found again, and none
        after it. Sealing all of them is most of what a long run costs.
        """
        if len(deviations) != 1 or deviations[0].action != "kill":
            return None
        dies = (deviations[0].kill, deviations[0].silent)
        before = (
            (point.job, number)
            for number, point in enumerate(self.points)
            if point.what.startswith("commit ") and point.place <= dies
        )
        return frozenset(dict(before).values())

    def distinct(self) -> list[Point]:
        """Return the moments after which a new process goes on differently, or pays for other answers again."""
        first: dict[tuple[float, int, int, int], Point] = {}
        for point, state in zip(self.points, self.states, strict=True):
            first.setdefault(state, point)
        return [*first.values()]

    def absent(self) -> tuple[str, ...]:
        """Return the kills and faults that the run gave no occasion for."""
        kills = [one for one in self._kills() if (one.kill, one.silent) not in self.happened]
        faults = [
            one for one in self.wanted if one.action == "fault" and (one.job, one.reply) not in self.failed
        ]
        return tuple(map(str, [*kills, *faults]))

    def fault_of(self, place: tuple[str, int]) -> Fault | None:
        """Return how the request of a job's turn is to fail, once."""
        wanted = (one for one in self.wanted if one.action == "fault" and (one.job, one.reply) == place)
        found = next(wanted, None)
        if found is None or place in self.failed:
            return None
        self.failed.add(place)
        return found.fault

    def _kills(self) -> list[Deviation]:
        return [one for one in self.wanted if one.action == "kill"]


class PinnedTurns:
    """A provider that says the same at the same turn of a job as it did in the undisturbed run."""

    def __init__(self, provider: Provider, moments: Moments) -> None:
        self._provider = provider
        self._moments = moments
        self._asked: dict[tuple[str, int], int] = {}

    def complete(self, request: ChatRequest) -> RawReply:
        """Answer; a turn that the undisturbed run did not have is refused, as by a provider that knows no such key."""
        moments = self._moments
        place = (request.job_id, request.turn)
        if moments.said is None:
            return self._answered(request, place, self._provider.complete)
        failing = moments.fault_of(place)
        if failing is not None:
            return deliver(FAULTS[failing](), request, manner(None, None))
        answers = moments.said.get(place)
        if answers is None:
            moments.unknown.append(place)
            return deliver(fault(401), request, manner(None, None))
        at = 0 if request.attempt == 1 else self._asked.get(place, 0) + 1
        self._asked[place] = at
        answer = answers[min(at, len(answers) - 1)]
        if isinstance(answer, RawReply):
            return answer
        raise answer

    def _answered(
        self, request: ChatRequest, place: tuple[str, int], complete: Callable[[ChatRequest], RawReply]
    ) -> RawReply:
        answers = self._moments.taken.setdefault(place, [])
        try:
            answers.append(complete(request))
        except ProviderFailure as failure:
            answers.append(failure)
            raise
        came = answers[-1]
        assert isinstance(came, RawReply), "it was answered just now"
        return came
