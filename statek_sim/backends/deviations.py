"""Runs on engine one with deviations: the points where a worker may die, the worker's death, and the model's replies.

A turn of a job gets the same answer in every run, whatever the deviations. A job that is killed before its
reply is stored requests the reply again. By then, the script has advanced, but a model would give the same
answer as before. Therefore, the uninterrupted run's answers are recorded and repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from statek_sim import trace as events
from statek_sim.backends.deviation_plan import DeviationPlan, Picks, Place, Point, refuse
from statek_sim.errors import ProviderFailure, ScriptError
from statek_sim.providers.protocol import ChatRequest, Provider, RawReply
from statek_sim.providers.scripted import lane_key
from statek_sim.runtime.execution.model_request import REPLY_OVER
from statek_sim.runtime.execution.runtime import Runtime
from statek_sim.runtime.jobs.job import Job, get_current_job
from statek_sim.runtime.state.context import current_execution
from statek_sim.runtime.state.status import WorkerKilled
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.schema import Scenario
from statek_sim.trace import Event, event_label

Answer = RawReply | ProviderFailure
"""A provider's result for one request."""


@dataclass(frozen=True, slots=True)
class FirstRun:
    """The answers from an uninterrupted run, keyed by job and one-based reply number; failed attempts come first.

    `roles` and `parents` map job names to role and parent, in creation order.
    """

    answers: dict[tuple[str, int], list[Answer]] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    parents: dict[str, str | None] = field(default_factory=dict)
    lines: list[tuple[int, str]] = field(default_factory=list)
    """Ledger lines, each with the number of its event."""


class PinnedReplies:
    """A provider that repeats recorded answers, but asks `provider` again if the script depends on the requests.

    If `first_run` is None, this is the uninterrupted run, and `taken` collects its answers. `stored` must be
    called for every reply that has become durable. Without `within`, answers are only repeated in another
    process: if the scenario itself kills a worker, the new worker gets new answers from the script.
    """

    def __init__(
        self,
        provider: Provider,
        scenario: Scenario,
        plan: DeviationPlan,
        first_run: FirstRun | None,
        *,
        within: bool = True,
    ) -> None:
        self._provider = provider
        self._plan = plan
        self._first_run = first_run
        self._within = within
        self._owed: dict[str, RawReply] = {}
        self._live = frozenset(key for key, replies in scenario.script.items() if any(map(_looks, replies)))
        self._script = frozenset(scenario.script)
        self._endless = frozenset(
            key for key, replies in scenario.script.items() if replies and replies[-1].repeat == "forever"
        )
        self._stored: dict[str, int] = {}
        self._pending: dict[str, RawReply] = {}
        self._failed: dict[tuple[str, int], int] = {}
        self.taken = FirstRun()
        self.requests: list[tuple[str, int]] = []
        """For every request except retries: the job, and the number of replies stored before the request."""
        self.unknown: list[tuple[str, int]] = []
        """Job and number of each reply that is not in any script; the provider rejected these requests."""
        self.repeated: list[tuple[str, int]] = []
        """Job and number of each reply that was requested and paid for again."""

    @property
    def looks(self) -> bool:
        """Whether any script contains replies that depend on the request."""
        return bool(self._live)

    def progress(self) -> tuple[object, ...]:
        """Return how many answers each job has used, which determines the next answers."""
        return (
            tuple(sorted(self._stored.items())),
            tuple(sorted(self._pending)),
            tuple((place, len(answers)) for place, answers in self.taken.answers.items()),
            tuple(sorted(map(str, self._plan.faults))),
        )

    def saved(self) -> dict[str, object]:
        """Return the state for `resume` in the next process."""
        return {
            "stored": [*self._stored.items()],
            "pending": [(job, reply.body, reply.latency) for job, reply in self._pending.items()],
            "failed": [*self._failed.items()],
            "roles": [*self.taken.roles.items()],
            "parents": [*self.taken.parents.items()],
            # Lists have their own rows, so that a commit only writes the end of a long list.
            "asked": (self.requests, self.unknown, self.repeated),
        }

    def resume(self, saved: Mapping[str, Any]) -> None:
        """Continue from a `saved` state. A job whose last answer was not stored gets the same answer again."""
        self._stored = dict(saved["stored"])
        self._pending = {job: RawReply(body, latency) for job, body, latency in saved["pending"]}
        self._owed = dict(self._pending)
        self._failed = dict(saved["failed"])
        self.taken.roles.update(saved["roles"])
        self.taken.parents.update(saved["parents"])
        # The store knows these lists by now; earlier versions had tuples.
        lists = (noted if isinstance(noted, list) else [*noted] for noted in saved["asked"])
        self.requests, self.unknown, self.repeated = lists

    def created(self, job: str, role: str, parent: str | None) -> None:
        """Record a new job's role and parent."""
        self.taken.roles[job], self.taken.parents[job] = role, parent

    def stored(self, job: str) -> None:
        """Record that the last reply to `job` is durable, or will not be requested again."""
        self._stored[job] = self._stored.get(job, 0) + 1
        self._pending.pop(job, None)
        self._owed.pop(job, None)

    def complete(self, request: ChatRequest) -> RawReply:
        """Return the answer for this turn of the job; a recorded answer is repeated."""
        job = request.job_id
        place = (job, self._stored.get(job, 0) + 1)
        if request.attempt == 1:
            self.requests.append((job, place[1] - 1))
        failed = self._plan.fail(request, place[1])
        if failed is not None:
            return failed
        reply = self._pending.get(job) if self._within else self._owed.pop(job, None)
        if reply is not None:
            self.repeated.append(place)
            return reply
        try:
            reply = self._answer(request, place)
        except ProviderFailure as failure:
            self.taken.answers.setdefault(place, []).append(failure)
            raise
        self.taken.answers.setdefault(place, []).append(reply)
        self._pending[job] = reply
        return reply

    def _answer(self, request: ChatRequest, place: tuple[str, int]) -> RawReply:
        if self._first_run is None:
            return self._provider.complete(request)
        if lane_key(self._script, request) in self._live:
            try:
                return self._provider.complete(request)
            except ScriptError:
                return self._no_reply(request, place)
        job, number = self._twin(request), place[1]
        answers = self._first_run.answers.get((job, number))
        if answers is None and lane_key(self._script, request) in self._endless:
            answers = next(
                reversed([a for (other, _), a in self._first_run.answers.items() if other == job]), None
            )
        if answers is None:
            return self._no_reply(request, place)
        failed = self._failed.get(place, 0)
        answer = answers[min(failed, len(answers) - 1)]
        if isinstance(answer, RawReply):
            return answer
        self._failed[place] = failed + 1
        raise answer

    def _no_reply(self, request: ChatRequest, place: tuple[str, int]) -> RawReply:
        self.unknown.append(place)
        return refuse(request)

    def _twin(self, request: ChatRequest) -> str:
        """Return the job in the uninterrupted run whose replies this request gets.

        This is the job with the same name if the roles agree, otherwise a job with the same role and parent,
        or else one with the same role.
        """
        assert self._first_run is not None, "only a run with deviations asks"
        job, roles, parents = request.job_id, self._first_run.roles, self._first_run.parents
        if roles.get(job) == request.role:
            return job
        alike = [other for other, role in roles.items() if role == request.role]
        siblings = [other for other in alike if parents[other] == self.taken.parents.get(job)]
        return next(iter(siblings or alike), job)


def _looks(reply: object) -> bool:
    """Return whether a scripted reply has a condition or is computed by a callable."""
    states = getattr(reply, "said", None)
    return states is not None and (states("when") or states("call"))


@dataclass(frozen=True, slots=True)
class Death:
    """A kill that happened: the position, the virtual second, and the number of ledger lines at that time."""

    place: Place
    at: float
    ledger: int


Watcher = Callable[[Point], None]
"""Called at every point in a run where the worker may die."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploring:
    """Settings for an explored run.

    `first_run` contains the uninterrupted run's answers, or is None if this is the uninterrupted run. `watch`
    is called at every point. `pick` makes the choices that no deviation makes; if None, the first job is
    chosen. `commit` saves the state durably, at every point and before a worker dies there. `pinned` is
    passed to `PinnedReplies` as `within`.
    """

    first_run: FirstRun | None = None
    watch: Watcher | None = None
    pick: Picks | None = None
    commit: Callable[[], None] | None = None
    pinned: bool = True


class Deviations:
    """Applies the deviations in `plan` to a run, and records the points where the run's worker may die.

    `ledger` holds the lines of the world's ledger, which represent side effects outside the store.
    """

    def __init__(
        self,
        runtime: Runtime,
        replies: PinnedReplies,
        plan: DeviationPlan,
        *,
        ledger: list[str],
        exploring: Exploring,
    ) -> None:
        self._runtime = runtime
        self._replies = replies
        self.plan = plan
        self._ledger = ledger
        self._lines = [] if exploring.first_run is None else exploring.first_run.lines
        self._watch = exploring.watch
        self._commit = exploring.commit
        self._restarts: list[float] = []
        self._silent = 0
        self._death: WorkerKilled | None = None
        self._append = runtime.trace.add
        self.deaths: list[Death] = []
        runtime.trace.add = self._event
        runtime.trace.passed = self._passed
        runtime.choose_by(self._choose)

    def begin(self) -> None:
        """Record the first point, which is before all events."""
        self._point("nothing yet", "")

    @property
    def place(self) -> Place:
        """The run's current position."""
        return (len(self._runtime.trace.events), self._silent)

    # -- points ------------------------------------------------------------------------------------------------

    def check_alive(self) -> None:
        """Re-raise the worker's death while its step is being unwound, so that cleanup code changes nothing."""
        if self._death is not None:
            raise self._death

    def _event(self, event: Event) -> None:
        if isinstance(event, events.WorldChanged) and event.subject == "worker":
            self._death = None
        self.check_alive()
        self._append(event)
        self._silent = 0
        if isinstance(event, events.JobCreated):
            self._replies.created(event.job, event.role, event.parent)
        elif isinstance(event, events.WorldChanged) and event.subject == "ledger":
            self._replies.taken.lines.append((len(self._runtime.trace.events), event.change))
        self._point(event, event.job)

    def _passed(self, what: str, job: str) -> None:
        self._silent += 1
        if what in REPLY_OVER:
            self._replies.stored(job)
        self._point(what, job)

    def _point(self, what: str | Event, job: str) -> None:
        if self._commit is not None:
            self._commit()
        if self._watch is None and not self.plan.kills:
            # Without a watcher, points are only needed for kills.
            return
        runtime = self._runtime
        if not runtime.worker_alive:
            return
        place = self.place
        if self._watch is not None:
            words = what if isinstance(what, str) else event_label(what)
            self._watch(Point(place, words, job, runtime.clock.now()))
        wanted = self.plan.kills.pop(place, None)
        if wanted is not None:
            self._die(wanted, place)

    def _die(self, wanted: Deviation, place: Place) -> None:
        runtime = self._runtime
        self.deaths.append(Death(place, runtime.clock.now(), len(self._ledger)))
        if wanted.action == "lose":
            # Effects outside the store since its last commit are kept.
            self._ledger.extend(line for at, line in self._lines if wanted.to_event < at <= wanted.lose)
        if wanted.restart is not None:
            self.restart_at(runtime.clock.now() + wanted.restart)
        reason = killed_after(place)
        death = WorkerKilled(reason)
        in_step = get_current_job() is not None or runtime.between_steps
        if in_step or current_execution() is not None:
            self._death = death
            runtime.end_tools(death)
        if current_execution() is not None:
            runtime.end_code(death)
        if in_step:
            raise death
        # The worker dies while code from the application or the world is running.
        runtime.crash_worker(reason)

    def restart_at(self, at: float) -> None:
        """Start a new worker at virtual second `at`, unless a worker is alive by then."""

        def restart() -> None:
            self._restarts.remove(at)
            if not self._runtime.worker_alive:
                self._runtime.restart_worker()

        self._restarts.append(at)
        self._runtime.at(at, restart)

    # -- from one process to the next ----------------------------------------------------------------------------

    def saved(self) -> dict[str, object]:
        """Return the deviations that have happened and the pending restarts, for `resume` in the next process."""
        return {
            **self.plan.saved(),
            "deaths": [(death.place, death.at, death.ledger) for death in self.deaths],
            "restarts": [*self._restarts],
        }

    def resume(self, saved: Mapping[str, Any]) -> Sequence[float]:
        """Continue from a `saved` state; return the times of pending restarts, for `restart_at`."""
        self.plan.resume(saved)
        self.deaths.extend(Death(*death) for death in saved["deaths"])
        return list(saved["restarts"])

    # -- choices -----------------------------------------------------------------------------------------------

    def _choose(self, jobs: Sequence[Job]) -> int:
        return self.plan.choose([job.id for job in jobs], self._runtime.trace.events)


def killed_after(place: Place) -> str:
    """Return the text that the trace records for a worker killed at this position."""
    return f"killed after event {place[0]}" + (f"+{place[1]}" if place[1] else "")
