"""Runs of engine one that depart from the undisturbed one: where a worker may die, and killing it there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from statek_sim import trace as events
from statek_sim.backends.deviation_plan import DeviationPlan, Picks, Place, Point
from statek_sim.backends.pinned_replies import FirstRun, PinnedReplies
from statek_sim.runtime.execution.model_request import REPLY_OVER
from statek_sim.runtime.execution.runtime import Runtime
from statek_sim.runtime.jobs.job import Job, get_current_job
from statek_sim.runtime.state.context import current_execution
from statek_sim.runtime.state.status import WorkerKilled
from statek_sim.scenario.events import Deviation
from statek_sim.trace import Event, event_label


@dataclass(frozen=True, slots=True)
class Death:
    """A kill that happened: where, and how many lines the ledger had."""

    place: Place
    at: float
    ledger: int


Watcher = Callable[[Point], None]
"""Looks at a run at every point where its worker may die."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploring:
    """How a run is explored. `first_run`: what the undisturbed run's jobs were told; None: this is that run.

    `watch` is told of every point; `pick` decides choices that no deviation decides, None: the first job. `commit`
    makes durable what there is, at every point and before a worker dies there. `pinned`: see `PinnedReplies.within`.
    """

    first_run: FirstRun | None = None
    watch: Watcher | None = None
    pick: Picks | None = None
    commit: Callable[[], None] | None = None
    pinned: bool = True


class Deviations:
    """Makes a run depart as `plan` says, and notes its points.

    `ledger` are the lines of the world's ledger: side effects outside of the store.
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
        """Let the run begin: the first point is before everything."""
        self._point("nothing yet", "")

    @property
    def place(self) -> Place:
        """Where the run is."""
        return (len(self._runtime.trace.events), self._silent)

    # -- points ------------------------------------------------------------------------------------------------

    def check_alive(self) -> None:
        """Raise the death that is on its way up the stack: what would clean up there belongs to a dead process."""
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
            # Most points are behind the last kill, and nobody asks for them.
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
            # What was done outside of the store after its last commit stays done.
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
        # Somebody else is at work, the application or the world; the worker dies beside it.
        runtime.crash_worker(reason)

    def restart_at(self, at: float) -> None:
        """Have a new worker start at virtual second `at`, unless the scenario has started one by then."""

        def restart() -> None:
            self._restarts.remove(at)
            if not self._runtime.worker_alive:
                self._runtime.restart_worker()

        self._restarts.append(at)
        self._runtime.at(at, restart)

    # -- from one process to the next ----------------------------------------------------------------------------

    def saved(self) -> dict[str, object]:
        """Return what has happened of the deviations, and which restarts are to come."""
        return {
            **self.plan.saved(),
            "deaths": [(death.place, death.at, death.ledger) for death in self.deaths],
            "restarts": [*self._restarts],
        }

    def resume(self, saved: Mapping[str, Any]) -> Sequence[float]:
        """Go on where another process `saved` it; return when new workers start, for `restart_at`."""
        self.plan.resume(saved)
        self.deaths.extend(Death(*death) for death in saved["deaths"])
        return list(saved["restarts"])

    # -- choices -----------------------------------------------------------------------------------------------

    def _choose(self, jobs: Sequence[Job]) -> int:
        return self.plan.choose([job.id for job in jobs], self._runtime.trace.events)


def killed_after(place: Place) -> str:
    """Return what the trace says of a worker that was killed at a place."""
    return f"killed after event {place[0]}" + (f"+{place[1]}" if place[1] else "")
