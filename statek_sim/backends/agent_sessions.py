"""The durable state of runs on engine two, and the points in a run where its process may die.

A new process sees the state that was durable when the previous process died.
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
from statek_sim.usage.token_usage import TurnUsage
from statek_sim.values import JSON


class Sessions:
    """A scenario's sessions, keyed by job name, in memory and encoded as a store would write them to disk."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[Entry, JSON]] = {}
        self._receipts: dict[str, list[Receipt]] = {}

    def committed(self, snapshot: Snapshot) -> None:
        """Keep a snapshot as its job's durable state; raises `BadInput` for a state that cannot be stored."""
        entry = entry_of(snapshot)
        self._entries[snapshot.job] = entry, encoded(entry.state)
        self._receipts[snapshot.job] = []

    def receipted(self, receipt: Receipt) -> None:
        """Keep a receipt in its job's session, unless the job has never committed and therefore has no session."""
        if receipt.job in self._entries:
            self._receipts[receipt.job].append(receipt)

    def kept(self, job: str) -> Kept | None:
        """Return a job's durable state, or None if the job never committed."""
        if job not in self._entries:
            return None
        entry, state = self._entries[job]
        entry = replace(entry, state=decoded(state))
        return Kept(Checkpoint(session=job, number=1, plan=job, entry=entry), tuple(self._receipts[job]))


SOON: Final = 1.0
"""Virtual seconds between the process's death and the start of a new process."""

Answers = dict[tuple[str, int], dict[int, list[RawReply | ProviderFailure]]]
"""The answers from the uninterrupted run, keyed by job and turn, then by the number of the scenario's crashes
that preceded them. Failed attempts come first.
"""


@dataclass(slots=True)
class Moments:
    """Records the points in a run where the process may die, and decides where it dies.

    If `first_answers` is None, this is the uninterrupted run, and `taken` collects its answers.
    """

    plan: DeviationPlan = field(default_factory=DeviationPlan)
    """The run's kills, faults and choices: which of several runs due in the same second continues first, and
    which of several calls ends first.
    """
    first_answers: Answers | None = None
    points: list[Point] = field(default_factory=list)
    taken: Answers = field(default_factory=dict)
    unknown: list[tuple[str, int]] = field(default_factory=list)
    worked: list[tuple[str, str]] = field(default_factory=list)
    """Job and tool for every call whose tool did its work."""
    lost: list[tuple[str, TurnUsage]] = field(default_factory=list)
    """Job and usage for each answer that a process received but did not commit before it died: paid for, but
    not counted.
    """
    durable: int = 0
    """Number of commits and receipts so far that a new process would see."""
    crashes: int = 0
    """Number of the scenario's own crashes so far, including those in a process that was already dead."""
    states: list[tuple[float, int, int, int, int]] = field(default_factory=list)
    """For each point, the virtual second and four numbers: commits and receipts, calls whose tools did
    their work, the scenario's own crashes, and answers. The first three numbers determine how a new process
    continues; the answers determine what the crash costs.
    """
    harness: LLM_Harness | None = None
    """The run's limits."""
    _silent: int = 0
    _events: int = -1
    _answers: int = 0

    def reached(self, trace: Trace, at: float, what: str, job: str) -> Deviation | None:
        """Record a point; return the kill that happens there, or None."""
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
    """A provider that gives each job turn its answer from the uninterrupted run."""

    def __init__(self, provider: Provider, moments: Moments) -> None:
        self._provider = provider
        self._moments = moments
        self._asked: dict[tuple[str, int], int] = {}

    def complete(self, request: ChatRequest) -> RawReply:
        """Return the answer from the uninterrupted run; reject the request if that run has no such turn."""
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
        """Return the script's answer and record it for later runs."""
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
    """Return a turn's answers after this number of the scenario's own crashes.

    An additional crash may move a turn to the other side of one of the scenario's crashes. In that case, the
    turn gets the answers that it had after fewer crashes or, if there are none, after more crashes.
    """
    before = [life for life in answers if life <= crashes]
    return answers[max(before) if before else min(answers)] if answers else []
