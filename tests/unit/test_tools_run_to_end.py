from __future__ import annotations

import asyncio

import pytest

from statek_sim import Agent, Runtime, ScriptedLLM, tool
from statek_sim.errors import AsyncToolStuck
from statek_sim.jobs import JobStatus
from statek_sim.trace import JobStopped
from statek_sim.virtual_loop import VirtualLoop, run_in
from tests.tables import table_test
from tests.unit.runtime_samples import run_one


async def nap(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "rested"


@table_test("seconds", [0, 0.5, 90.0, 10.0**7])
def test_sleeping_costs_no_real_time(seconds: float) -> None:
    assert run_in(VirtualLoop(), nap(seconds)) == "rested"


def test_parallel_sleeps_come_back_together() -> None:
    async def several() -> tuple[list[str], float]:
        loop = asyncio.get_running_loop()
        rested = await asyncio.gather(nap(1), nap(5), nap(3))
        return list(rested), loop.time()

    assert run_in(VirtualLoop(), several()) == (["rested"] * 3, 5.0)


def test_a_timeout_fires_in_virtual_time() -> None:
    async def impatient() -> str:
        try:
            return await asyncio.wait_for(nap(60), timeout=2)
        except TimeoutError:
            return "gave up"

    assert run_in(VirtualLoop(), impatient()) == "gave up"


def test_an_exception_of_the_coroutine_goes_up() -> None:
    async def fail() -> None:
        await asyncio.sleep(1)
        raise LookupError("nothing there")

    with pytest.raises(LookupError, match=r"^nothing there$"):
        run_in(VirtualLoop(), fail())


def test_waiting_for_what_no_timer_brings_is_an_error_and_not_a_hang() -> None:
    async def stuck() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(
        AsyncToolStuck,
        match=r"^async code awaits something that never happens in virtual time \(sockets, threads and subprocesses",
    ):
        run_in(VirtualLoop(), stuck())


def test_tasks_that_nobody_awaited_do_not_outlive_the_call() -> None:
    ended: list[str] = []

    async def background() -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def leave() -> str:
        task = asyncio.create_task(background())
        await asyncio.sleep(1)
        return "done" if not task.done() else "too late"

    assert run_in(VirtualLoop(), leave()) == "done"
    assert ended == ["cancelled"]


def test_a_running_loop_is_running_again_afterwards() -> None:
    async def outer() -> bool:
        loop = asyncio.get_running_loop()
        run_in(VirtualLoop(), nap(5))
        return asyncio.get_running_loop() is loop

    assert asyncio.run(outer())


def test_no_loop_is_left_behind() -> None:
    run_in(VirtualLoop(), nap(1))
    with pytest.raises(RuntimeError, match=r"^no running event loop$"):
        asyncio.get_running_loop()


@tool
async def slowly(text: str, **kwargs: object) -> str:
    """Print before and after a second."""
    print(f"enter {text}")
    await asyncio.sleep(1)
    print(f"leave {text}")
    return text


def test_prints_of_overlapping_async_tools_reach_their_own_jobs() -> None:
    script = {f"job:{name}": [f"slowly('{name}')", "exit(1)"] for name in "abc"}
    runtime = Runtime(ScriptedLLM(script))
    jobs = [runtime.create_job(Agent("worker", tools=[slowly]), name=name) for name in "abc"]
    assert runtime.run().at == 1.0
    for job in jobs:
        assert job.py_env.console[:3] == [f"enter {job.id}", f"leave {job.id}", job.id]


def test_prints_of_parallel_branches_of_one_tool_reach_its_job() -> None:
    @tool
    async def fan_out(**kwargs: object) -> None:
        """Print from several tasks."""

        async def branch(name: str, seconds: float) -> None:
            await asyncio.sleep(seconds)
            print(name)

        await asyncio.gather(branch("slow", 2), branch("fast", 1))

    job = run_one("fan_out()", "exit(1)", tools=(fan_out,))
    assert job.py_env.console[:2] == ["fast", "slow"]


def test_an_async_tool_delays_its_job_and_nobody_else() -> None:
    script = {"job:slow": ["slowly('x')", "exit(1)"], "job:quick": ["x = 1", "exit(1)"]}
    runtime = Runtime(ScriptedLLM(script))
    slow, quick = (
        runtime.create_job(Agent("worker", tools=[slowly]), name=name) for name in ("slow", "quick")
    )
    runtime.run()
    assert [request.at for request in slow.trace.requests()] == [0.0, 1.0]
    assert [request.at for request in quick.trace.requests()] == [0.0, 0.0]


def test_a_job_ends_when_its_sleeping_tool_has_come_back() -> None:
    runtime = Runtime(ScriptedLLM({"job:a": ["slowly('a'); exit(1)"]}))
    job = runtime.create_job(Agent("worker", tools=[slowly]), name="a")
    runtime.run()
    assert [event.at for event in job.trace if isinstance(event, JobStopped)] == [1.0]


def test_a_worker_that_dies_while_a_tool_sleeps_leaves_no_names_and_no_exit() -> None:
    runtime = Runtime(ScriptedLLM({"job:a": ["x = 1; slowly('a'); exit(x)"]}))
    job = runtime.create_job(Agent("worker", tools=[slowly]), name="a")
    runtime.at(0.5, runtime.crash_worker)
    runtime.run()
    assert (job.status, job.py_env.exit_status, job.py_env.local_state) == (JobStatus.STARTED, None, {})


def test_a_tool_that_waits_for_what_nothing_brings_fails_the_run() -> None:
    @tool
    async def stuck(**kwargs: object) -> None:
        """Wait for an event nobody sets."""
        await asyncio.Event().wait()

    with pytest.raises(AsyncToolStuck):
        run_one("stuck()", "exit(1)", tools=(stuck,))
