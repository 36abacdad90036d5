from __future__ import annotations

import asyncio
from typing import Any

import pytest

from statek_sim import Agent, Runtime, ScriptedLLM, code, tool
from statek_sim.errors import BadInput, RunawayJob
from statek_sim.jobs import FutureResult
from statek_sim.runtime.execution.job_queue import ORDERS, Order
from statek_sim.runtime.state.status import JobStatus
from statek_sim.trace import StepStarted, WorldChanged
from tests.says import line_with
from tests.tables import table_test
from tests.unit.runtime_samples import UNLIMITED, Gate, idle_runtime


def started(runtime: Runtime) -> list[str]:
    return [event.job for event in runtime.trace.events if isinstance(event, StepStarted)]


def three_jobs(order: Order, seed: int = 0, **options: Any) -> Runtime:
    script = [code("x = 1").times(3), code("exit(1)").times(3)]
    runtime = Runtime(ScriptedLLM(script), harness=UNLIMITED, order=order, seed=seed, **options)
    for name in ("a", "b", "c"):
        runtime.create_job(Agent("worker"), name=name)
    return runtime


@pytest.mark.parametrize(("order", "expected"), [("fifo", "abcabcabc"), ("newest", "cbacbacba")])
def test_every_round_gives_each_job_one_step_in_the_order_asked_for(order: Order, expected: str) -> None:
    runtime = three_jobs(order)
    runtime.run()
    assert "".join(started(runtime)) == expected


def test_a_shuffled_order_depends_on_the_seed_alone() -> None:
    def order_of(seed: int) -> str:
        runtime = three_jobs("shuffled", seed)
        runtime.run()
        return "".join(started(runtime))

    orders = [order_of(seed) for seed in range(10)]
    assert orders == [order_of(seed) for seed in range(10)]
    assert len(set(orders)) > 5
    for steps in orders:
        assert all(sorted(steps[n : n + 3]) == ["a", "b", "c"] for n in (0, 3, 6))


def test_the_order_is_one_of_three() -> None:
    assert ORDERS == ("fifo", "newest", "shuffled")
    with pytest.raises(BadInput, match=line_with("order 'lifo'", "fifo, newest, shuffled")):
        three_jobs("lifo")  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [0, -1])
def test_at_least_one_job_may_run(number: int) -> None:
    with pytest.raises(BadInput, match=line_with("max_concurrency", "1 or more", f"got {number}")):
        three_jobs("fifo", max_concurrency=number)


@table_test(("most", "at"), [(1, 6.0), (2, 4.0), (3, 2.0), (100, 2.0)])
def test_jobs_overlap_in_virtual_time_up_to_the_limit(most: int, at: float) -> None:
    runtime = Runtime(ScriptedLLM([code("exit(1)").after(2).times(3)]), max_concurrency=most)
    for _ in range(3):
        runtime.create_job(Agent("worker"))
    assert runtime.run().at == at


def test_events_come_before_steps_that_are_due_at_the_same_moment() -> None:
    order: list[str] = []
    agent = Agent("worker", context={"note": order.append})
    runtime = Runtime(ScriptedLLM([code("note('step')\nexit(1)").after(5)]))
    runtime.create_job(agent)
    runtime.at(5, lambda: order.append("event"))
    runtime.run()
    assert order == ["event", "step"]


def test_events_due_together_happen_in_the_order_they_were_planned() -> None:
    runtime = idle_runtime()
    order: list[str] = []
    for name in ("b", "a", "c"):
        runtime.at(1, lambda name=name: order.append(name))  # type: ignore[misc]
    runtime.run()
    assert order == ["b", "a", "c"]


def test_a_run_stops_at_its_end_and_goes_on_from_there() -> None:
    runtime = Runtime(ScriptedLLM([code("exit(1)").after(10)]))
    job = runtime.create_job(Agent("worker"))
    first = runtime.run(until=4)
    assert (first.at, first.settled, job.status) == (4, False, JobStatus.STARTED)
    second = runtime.run()
    assert (second.at, second.settled, job.status) == (10, True, JobStatus.DONE)


def test_an_event_of_the_past_happens_now() -> None:
    runtime = idle_runtime()
    seen: list[float] = []
    runtime.at(5, lambda: runtime.at(1, lambda: seen.append(runtime.clock.now())))
    runtime.run()
    assert seen == [5]


def test_a_job_that_never_ends_is_a_runaway() -> None:
    runtime = Runtime(ScriptedLLM([code("x = 1").forever()]), harness=UNLIMITED, max_steps=10)
    runtime.create_job(Agent("worker"))
    with pytest.raises(
        RunawayJob,
        match=line_with("job 'job-1'", "step 11", "10 steps per job"),
    ):
        runtime.run()


def test_an_exception_in_a_condition_kills_the_worker_and_a_restart_asks_again() -> None:
    gate = Gate()
    runtime = idle_runtime(script=[code("exit(1)").times(2)])
    job = runtime.create_job(Agent("worker", tools=[gate.tool]), warmup_code="gate()\nexit('in')")
    other = runtime.create_job(Agent("other"))
    runtime.at(1, lambda: gate.break_("gone"))
    runtime.at(2, lambda: runtime.create_job(Agent("late"), name="late"))
    outcome = runtime.run()
    assert (outcome.worker_alive, outcome.waiting) == (False, (job.id,))
    assert (other.status, runtime.job("late").status) == (JobStatus.DONE, JobStatus.READY)
    deaths = [event.change for event in runtime.trace.events if isinstance(event, WorldChanged)]
    assert deaths == ["the worker loop died of RuntimeError: gone"]
    gate.events["gate"].broken = None
    gate.open()
    runtime.restart_worker()
    assert runtime.run().worker_alive
    assert (job.py_env.exit_status, runtime.job("late").status) == ("in", JobStatus.DONE)


def test_a_crash_loses_steps_in_flight_and_a_restart_repeats_the_pending_work() -> None:
    done: list[str] = []
    agent = Agent("worker", context={"note": done.append})
    script = [code("note('one')"), code("note('lost')").after(10), code("note('two')\nexit(1)")]
    runtime = Runtime(ScriptedLLM(script), harness=UNLIMITED)
    job = runtime.create_job(agent)
    runtime.at(5, runtime.crash_worker)
    assert not runtime.run().worker_alive
    assert (done, job.status) == (["one"], JobStatus.STARTED)
    runtime.restart_worker()
    assert runtime.run().worker_alive
    # The reply that was on its way is gone; the code before it ran once more.
    assert done == ["one", "one", "two"]
    assert job.num_turns == 2


def test_a_restart_ends_a_worker_that_is_alive_with_its_steps_in_flight() -> None:
    done: list[str] = []
    agent = Agent("worker", context={"note": done.append})
    script = [code("note('one')"), code("note('lost')").after(10), code("note('two')\nexit(1)")]
    runtime = Runtime(ScriptedLLM(script), harness=UNLIMITED)
    job = runtime.create_job(agent)
    runtime.at(5, runtime.restart_worker)
    assert runtime.run().worker_alive
    assert done == ["one", "one", "two"]
    assert job.num_turns == 2


def test_nothing_runs_while_the_worker_is_dead_but_events_happen() -> None:
    runtime = idle_runtime(script=[code("exit(1)").forever()])
    runtime.crash_worker("power cut")
    job = runtime.create_job(Agent("worker"))
    seen: list[float] = []
    runtime.at(3, lambda: seen.append(runtime.clock.now()))
    assert not runtime.run().worker_alive
    assert (seen, job.status) == ([3], JobStatus.READY)


def test_a_worker_that_dies_in_a_tool_has_done_its_work_and_does_it_again() -> None:
    done: list[str] = []

    @tool
    def charge(**kwargs: object) -> str:
        """Charge once."""
        done.append("charged")
        return "receipt"

    runtime = Runtime(ScriptedLLM([code("x = charge()\nexit(x)")]))
    job = runtime.create_job(Agent("worker", tools=[charge]))
    runtime.crash_worker_in_tool("charge")
    runtime.at(60, runtime.restart_worker)
    runtime.run()
    assert done == ["charged", "charged"]
    assert job.py_env.exit_status == "receipt"


def test_what_a_tool_had_still_to_sleep_is_lost_with_the_worker() -> None:
    @tool
    async def wait(**kwargs: object) -> None:
        """Take twenty seconds."""
        await asyncio.sleep(20)

    runtime = Runtime(ScriptedLLM([code("wait()\nexit(1)")]))
    runtime.create_job(Agent("worker", tools=[wait]))
    runtime.at(10, runtime.crash_worker)
    runtime.at(60, runtime.restart_worker)
    assert runtime.run().at == 80


def test_names_bound_before_the_worker_died_are_lost() -> None:
    runtime = Runtime(ScriptedLLM([code("x = 1\nstop()\nexit(x)")]))
    job = runtime.create_job(Agent("worker", tools=[tool(_stop)]))
    runtime.crash_worker_in_tool("_stop")
    job.add_locals(stop=tool(_stop))
    runtime.run()
    assert "x" not in job.py_env.local_state


def _stop(**kwargs: object) -> None:
    """Be where the worker dies."""


def test_a_future_of_unknown_dependencies_is_asked_at_every_pass() -> None:
    gate = Gate()
    runtime = idle_runtime(script={"busy": [code("x = 1").times(4), "exit(1)"]})

    @tool
    def blind(**kwargs: object) -> object:
        """Wait for the gate without saying so."""
        future = gate.tool()
        assert isinstance(future, FutureResult)
        future.deps = None
        return future

    runtime.create_job(Agent("worker", tools=[blind]), warmup_code="blind()")
    runtime.create_job(Agent("busy"))
    runtime.run(until=0)
    assert gate.asked >= 5
