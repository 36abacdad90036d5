"""Plants bugs in scheduler, store, handlers, claims and limits, and measures how soon `statek-sim explore` finds them.

`python -m tools.planted_bugs` plants one bug at a time, explores one scenario each, reduces what it finds and prints a
table. A bug counts as found if something fails with it but not without it, so existing failures prove nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from statek_sim.errors import BadInput
from statek_sim.explore.explorer import Bounds, Explorer
from statek_sim.explore.result import reduced
from statek_sim.harness.harness import LLM_Harness
from statek_sim.runtime.execution import job_step
from statek_sim.runtime.execution.job_queue import Rounds, WaitingRoom
from statek_sim.runtime.execution.runtime import Runtime
from statek_sim.runtime.execution.scheduler import Scheduler
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.counters import LLM_Usage
from statek_sim.runtime.state.error_handlers import ErrorHandler, HandlerList
from statek_sim.runtime.state.status import JobStatus
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario
from statek_sim.suite.run import builtin_suites
from statek_sim.usage.token_usage import TurnUsage
from statek_sim.world.queue import ItemStatus, WorkItem, WorkQueue
from statek_sim.world.world import ExternalEvents

MOST_DEVIATIONS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A bug: its location, what is wrong, and the scenario to explore with it."""

    name: str
    part: str
    wrong: str
    scenario: str
    plant: Callable[[], Any]
    depth: int = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """How a planted bug was found: the invariant, the number of runs and the deviations; None if it was not."""

    bug: Planted
    invariant: str | None
    runs: int
    deviations: tuple[Deviation, ...]
    seconds: float


@contextmanager
def replaced(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Replace attributes inside the block."""
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    try:
        for owner, name, value in changes:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in reversed(before):
            setattr(owner, name, value)


# -- scheduler -----------------------------------------------------------------------------------------------------


def _sleepers_forgotten() -> Any:
    def half_open(self: Any, job: Job) -> None:
        if not self._rounds.knows(job):
            self._rounds.enter(job)

    return replaced((Scheduler, "_open", half_open))


def _newborn_forgotten() -> Any:
    def half_open(self: Any, job: Job) -> None:
        waits = job.status in (JobStatus.SUSPENDED, JobStatus.WARMING_UP) and job.awaited_result is not None
        if waits and job not in self._services.waiting:
            self._services.waiting.add(job)

    return replaced((Scheduler, "_open", half_open))


def _one_job_taken() -> Any:
    restart = Scheduler.restart
    return replaced((Scheduler, "restart", lambda self, jobs: restart(self, jobs[:1])))


def _no_second_look() -> Any:
    return replaced((WaitingRoom, "check_all", lambda self: None))


def _flight_kept() -> Any:
    forget = Scheduler._forget

    def keep(self: Any, reason: str) -> None:
        flight = dict(self._in_flight._steps)
        forget(self, reason)
        self._in_flight._steps.update(flight)

    return replaced((Scheduler, "_forget", keep))


def _passed_over_is_lost() -> Any:
    chosen = Rounds._chosen

    def lose(self: Any, choose: Any) -> Job:
        first = min(self._ready)[3]
        picked: Job = chosen(self, choose)
        if picked is not first:
            self._ready = [entry for entry in self._ready if entry[3] is not first]
        return picked

    return replaced((Rounds, "_chosen", lose))


def _third_worker_idle() -> Any:
    restart = Scheduler.restart

    def idle(self: Any, jobs: list[Job]) -> None:
        again = any(getattr(event, "change", "") == "restarted" for event in self._services.trace.events)
        restart(self, [] if again else jobs)

    return replaced((Scheduler, "restart", idle))


def _fault_leaves_job_asleep() -> Any:
    def asleep(job: Any, error: Exception) -> None:
        job.life.status = JobStatus.SUSPENDED

    return replaced((job_step, "_crash", asleep))


# -- store ---------------------------------------------------------------------------------------------------------


def _at_restart(change: Callable[[Job], None]) -> Any:
    restart = Runtime.restart_worker

    def changed(self: Runtime) -> None:
        for job in self.jobs:
            change(job)
        restart(self)

    return replaced((Runtime, "restart_worker", changed))


def _usage_lost() -> Any:
    def forget(job: Job) -> None:
        job.usage = LLM_Usage()

    return _at_restart(forget)


def _charged_again() -> Any:
    def again(job: Job) -> None:
        if job.usage.turns:
            job.usage.add(TurnUsage(*job.usage.turns[-1]))

    return _at_restart(again)


def _wait_lost() -> Any:
    def forget(job: Job) -> None:
        if job.awaited_result is not None:
            job.host.runtime.services.waiting.remove(job)  # type: ignore[attr-defined]  # a Runtime
            job.awaited_result = None

    return _at_restart(forget)


def _early_event_lost() -> Any:
    resolve = ExternalEvents.resolve

    def only_if_heard(self: Any, name: str, value: object) -> None:
        if self[name].signal._listeners:
            resolve(self, name, value)

    return replaced((ExternalEvents, "resolve", only_if_heard))


# -- handlers ------------------------------------------------------------------------------------------------------


def _handlers_before_done() -> Any:
    def end(job: Job, error: Exception) -> None:
        for handler in job.error_handlers:
            job.error_handlers._run(handler, error)
        job.py_env.exit_status = f"Error: {error}"
        job.life.finish(str(getattr(error, "limit", "harness")), str(error))

    return replaced((job_step, "_stop_by_harness", end))


def _registered_twice() -> Any:
    add = HandlerList.add

    def twice(self: Any, function: Any, context: object) -> None:
        add(self, function, context)
        if any(
            event.change == "restarted" for event in self._job.host.trace.events if hasattr(event, "change")
        ):
            self._handlers.append(ErrorHandler(function, context))

    return replaced((HandlerList, "add", twice))


def _handlers_lost() -> Any:
    def forget(job: Job) -> None:
        job.error_handlers._handlers = []

    return _at_restart(forget)


# -- claims --------------------------------------------------------------------------------------------------------


def _guard_says_yes() -> Any:
    return replaced((WorkItem, "held_by", lambda self, owner: True))


def _claims_reopened() -> Any:
    """A new worker returns all of its predecessor's items, including finished ones."""
    restart = Scheduler.restart

    def reopen(self: Any, jobs: list[Job]) -> None:
        for queue in _QUEUES:
            for item in queue.items.values():
                if item.owner_id is not None:
                    queue.release(item)
        restart(self, jobs)

    made = WorkQueue.__init__

    def remember(self: Any, *given: Any, **named: Any) -> None:
        made(self, *given, **named)
        _QUEUES[:] = [self]

    return replaced((WorkQueue, "__init__", remember), (Scheduler, "restart", reopen))


_QUEUES: Final[list[WorkQueue]] = []


def _claimed_again() -> Any:
    """An owner who asks again receives an item it already holds, as if it were new."""

    def claim(self: Any, owner: Any) -> Any:
        for item in self.items.values():
            if item.status is ItemStatus.READY or item.held_by(owner):
                self._change(item, ItemStatus.CLAIMED, owner_id=owner.id)
                return item
        return None

    return replaced((WorkQueue, "claim_next", claim))


# -- limits --------------------------------------------------------------------------------------------------------


def _limit_forgotten_after_restart() -> Any:
    check = LLM_Harness.check_before_step

    def forgetful(self: Any, job: Any) -> None:
        if not any(getattr(event, "change", "") == "restarted" for event in job.host.trace.events):
            check(self, job)

    return replaced((LLM_Harness, "check_before_step", forgetful))


BUGS: Final[tuple[Planted, ...]] = (
    Planted(
        name="sleepers-forgotten",
        part="scheduler",
        wrong="a new worker does not find jobs that had just started waiting",
        scenario="resume-at-statement",
        plant=_sleepers_forgotten,
    ),
    Planted(
        name="newborn-forgotten",
        part="scheduler",
        wrong="a new worker does not find jobs that had just been created",
        scenario="delegate-future-resolves",
        plant=_newborn_forgotten,
    ),
    Planted(
        name="one-job-taken",
        part="scheduler",
        wrong="a new worker continues only the first job",
        scenario="subtask-completed-by-application",
        plant=_one_job_taken,
    ),
    Planted(
        name="no-second-look",
        part="scheduler",
        wrong="a new worker does not check what sleeping jobs wait for",
        scenario="waiting-several-on-one-event",
        plant=_no_second_look,
    ),
    Planted(
        name="flight-kept",
        part="scheduler",
        wrong="a step that died with its worker is treated as still running",
        scenario="resume-two-waits",
        plant=_flight_kept,
    ),
    Planted(
        name="passed-over-is-lost",
        part="scheduler",
        wrong="a job overtaken by another one is lost",
        scenario="subtask-result-wakes-parent",
        plant=_passed_over_is_lost,
    ),
    Planted(
        name="fault-leaves-job-asleep",
        part="scheduler",
        wrong="a job whose request fails permanently sleeps forever",
        scenario="resume-two-waits",
        plant=_fault_leaves_job_asleep,
    ),
    Planted(
        name="third-worker-idle",
        part="scheduler",
        wrong="the second worker restart resumes nothing",
        scenario="claim-stopped-by-turns",
        plant=_third_worker_idle,
        depth=2,
    ),
    Planted(
        name="usage-lost",
        part="store",
        wrong="a job's usage is lost on restart",
        scenario="resume-two-waits",
        plant=_usage_lost,
    ),
    Planted(
        name="charged-again",
        part="store",
        wrong="a restart charges the last answer twice",
        scenario="resume-two-waits",
        plant=_charged_again,
    ),
    Planted(
        name="wait-lost",
        part="store",
        wrong="a job's awaited future is lost on restart",
        scenario="resume-two-waits",
        plant=_wait_lost,
    ),
    Planted(
        name="early-event-lost",
        part="store",
        wrong="an event that arrives before any job waits for it is dropped",
        scenario="resume-two-waits",
        plant=_early_event_lost,
    ),
    Planted(
        name="handlers-before-done",
        part="handlers",
        wrong="handlers run before the job is DONE and stay on the list",
        scenario="claim-stopped-by-turns",
        plant=_handlers_before_done,
    ),
    Planted(
        name="registered-twice",
        part="handlers",
        wrong="a handler is registered twice after a restart",
        scenario="claim-stopped-by-turns",
        plant=_registered_twice,
    ),
    Planted(
        name="handlers-lost",
        part="handlers",
        wrong="the list of handlers does not survive a restart",
        scenario="claim-stopped-by-turns",
        plant=_handlers_lost,
    ),
    Planted(
        name="guard-says-yes",
        part="claims",
        wrong="a cleanup's guard reports that every owner holds the item",
        scenario="claim-processed",
        plant=_guard_says_yes,
    ),
    Planted(
        name="claims-reopened",
        part="claims",
        wrong="a new worker returns finished items",
        scenario="claim-processed",
        plant=_claims_reopened,
    ),
    Planted(
        name="claimed-again",
        part="claims",
        wrong="an owner receives an item that it already holds",
        scenario="claim-processed",
        plant=_claimed_again,
    ),
    Planted(
        name="limit-forgotten-after-restart",
        part="limits",
        wrong="limits are no longer checked after a worker restart",
        scenario="claim-stopped-by-turns",
        plant=_limit_forgotten_after_restart,
    ),
)


@cache
def _built_in() -> dict[str, Scenario]:
    return {scenario.id: scenario for scenario in load_or_fail([builtin_suites()])}


def scenario_named(name: str) -> Scenario:
    """Return a built-in scenario."""
    found = _built_in()
    if name not in found:
        raise BadInput(f"there is no built-in scenario {name!r}")
    return found[name]


def find(bug: Planted, scenario: Scenario) -> Finding:
    """Explore the scenario with and without the bug; reduce the first failure that occurs only with it."""
    profile = scenario.profiles[0]
    bounds = Bounds(depth=bug.depth)
    clean = Explorer(scenario, profile, bounds=bounds)
    clean.explore()
    known = {(name, deviations) for name, deviations, _ in clean.failing}
    started = time.perf_counter()
    with bug.plant():
        explorer = Explorer(scenario, profile, bounds=bounds)
        explorer.explore()
        new = [failure for failure in explorer.failing if (failure[0], failure[1]) not in known]
        seconds = time.perf_counter() - started
        if not new:
            return Finding(bug, None, explorer.runs, (), seconds)
        name, deviations, runs = new[0]
        smallest = reduced(deviations, lambda parts: explorer.breaks(name, parts) is not None)
    return Finding(bug, name, runs, smallest, seconds)


def table(findings: list[Finding]) -> str:
    """Return the findings as a Markdown table."""
    rows = [
        "| bug | in | what is wrong | found by | after runs | where it departs |",
        "| :--- | :--- | :--- | :--- | ---: | :--- |",
    ]
    for finding in findings:
        found = finding.invariant or "not found"
        departs = "; ".join(map(str, finding.deviations))
        rows.append(
            f"| `{finding.bug.name}` | {finding.bug.part} | {finding.bug.wrong} | {found} "
            f"| {finding.runs} | {departs} |"
        )
    return "\n".join(rows)


def main() -> int:
    """Plant all bugs; return 1 if one is not found or needs more than three deviations."""
    findings = []
    for bug in BUGS:
        findings.append(find(bug, scenario_named(bug.scenario)))
        last = findings[-1]
        print(
            f"{bug.name}: {last.invariant or 'NOT FOUND'} after {last.runs} runs, {last.seconds:.2f} s",
            file=sys.stderr,
        )
    print(table(findings))
    return int(
        any(finding.invariant is None or len(finding.deviations) > MOST_DEVIATIONS for finding in findings)
    )


if __name__ == "__main__":
    sys.exit(main())
