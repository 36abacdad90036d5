"""Waiting jobs cost nothing until what they wait for changes."""

from __future__ import annotations

import tracemalloc

from statek_sim import Agent, Runtime, ScriptedLLM, code, tool
from statek_sim.jobs import FutureError, FutureResult, temporal
from statek_sim.runtime.state.status import JobStatus
from statek_sim.trace import Released
from statek_sim.world.world import ExternalEvents
from tests.unit.runtime_samples import UNLIMITED, Gate, idle_runtime


class Doors:
    """Many external events behind one tool `door(name)`; every question of a condition is counted."""

    def __init__(self, count: int) -> None:
        self.asked = 0
        self.events = ExternalEvents([f"door-{n}" for n in range(count)])

        def ready(future: FutureResult) -> bool:
            self.asked += 1
            return bool(self.events[str(future.state_num)].resolved)

        def value(future: FutureResult) -> object:
            event = self.events[str(future.state_num)]
            if not event.resolved:
                raise FutureError(future)
            return event.value

        @temporal(complement=value, condition=ready)
        @tool
        def door(name: str, **kwargs: object) -> FutureResult:
            """Wait for a door."""
            return FutureResult(self.events[name], state_num=name)  # type: ignore[arg-type]  # a label will do

        self.agent = Agent("worker", tools=[door])

    def waiting_jobs(self, count: int) -> Runtime:
        """Return a runtime in which job N waits in its warmup for door N."""
        runtime = idle_runtime()
        for n in range(count):
            runtime.create_job(self.agent, warmup_code=f"door('door-{n}')\nexit({n})")
        runtime.run()
        return runtime


def test_a_signal_wakes_only_the_jobs_that_wait_for_it() -> None:
    doors = Doors(50)
    runtime = doors.waiting_jobs(50)
    runtime.at(1, lambda: doors.events.resolve("door-7", "in"))
    outcome = runtime.run()
    assert doors.asked == 50 + 1, "each once when it begins to wait, for what may be there already"
    assert [event.job for event in runtime.trace.events if isinstance(event, Released)] == ["job-8"]
    assert len(outcome.waiting) == 49


def test_the_work_of_waking_one_job_does_not_grow_with_the_number_of_waiting_jobs() -> None:
    asked = []
    for count in (10, 1000):
        doors = Doors(count)
        runtime = doors.waiting_jobs(count)
        runtime.at(1, lambda doors=doors: doors.events.resolve("door-3", "in"))  # type: ignore[misc]
        runtime.run()
        asked.append(doors.asked - count)
    assert asked == [1, 1]


def test_ten_thousand_waiting_jobs_cost_nothing_while_others_work() -> None:
    gate = Gate()
    runtime = Runtime(ScriptedLLM({"busy": [code("x = 1").after(1).times(20), "exit(1)"]}), harness=UNLIMITED)
    waiting = Agent("waiting", tools=[gate.tool])
    for _ in range(10_000):
        runtime.create_job(waiting, warmup_code="gate()")
    runtime.create_job(Agent("busy"), name="busy")
    outcome = runtime.run()
    assert gate.asked == 10_000, "once each, however long others work"
    assert len(outcome.waiting) == 10_000
    assert sum(job.steps for job in runtime.jobs if job.agent is waiting) == 10_000
    assert runtime.job("busy").steps == 22


def test_jobs_that_wait_for_the_same_signal_go_on_in_the_order_they_began_to_wait() -> None:
    gate = Gate()
    runtime = idle_runtime()
    for name in ("b", "a", "c"):
        runtime.create_job(Agent("worker", tools=[gate.tool]), name=name, warmup_code="gate()\nexit(1)")
    runtime.at(1, gate.open)
    runtime.run()
    assert [event.job for event in runtime.trace.events if isinstance(event, Released)] == ["b", "a", "c"]


def test_a_signal_that_fires_too_early_leaves_the_job_waiting() -> None:
    gate = Gate()
    runtime = idle_runtime()
    job = runtime.create_job(Agent("worker", tools=[gate.tool]), warmup_code="gate()\nexit(1)")
    runtime.at(1, gate.events["gate"].signal.fire)
    assert runtime.run().waiting == (job.id,)
    assert gate.asked == 2


def test_a_job_that_went_on_by_itself_no_longer_waits() -> None:
    # Before 1.3.2 a job enters its waiting block again without being released; another job of the same round
    # opened the gate just before.
    first, second = Gate("first"), Gate("second")
    script = {"job:busy": [code("exit(1)").after(1)], "job:a": [code("exit(1)"), code("second()\nexit(2)")]}
    runtime = Runtime(ScriptedLLM(script), profile="1.2", order="newest", max_concurrency=1)
    agent = Agent("worker", tools=[first.tool, second.tool], context={"open_first": first.open})
    job = runtime.create_job(agent, name="a", warmup_code="first()")
    runtime.at(0.1, lambda: runtime.create_job(agent, name="busy"))
    runtime.at(0.6, lambda: runtime.create_job(agent, name="b", warmup_code="open_first()\nexit(1)"))
    runtime.at(20, lambda: job.push_user_message("again"))
    runtime.at(30, second.open)
    runtime.at(40, first.open)
    outcome = runtime.run()
    assert (job.status, job.py_env.exit_status, outcome.waiting) == (JobStatus.DONE, 2, ())


def test_a_suspended_job_takes_less_than_ten_kibibytes() -> None:
    gate = Gate()
    agent = Agent("worker", "Be brief.", tools=[gate.tool])
    runtime = Runtime(ScriptedLLM([code("x = 1\nanswer = gate()\nprint(answer)").forever()]))
    runtime.create_job(agent)
    runtime.run()
    count = 500
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(count):
            runtime.create_job(agent, message="go on")
        runtime.run()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert all(job.status is JobStatus.SUSPENDED for job in runtime.jobs)
    assert (after - before) / count < 10 * 1024
