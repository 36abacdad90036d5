"""Runs that depart from the undisturbed one: where a worker may die, which job may step first, and making it so.

Events of the trace count from 1; what becomes durable without being an event counts from 1 after the event before it.
So a place is a pair: `(17, 0)` is after event 17, `(17, 2)` after the second silent thing that followed it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from statek_sim import trace as events
from statek_sim.backends.pinned_replies import FirstRun, PinnedReplies
from statek_sim.durability.persistence import REPLY_OVER
from statek_sim.errors import BadScenario
from statek_sim.harness.harness import LLM_Harness
from statek_sim.runtime.execution.runtime import Runtime
from statek_sim.runtime.jobs.job import Job, get_current_job
from statek_sim.runtime.state.context import current_execution
from statek_sim.runtime.state.status import WorkerKilled
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.schema import Scenario
from statek_sim.trace import Event, event_label

Place = tuple[int, int]
"""Events so far, and silent things since the last of them."""


class Point(NamedTuple):
    """A place of a run where its worker may die: what was done last, by which job, at which virtual second."""

    place: Place
    what: str
    job: str
    at: float


class Choice(NamedTuple):
    """A choice between jobs that were ready to step, in the order in which they would."""

    after: int
    jobs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Death:
    """A kill that happened: where, and how many lines the ledger had."""

    place: Place
    at: float
    ledger: int


Watcher = Callable[[Point], None]
"""Looks at a run at every point where its worker may die."""

Picks = Callable[[Choice, Sequence[Event]], int]
"""Makes the choices that no deviation makes, from the events so far: returns the place of the job that steps next."""


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
    """Makes a run depart as `wanted`, and notes its points and choices.

    `ledger` are the lines of the world's ledger: side effects outside of the store.
    """

    def __init__(
        self,
        runtime: Runtime,
        replies: PinnedReplies,
        wanted: Sequence[Deviation],
        *,
        ledger: list[str],
        exploring: Exploring,
    ) -> None:
        self._runtime = runtime
        self._replies = replies
        self._ledger = ledger
        self._lines = [] if exploring.first_run is None else exploring.first_run.lines
        self._watch = exploring.watch
        self._pick = exploring.pick
        self._commit = exploring.commit
        self._restarts: list[float] = []
        self._kills: dict[Place, Deviation] = {
            _dies(deviation): deviation for deviation in wanted if deviation.action in ("kill", "lose")
        }
        self._firsts = {deviation.choose: deviation for deviation in wanted if deviation.action == "choose"}
        self._silent = 0
        self._death: WorkerKilled | None = None
        self._append = runtime.trace.add
        self.choices: list[Choice] = []
        self.deaths: list[Death] = []
        self.missed: list[str] = []
        """Choices that a deviation wanted and that were not there to make."""
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

    def check_happened(self) -> tuple[str, ...]:
        """Return the deviations that the run gave no occasion for."""
        left = [*self._kills.values(), *self._firsts.values()]
        return (*self.missed, *map(str, left))

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
        if self._watch is None and not self._kills:
            # Most points are behind the last kill, and nobody asks for them.
            return
        runtime = self._runtime
        if not runtime.worker_alive:
            return
        place = self.place
        if self._watch is not None:
            words = what if isinstance(what, str) else event_label(what)
            self._watch(Point(place, words, job, runtime.clock.now()))
        wanted = self._kills.pop(place, None) if self._kills else None
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
            "kills": [*self._kills],
            "firsts": [*self._firsts],
            "missed": [*self.missed],
            "choices": [(choice.after, choice.jobs) for choice in self.choices],
            "deaths": [(death.place, death.at, death.ledger) for death in self.deaths],
            "restarts": [*self._restarts],
        }

    def resume(self, saved: Mapping[str, Any]) -> Sequence[float]:
        """Go on where another process `saved` it; return when new workers start, for `restart_at`."""
        self._kills = {place: self._kills[place] for place in saved["kills"]}
        self._firsts = {number: self._firsts[number] for number in saved["firsts"]}
        self.missed.extend(saved["missed"])
        self.choices.extend(Choice(*choice) for choice in saved["choices"])
        self.deaths.extend(Death(*death) for death in saved["deaths"])
        return list(saved["restarts"])

    # -- choices -----------------------------------------------------------------------------------------------

    def _choose(self, jobs: Sequence[Job]) -> int:
        choice = Choice(len(self._runtime.trace.events), tuple(job.id for job in jobs))
        self.choices.append(choice)
        wanted = self._firsts.pop(len(self.choices), None) if self._firsts else None
        if wanted is not None:
            if wanted.first in choice.jobs:
                return choice.jobs.index(wanted.first)
            self.missed.append(str(wanted))
        return 0 if self._pick is None else self._pick(choice, self._runtime.trace.events)


def killed_after(place: Place) -> str:
    """Return what the trace says of a worker that was killed at a place."""
    return f"killed after event {place[0]}" + (f"+{place[1]}" if place[1] else "")


def _dies(deviation: Deviation) -> Place:
    """Return where the job's own state ends: of a store that goes back, at its last commit."""
    return (deviation.to_event, 0) if deviation.action == "lose" else (deviation.kill, deviation.silent)


def undeviating(scenario: Scenario) -> Scenario:
    """Return the scenario as it runs undisturbed."""
    return with_deviations(scenario, ())


def with_deviations(scenario: Scenario, deviations: Sequence[Deviation]) -> Scenario:
    """Return the scenario with these deviations in the place of its own."""
    return scenario.model_copy(update={"deviations": tuple(deviations)})


def with_moved_events(scenario: Scenario) -> Scenario:
    """Return the scenario with its external events at the times that its deviations say."""
    moves = {deviation.move: deviation.to for deviation in scenario.deviations if deviation.action == "move"}
    if not moves:
        return scenario
    if max(moves) > len(scenario.events):
        raise BadScenario(
            f"{scenario.path}:{scenario.line}: scenario {scenario.id!r}: deviations: there is no event {max(moves)} to "
            f"move; it has {len(scenario.events)}"
        )
    moved = tuple(
        event.model_copy(update={"at": moves[number], "after": None}) if number in moves else event
        for number, event in enumerate(scenario.events, 1)
    )
    return scenario.model_copy(update={"events": moved})


def with_other_limits(harness: LLM_Harness, deviations: Sequence[Deviation]) -> LLM_Harness:
    """Return the harness with the limits that deviations say."""
    lowered = {
        str(deviation.limit): deviation.value for deviation in deviations if deviation.action == "limit"
    }
    if not lowered:
        return harness
    return LLM_Harness.from_limits(replace(harness.limits, **lowered), rule=harness.rule)
