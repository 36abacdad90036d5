"""Futures whose dependencies are unknown are asked on every pass, as STATEK asks all of them."""

from __future__ import annotations

from statek_sim import Agent, Runtime, ScriptedLLM, code, tool
from statek_sim.jobs import FutureError, FutureResult, temporal
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.status import JobStatus


def waiting_until(second: float) -> tuple[Runtime, Job, list[float]]:
    asked: list[float] = []

    def ready(_: FutureResult) -> bool:
        asked.append(runtime.clock.now())
        return runtime.clock.now() >= second

    def value(future: FutureResult) -> str:
        if not ready(future):
            raise FutureError(future)
        return "time"

    @temporal(complement=value, condition=ready)
    @tool
    def alarm(**kwargs: object) -> FutureResult:
        """Wait for a moment."""
        return FutureResult()

    runtime = Runtime(ScriptedLLM([code("exit(alarm())"), code("exit('late')").forever()]))
    job = runtime.create_job(Agent("worker", tools=[alarm]))
    return runtime, job, asked


def test_a_condition_on_the_time_is_asked_until_it_holds() -> None:
    runtime, job, _ = waiting_until(10.0)
    runtime.run()
    assert job.status is JobStatus.DONE
    assert 10.0 <= runtime.clock.now() < 10.4


def test_a_condition_that_never_holds_ends_the_run_after_an_hour_of_virtual_time() -> None:
    runtime, job, asked = waiting_until(10.0**6)
    outcome = runtime.run()
    assert outcome.waiting == (job.id,)
    assert 3599 < runtime.clock.now() < 3602
    assert len(asked) < 12_100
