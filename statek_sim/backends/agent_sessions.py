"""Sessions of a scenario's runs of engine two: what is durable of them, and the moments at which their process may die.

What is durable by then is what a new process finds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from statek_sim.agent.checkpoints.seals import Checkpoint, Entry, Kept
from statek_sim.agent.checkpoints.sessions import entry_of
from statek_sim.agent.effects import Receipt, Snapshot
from statek_sim.backends.deviation_plan import DeviationPlan, Point, refuse
from statek_sim.errors import ProviderFailure
from statek_sim.harness.harness import LLM_Harness
from statek_sim.providers.protocol import ChatRequest, Provider, RawReply
from statek_sim.scenario.events import Deviation
from statek_sim.store.codec import decoded, encoded
from statek_sim.trace import LLMReplied, Trace
from statek_sim.usage.totals import TurnUsage
from statek_sim.values import JSON


class Sessions:
    """The sessions of one scenario's jobs, by their names: encoded in memory, as a store would have them on disk."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[Entry, JSON]] = {}
        self._receipts: dict[str, list[Receipt]] = {}

    def committed(self, snapshot: Snapshot) -> None:
        """Make a snapshot durable; `BadInput` for a state that no store keeps."""
        entry = entry_of(snapshot)
        self._entries[snapshot.job] = entry, encoded(entry.state)
        self._receipts[snapshot.job] = []

    def receipted(self, receipt: Receipt) -> None:
        """Make a receipt durable, of a run that commits."""
        if receipt.job in self._entries:
            self._receipts[receipt.job].append(receipt)

    def kept(self, job: str) -> Kept | None:
        """Return what is durable of a job, None when it never committed."""
        if job not in self._entries:
            return None
        entry, state = self._entries[job]
        entry = replace(entry, state=decoded(state))
        return Kept(Checkpoint(session=job, number=1, plan=job, entry=entry), tuple(self._receipts[job]))


SOON: Final = 1.0
"""Virtual seconds until the new process."""

Answers = dict[tuple[str, int], dict[int, list[RawReply | ProviderFailure]]]
"""What the undisturbed run was told: by job and turn, then by how often the scenario's own crashes had come by then;
failed attempts first.
"""


@dataclass(slots=True)
class Moments:
    """Notes the moments of one run, and says where it dies.

    `first_answers` None: this is the undisturbed run, whose answers `taken` collects.
    """

    plan: DeviationPlan = field(default_factory=DeviationPlan)
    """Its choices are between runs that could go on at the same second, and calls that could end before each other."""
    first_answers: Answers | None = None
    points: list[Point] = field(default_factory=list)
    taken: Answers = field(default_factory=dict)
    unknown: list[tuple[str, int]] = field(default_factory=list)
    worked: list[tuple[str, str]] = field(default_factory=list)
    """Every call whose tool did its work: job and tool."""
    lost: list[tuple[str, TurnUsage]] = field(default_factory=list)
    """What was answered to a process that died before it was durable, job by job: paid for, and counted by no run."""
    durable: int = 0
    """How many commits and receipts a new process would find."""
    crashes: int = 0
    """How often the process has died, or would have, as the scenario itself says."""
    states: list[tuple[float, int, int, int, int]] = field(default_factory=list)
    """At each moment the second, what is durable, what tools have done and how many of the scenario's own crashes came,
    which decide how a new process goes on, and how many answers came, which decide what the crash costs.
    """
    harness: LLM_Harness | None = None
    """The limits of the run."""
    _silent: int = 0
    _events: int = -1
    _answers: int = 0

    def reached(self, trace: Trace, at: float, what: str, job: str) -> Deviation | None:
        """Take note of a moment; return the kill that strikes here, if any."""
        events = len(trace.events)
        self._silent = self._silent + 1 if events == self._events else 0
        self._answers += sum(
            isinstance(event, LLMReplied) for event in trace.events[max(0, self._events) : events]
        )
        self._events = events
        place = (events, self._silent)
        self.points.append(Point(place, what, job, at))
        self.states.append((at, self.durable, len(self.worked), self.crashes, self._answers))
        return self.plan.kills.pop(place, None)


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
        if moments.first_answers is None:
            return self._answered(request, place)
        failed = moments.plan.fail(request, request.turn)
        if failed is not None:
            return failed
        answers = _of_life(moments.first_answers.get(place, {}), moments.crashes)
        if not answers:
            moments.unknown.append(place)
            return refuse(request)
        at = 0 if request.attempt == 1 else self._asked.get(place, 0) + 1
        self._asked[place] = at
        answer = answers[min(at, len(answers) - 1)]
        if isinstance(answer, RawReply):
            return answer
        raise answer

    def _answered(self, request: ChatRequest, place: tuple[str, int]) -> RawReply:
        """Let the script answer, and note what it said: this is the undisturbed run."""
        answers = self._moments.taken.setdefault(place, {}).setdefault(self._moments.crashes, [])
        try:
            reply = self._provider.complete(request)
        except ProviderFailure as failure:
            answers.append(failure)
            raise
        answers.append(reply)
        return reply


def _of_life(
    answers: Mapping[int, list[RawReply | ProviderFailure]], crashes: int
) -> list[RawReply | ProviderFailure]:
    """Return what a turn is answered after so many of the scenario's own crashes.

    Where another death has moved a turn to before or after such a crash, it is answered as by the process before, or
    else by the one after.
    """
    before = [life for life in answers if life <= crashes]
    return answers[max(before) if before else min(answers)] if answers else []
