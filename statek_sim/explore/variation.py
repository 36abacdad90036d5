"""A run of a scenario on the statek engine, with deviations, and the data that invariants query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from statek_sim.backends.deviation_plan import Choice, Picks, Point, with_deviations
from statek_sim.backends.deviations import Deviations, Exploring, FirstRun
from statek_sim.backends.record import RunError, RunRecord
from statek_sim.backends.reference import ReferenceRun
from statek_sim.explore.state import States
from statek_sim.harness.limits import HarnessLimits
from statek_sim.runtime.execution.runtime import RunOutcome, Runtime
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.status import JobStatus
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.schema import Scenario
from statek_sim.trace import Event, ToolCalled, ToolReturned, WorldChanged

_OF_EVENTS: Final = frozenset({"UnusedEvents", "UnusedReplies"})


@dataclass(frozen=True, slots=True)
class JobEnd:
    """A job at the end of a run: its status, stop reason and result.

    `could_go_on` is whether the future that the job waits for is ready.
    """

    role: str
    parent: str | None
    status: str
    stop: str | None
    exit: str
    waits: bool
    could_go_on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The state at the end of a run: jobs, work items and ledger. Runs with equal endings had the same effect."""

    jobs: tuple[tuple[str, JobEnd], ...]
    items: tuple[tuple[str, str, str | None], ...]
    ledger: tuple[str, ...]
    worker: bool
    settled: bool
    error: str | None

    def job(self, name: str) -> JobEnd | None:
        """Return the job with this name, or None."""
        return dict(self.jobs).get(name)


def _done_by(trace: Iterable[Event]) -> dict[str, Counter[tuple[str, str]]]:
    running: dict[str, list[str]] = {}
    found: dict[str, Counter[tuple[str, str]]] = {}
    for event in trace:
        open_calls = running.setdefault(event.job, [])
        match event:
            case ToolCalled():
                open_calls.append(str(event.name))
            case ToolReturned() if open_calls:
                open_calls.pop()
            case WorldChanged(subject=subject) if subject == "worker":
                running.clear()
            case WorldChanged() if open_calls:
                # A line of the ledger is any value that the model noted, not necessarily a string.
                done = (event.subject, str(event.change).partition(" by ")[0])
                found.setdefault(open_calls[-1], Counter())[done] += 1
    return found


class Variation:
    """A played run, with the data that invariants need.

    `base` is the run without deviations, or None in the base run itself. Only the base run has `points`, where its
    worker may die, and `states`, digests of the state that a new worker would find at each point.
    """

    def __init__(
        self,
        run: ReferenceRun,
        outcome: RunOutcome | None,
        error: RunError | None,
        base: Variation | None,
        *,
        points: Sequence[Point] = (),
        states: Sequence[str] = (),
    ) -> None:
        self._run = run
        self._outcome = outcome
        self.error = error
        self.base = base
        self.points = points
        self.states = states
        self.profile = run.runtime.profile.name

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """This run's deviations from the base run."""
        return self._run.scenario.deviations

    @property
    def scenario(self) -> Scenario:
        """The scenario, including its deviations."""
        return self._run.scenario

    @property
    def runtime(self) -> Runtime:
        """The runtime at the end of the run, for details that are not in the record."""
        return self._run.runtime

    @cached_property
    def events(self) -> Sequence[Event]:
        """The trace."""
        return tuple(self._run.runtime.trace.events)

    @cached_property
    def effects(self) -> Counter[tuple[str, str]]:
        """The effects on the world: ledger lines, and work items claimed, completed or marked as failed."""
        return Counter(
            (event.subject, event.change)
            for event in self.events
            if isinstance(event, WorldChanged) and event.subject != "worker"
        )

    @cached_property
    def tool_calls(self) -> Counter[str]:
        """How often each tool was called."""
        return Counter(str(event.name) for event in self.events if isinstance(event, ToolCalled))

    @cached_property
    def done(self) -> dict[str, Counter[tuple[str, str]]]:
        """Each tool's effects on the world, across all jobs."""
        return _done_by(self.events)

    @cached_property
    def record(self) -> RunRecord:
        """The run's record, for expectations."""
        return self._run.record(self._outcome, self.error)

    @property
    def known(self) -> bool:
        """Whether the script contains every requested reply; a request without a reply crashes its job."""
        return not self._run.replies.unknown

    @cached_property
    def ending(self) -> Ending:
        """The state at the end of the run."""
        runtime, outcome = self._run.runtime, self._outcome
        return Ending(
            jobs=tuple((job.id, _job_end(job)) for job in runtime.jobs),
            items=tuple(
                (item.id, str(item.status), item.owner_id) for item in self._run.world.queue.items.values()
            ),
            ledger=tuple(self._run.world.ledger.lines),
            worker=runtime.worker_alive,
            settled=outcome is not None and outcome.settled,
            error=None if self.error is None or self.error.type in _OF_EVENTS else self.error.type,
        )

    @property
    def repeated(self) -> Sequence[tuple[str, int]]:
        """The replies that were requested and paid for again, each as a job and a one-based number."""
        return self._run.replies.repeated

    @property
    def requests(self) -> Sequence[tuple[str, int]]:
        """Every request except second attempts: its job, and how many of the job's replies were stored before it."""
        return self._run.replies.requests

    @property
    def first_run(self) -> FirstRun:
        """The answers that jobs received in this run, for replay in variations."""
        return self._run.first_run

    @property
    def choices(self) -> Sequence[Choice]:
        """The choices between ready jobs."""
        return self.steering.plan.choices

    @property
    def limits(self) -> HarnessLimits:
        """The run's harness limits."""
        return self._run.runtime.limits

    @cached_property
    def counts(self) -> Sequence[tuple[int, int, int, int]]:
        """Each job's final turns, exceptions, consecutive exceptions and estimated tokens."""
        return [
            (job.num_turns, job.exception_count, job.max_consecutive_exceptions, job.approx_token_usage)
            for job in self._run.runtime.jobs
        ]

    @cached_property
    def tokens(self) -> int:
        """Measured tokens across all jobs."""
        usage = [turn for job in self._run.runtime.jobs for turn in job.usage.turns]
        return sum(turn.measured_prompt + turn.measured_completion for turn in usage)

    @property
    def steering(self) -> Deviations:
        """The objects that applied the run's deviations: the kills, and the plan with the choices."""
        assert self._run.deviations is not None, "every run here is explored"
        return self._run.deviations

    @property
    def absent(self) -> tuple[str, ...]:
        """This run's deviations that never applied."""
        return self.steering.plan.absent()

    @property
    def came(self) -> str:
        """`same` if the run ended like the base run, otherwise `differs`."""
        return "same" if self.base is None or self.ending == self.base.ending else "differs"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the trace."""
        return self._run.runtime.trace.digest()

    def read(self) -> Variation:
        """Compute all cached properties now, before the runtime is closed, and return this variation."""
        for name, member in vars(Variation).items():
            if isinstance(member, cached_property):
                getattr(self, name)
        return self


def _job_end(job: Job) -> JobEnd:
    future = job.awaited_result
    waits = future is not None and job.life.status is not JobStatus.DONE
    return JobEnd(
        role=job.agent.role,
        parent=None if job.parent_job is None else job.parent_job.id,
        status=str(job.status),
        stop=job.stop_reason,
        exit=repr(job.py_env.exit_status)[:200],
        waits=waits,
        could_go_on=waits and future is not None and _ready(future.check_condition),
    )


def _ready(condition: Callable[[], bool]) -> bool:
    try:
        return bool(condition())
    except Exception:  # noqa: BLE001  # the user's condition
        return False


def undisturbed(scenario: Scenario, profile: str) -> Variation:
    """Play a scenario without deviations and record its points, their states and its choices."""
    points: list[Point] = []
    states: list[str] = []
    seen = States()

    def watch(point: Point) -> None:
        points.append(point)
        states.append(seen.of(run, point))

    run = ReferenceRun(with_deviations(scenario, ()), profile, exploring=Exploring(watch=watch))
    with closing(run.runtime):
        return Variation(run, *run.play(allow_network=False), None, points=points, states=states).read()


@contextmanager
def varied(
    base: Variation,
    deviations: Sequence[Deviation],
    *,
    scenario: Scenario | None = None,
    first_run: FirstRun | None = None,
    watch: Callable[[ReferenceRun, Point], None] | None = None,
    pick: Picks | None = None,
) -> Iterator[Variation]:
    """Play a variation, which can be queried inside the block.

    `scenario` and `first_run` replace the base run's scenario and answers.
    """
    run: ReferenceRun
    exploring = Exploring(
        first_run=first_run or base.first_run,
        pick=pick,
        watch=None if watch is None else lambda point: watch(run, point),
    )
    run = ReferenceRun(
        with_deviations(scenario or base.scenario, deviations), base.profile, exploring=exploring
    )
    with closing(run.runtime):
        yield Variation(run, *run.play(allow_network=False), base)
