from __future__ import annotations

import asyncio
import gc
import re
import sys
import weakref

import pytest

from statek_sim import Agent, Runtime, ScriptedLLM, tool
from statek_sim.errors import AsyncToolStuck, ScriptExhausted, StoppedInTool
from statek_sim.harness.harness import LLM_Harness
from statek_sim.jobs import JobStatus, get_current_job
from statek_sim.runtime.execution.suspension import MOST_NESTED
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.trace import ToolReturned

LOG: list[str] = []


@pytest.fixture(autouse=True)
def empty_log() -> None:
    LOG.clear()


@tool
async def work(name: str, seconds: float = 1.0, **kwargs: object) -> str:
    """Write down when it begins, ends and is left."""
    LOG.append(f"{name} begins")
    try:
        await asyncio.sleep(seconds)
        LOG.append(f"{name} is done")
        return name
    finally:
        LOG.append(f"{name} is left")


@tool
def note(text: str, **kwargs: object) -> None:
    """Write something down."""
    LOG.append(text)


def runtime_of(
    script: dict[str, list[str]], *tools: object, profile: str = "docs", **options: object
) -> Runtime:
    """Return a runtime with one job per `job:` of the script."""
    harness = LLM_Harness(20, 20, 20, None)
    runtime = Runtime(
        ScriptedLLM({f"job:{name}": replies for name, replies in script.items()}),
        profile=profile,
        harness=harness,
        **options,  # type: ignore[arg-type]  # options of a runtime
    )
    agent = Agent("worker", tools=[work, note, *tools])  # type: ignore[list-item]  # tools
    for name in script:
        runtime.create_job(agent, name=name)
    return runtime


def returned(runtime: Runtime) -> list[tuple[str, float]]:
    """Return jobs and seconds of tool calls that came back, in order."""
    return [(event.job, event.at) for event in runtime.trace.events if isinstance(event, ToolReturned)]


# -- who runs when -----------------------------------------------------------------------------------------------------


def test_each_await_happens_at_its_own_time() -> None:
    @tool
    async def stages(**kwargs: object) -> None:
        """Tell the time twice."""
        for _ in range(2):
            LOG.append(f"at {asyncio.get_running_loop().time():g}")
            await asyncio.sleep(3)

    runtime = runtime_of({"a": ["stages(); exit(1)"]}, stages)
    runtime.at(1, lambda: LOG.append("outside"))
    runtime.run()
    assert LOG == ["at 0", "outside", "at 3"]


def test_a_tool_that_ended_goes_on_when_those_that_began_to_wait_later_have_ended() -> None:
    runtime = runtime_of({"a": ["work('a', 2); exit(1)"], "b": ["work('b', 5); exit(1)"]})
    runtime.run()
    assert LOG == ["a begins", "b begins", "a is done", "a is left", "b is done", "b is left"]
    assert returned(runtime) == [("b", 5), ("a", 5)]


def test_a_tool_that_waits_on_top_goes_on_at_once() -> None:
    runtime = runtime_of({"a": ["work('a', 5); exit(1)"], "b": ["work('b', 2); exit(1)"]})
    runtime.run()
    assert returned(runtime) == [("b", 2), ("a", 5)]


def test_other_jobs_take_all_their_steps_while_a_tool_sleeps() -> None:
    runtime = runtime_of(
        {"a": ["work('a', 60); exit(1)"], "b": ["x = 1", "y = x + 1", "note(f'b has {y}'); exit(y)"]}
    )
    runtime.run()
    assert LOG.index("b has 2") < LOG.index("a is done")


@pytest.mark.parametrize(
    "code",
    [
        "for x in 'pq':\n    work(x)",
        "def f(x):\n    return work(x)\nf('p')\nf('q')",
        "[work(x) for x in 'pq']",
        "list(map(lambda x: work(x), 'pq'))",
        "try:\n    work('p')\nfinally:\n    work('q')",
    ],
)
def test_model_code_may_call_async_tools_from_wherever_it_can_call(code: str) -> None:
    runtime = runtime_of({"a": [f"{code}\nexit(1)"], "b": ["note('b'); exit(1)"]})
    assert runtime.run().at == 2
    assert [
        *("p begins", "b", "p is done", "p is left"),
        *("q begins", "q is done", "q is left"),
    ] == LOG


def test_jobs_can_wait_for_each_other_through_what_their_tools_share() -> None:
    door: list[asyncio.Event] = []

    @tool
    async def wait_at_door(**kwargs: object) -> str:
        """Wait until it opens."""
        door.append(asyncio.Event())
        await door[0].wait()
        return "through"

    @tool
    async def open_door(**kwargs: object) -> None:
        """Open it after a while."""
        await asyncio.sleep(7)
        door[0].set()

    script = {"a": ["r = wait_at_door()", "exit(r)"], "b": ["open_door(); exit('opened')"]}
    runtime = runtime_of(script, wait_at_door, open_door)
    runtime.run()
    assert [job.py_env.exit_status for job in runtime.jobs] == ["through", "opened"]
    assert returned(runtime) == [("b", 7), ("a", 7)]


def test_a_tool_finds_its_own_job_after_others_have_run() -> None:
    @tool
    async def whose(**kwargs: object) -> str:
        """Name the job before and after a pause, and in a task of its own."""

        async def name() -> str:
            await asyncio.sleep(1)
            job = get_current_job()
            return "" if job is None else job.id

        first = get_current_job()
        return f"{first.id if first else ''} {await name()} {await asyncio.create_task(name())}"

    script = {name: ["r = whose()", "exit(r)"] for name in "abc"}
    runtime = runtime_of(script, whose)
    runtime.run()
    assert [job.py_env.exit_status for job in runtime.jobs] == ["a a a", "b b b", "c c c"]


def test_tasks_that_a_tool_leaves_behind_go_on_after_it() -> None:
    kept: list[asyncio.Task[None]] = []

    @tool
    async def leave_behind(**kwargs: object) -> None:
        """Start something and return."""

        async def later() -> None:
            await asyncio.sleep(5)
            LOG.append("later")

        kept.append(asyncio.get_running_loop().create_task(later()))

    runtime = runtime_of({"a": ["leave_behind(); note('returned'); exit(1)"]}, leave_behind)
    runtime.run()
    assert LOG == ["returned", "later"]


def test_each_step_has_its_own_budget_across_a_pause() -> None:
    loop = "t = 0\nfor i in range(400):\n    t += i\n"
    script = {"a": [f"{loop}work('a', 2)\n{loop}exit(t)"], "b": [f"{loop}work('b', 1)\n{loop}exit(t)"]}
    runtime = runtime_of(script, budget=ExecutionBudget(loop_iterations=1_000))
    runtime.run()
    assert [job.py_env.exit_status for job in runtime.jobs] == [79_800] * 2


def test_a_step_that_paused_has_not_become_cheaper() -> None:
    loop = "for i in range(600):\n    pass\n"
    runtime = runtime_of(
        {"a": [f"{loop}work('a')\n{loop}exit(1)"], "b": ["x = 1", "exit(1)"]},
        budget=ExecutionBudget(loop_iterations=1_000),
    )
    runtime.run()
    stopped = runtime.job("a")
    assert stopped.error is not None
    assert "more than 1,000 loop iterations" in stopped.error.error_message


def test_deep_calls_of_one_job_leave_the_stack_as_it_was() -> None:
    limit = sys.getrecursionlimit()
    deep = "def f(n):\n    return work('deep', 1) if n == 0 else f(n - 1)\nf(150)\n"
    runtime = runtime_of({"a": [f"{deep}exit(1)"], "b": [f"{deep}exit(1)"], "c": ["x = 1", "exit(1)"]})
    runtime.run()
    assert [job.py_env.exit_status for job in runtime.jobs] == [1, 1, 1]
    assert sys.getrecursionlimit() == limit


def test_as_many_tools_as_fit_on_the_stack_can_be_waited_for_at_once() -> None:
    names = [f"j{number}" for number in range(MOST_NESTED + 2)]
    runtime = runtime_of({name: [f"work('{name}')", "exit('ok')"] for name in names})
    runtime.run()
    consoles = [job.py_env.console[0] for job in runtime.jobs]
    assert consoles[:MOST_NESTED] == names[:MOST_NESTED]
    assert (
        consoles[MOST_NESTED:]
        == ["RecursionError: maximum recursion depth exceeded while calling a Python object"] * 2
    )


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def test_an_error_after_a_pause_is_the_codes_error() -> None:
    @tool
    async def break_down(**kwargs: object) -> None:
        """Fail late."""
        await asyncio.sleep(2)
        raise LookupError("gone")

    runtime = runtime_of({"a": ["break_down()", "exit(1)"], "b": ["work('b', 5); exit(1)"]}, break_down)
    runtime.run()
    assert runtime.job("a").py_env.console[0] == "LookupError: gone"
    assert runtime.job("b").py_env.exit_status == 1


def test_a_timeout_cancels_where_it_finds_the_tool() -> None:
    @tool
    async def impatient(**kwargs: object) -> str:
        """Give up after two seconds."""
        try:
            async with asyncio.timeout(2):
                await work.__wrapped__("slow", 60)  # type: ignore[attr-defined]  # the tool's own coroutine
        except TimeoutError:
            return "gave up"
        return "waited"

    runtime = runtime_of({"a": ["r = impatient(); exit(r)"]}, impatient)
    outcome = runtime.run()
    assert (runtime.job("a").py_env.exit_status, outcome.at) == ("gave up", 2)
    assert LOG == ["slow begins", "slow is left"]


def test_a_cancelled_tool_ends_its_job_by_name() -> None:
    @tool
    async def cancelled(**kwargs: object) -> None:
        """Cancel itself."""
        raise asyncio.CancelledError("enough")

    runtime = runtime_of({"a": ["cancelled()"]}, cancelled)
    runtime.run()
    error = runtime.job("a").error
    assert error is not None
    assert error.error_message.startswith("model-written code raised CancelledError")


def test_a_tool_that_nothing_ever_wakes_fails_the_run_whatever_the_code_catches() -> None:
    @tool
    async def stuck(**kwargs: object) -> None:
        """Wait for nothing."""
        await asyncio.Event().wait()

    code = "try:\n    stuck()\nexcept Exception:\n    pass\nexit(1)"
    with pytest.raises(AsyncToolStuck, match="awaits something that never happens in virtual time"):
        runtime_of({"a": [code], "b": ["work('b', 5); exit(1)"]}, stuck).run()


def test_what_fails_the_run_inside_of_a_wait_is_nothing_that_the_waiting_code_can_catch() -> None:
    class Refused(BaseException):
        """As what `pytest.fail` raises."""

    def refuse() -> None:
        raise Refused("no")

    runtime = runtime_of(
        {"a": ["try:\n    work('a', 10)\nexcept BaseException:\n    note('caught')\nnote('on')"]}
    )
    runtime.at(5, refuse)
    with pytest.raises(Refused, match="no"):
        runtime.run()
    assert LOG == ["a begins"]


def test_a_script_that_is_too_short_fails_the_run_while_another_job_waits() -> None:
    with pytest.raises(ScriptExhausted):
        runtime_of({"a": ["work('a', 10); exit(1)"], "b": ["x = 1"]}).run()


def test_a_tool_that_never_lets_time_pass_fails_the_run() -> None:
    @tool
    async def spin(**kwargs: object) -> None:
        """Give way for ever."""
        while True:
            await asyncio.sleep(0)

    with pytest.raises(
        AsyncToolStuck, match=r"has yielded to the event loop 100,000 times without letting time pass"
    ):
        runtime_of({"a": ["spin()"]}, spin).run()


def test_a_tool_that_sleeps_for_ever_fails_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statek_sim.runtime.execution.suspension.MOST_TIMERS", 500)

    @tool
    async def poll(**kwargs: object) -> None:
        """Look every second."""
        while True:
            await asyncio.sleep(1)

    with pytest.raises(AsyncToolStuck, match="500 times while no job took a step, so it never finishes"):
        runtime_of({"a": ["poll()"]}, poll).run()


# -- the death of the worker -------------------------------------------------------------------------------------------


def test_a_kill_in_the_middle_finds_what_the_tool_had_done_by_then() -> None:
    runtime = runtime_of({"a": ["x = 1; work('a', 10); note('after'); exit(x)"]})
    runtime.at(4, runtime.crash_worker)
    outcome = runtime.run()
    job = runtime.job("a")
    assert LOG == ["a begins"]
    assert (job.status, job.py_env.local_state, job.py_env.exit_status) == (JobStatus.STARTED, {}, None)
    assert (outcome.at, outcome.worker_alive) == (4, False)


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    work('a', 10)\nfinally:\n    note('finally')",
        "try:\n    work('a', 10)\nexcept BaseException:\n    note('caught')",
        "try:\n    work('a', 10)\nexcept BaseException:\n    print('caught')",
        "try:\n    work('a', 10)\nexcept BaseException:\n    exit('caught')",
        "for _ in range(3):\n    try:\n        work('a', 10)\n    except BaseException:\n        pass",
    ],
)
def test_code_of_a_dead_worker_does_nothing_more(code: str) -> None:
    runtime = runtime_of({"a": [code]})
    runtime.at(4, runtime.crash_worker)
    runtime.run()
    job = runtime.job("a")
    assert LOG == ["a begins"]
    assert (job.py_env.lines, job.py_env.exit_status, job.status) == ([], None, JobStatus.STARTED)


def test_a_kill_takes_all_jobs_with_it_that_wait_for_tools() -> None:
    script = {name: [f"work('{name}', 10); exit(1)"] for name in "abc"}
    runtime = runtime_of(script)
    runtime.at(4, runtime.crash_worker)
    runtime.run()
    assert LOG == ["a begins", "b begins", "c begins"]
    assert {job.status for job in runtime.jobs} == {JobStatus.STARTED}


def test_after_a_restart_the_interrupted_code_runs_again_from_its_start() -> None:
    script = {
        "a": ["note('one'); work('a', 10); exit('ok')"],
        "b": ["work('b', 1)", "work('b', 9); exit('ok')"],
    }
    runtime = runtime_of(script)
    runtime.at(4, runtime.crash_worker)
    runtime.at(20, runtime.restart_worker)
    outcome = runtime.run()
    assert LOG.count("one") == LOG.count("a begins") == 2
    assert LOG.count("a is done") == 1
    assert [job.py_env.exit_status for job in runtime.jobs] == ["ok", "ok"]
    assert outcome.at == 30


def test_a_kill_when_one_tool_returned_ends_those_that_wait_beneath_it() -> None:
    runtime = runtime_of({"a": ["work('a', 5); exit(1)"], "b": ["work('b', 2); exit(1)"]})
    runtime.crash_worker_in_tool("work", 1)
    runtime.run()
    assert LOG == ["a begins", "b begins", "b is done", "b is left"]


def test_a_tool_that_has_ended_returns_nothing_to_a_worker_that_died_in_what_it_left_behind() -> None:
    @tool
    async def leave(**kwargs: object) -> str:
        """Leave a task behind in which the worker dies."""

        async def behind() -> None:
            runtime.crash_worker()

        left.append(asyncio.get_running_loop().create_task(behind()))
        return "over"

    left: list[asyncio.Task[None]] = []
    runtime = runtime_of({"a": ["leave(); note('after'); exit('ok')"]}, leave)
    runtime.run()
    assert LOG == []
    assert (runtime.job("a").status, runtime.job("a").py_env.exit_status) == (JobStatus.STARTED, None)


def test_a_worker_restarted_while_alive_loses_its_tools_too() -> None:
    runtime = runtime_of({"a": ["work('a', 10); exit('ok')"]})
    runtime.at(4, runtime.restart_worker)
    outcome = runtime.run()
    assert LOG == ["a begins", "a begins", "a is done", "a is left"]
    assert outcome.at == 14


# -- runs with an end in time ------------------------------------------------------------------------------------------

STOPPED = re.escape(
    "the run cannot end at virtual second 3, because a job is awaiting an async tool; let the run continue, and "
    "inspect that second from an action: at(3, ...)"
)


def test_a_run_cannot_stop_in_the_middle_of_a_tool() -> None:
    runtime = runtime_of({"a": ["work('a', 10); exit('ok')"], "b": ["work('b', 5)", "exit('ok')"]})
    with pytest.raises(StoppedInTool, match=f"^{STOPPED}$"):
        runtime.run(until=3)
    assert LOG == ["a begins", "b begins"]
    assert [(job.status, job.py_env.exit_status) for job in runtime.jobs] == [(JobStatus.STARTED, None)] * 2


def test_an_action_looks_at_a_second_in_the_middle_of_a_tool() -> None:
    runtime = runtime_of({"a": ["work('a', 10); exit('ok')"], "b": ["work('b', 5)", "exit('ok')"]})
    seen: list[list[object]] = []
    for second in (3, 7):
        runtime.at(second, lambda: seen.append([*LOG, runtime.job("a").status]))
    outcome = runtime.run()
    begun = ["a begins", "b begins"]
    assert seen == [[*begun, JobStatus.STARTED], [*begun, "b is done", "b is left", JobStatus.STARTED]]
    assert (outcome.settled, outcome.at) == (True, 10)
    assert [job.py_env.exit_status for job in runtime.jobs] == ["ok", "ok"]


def test_a_run_can_stop_where_no_tool_is_awaited_and_go_on() -> None:
    runtime = runtime_of({"a": ["work('a', 10); exit('ok')"], "b": ["work('b', 5)", "exit('ok')"]})
    runtime.at(20, lambda: LOG.append("later"))
    assert not runtime.run(until=15).settled
    assert [job.py_env.exit_status for job in runtime.jobs] == ["ok", "ok"]
    outcome = runtime.run()
    assert (outcome.settled, outcome.at) == (True, 20)


def test_runs_that_end_in_a_tool_leave_pythons_recursion_limit_alone() -> None:
    limit = sys.getrecursionlimit()
    for _ in range(2):
        runtime = runtime_of({"a": ["work('a', 10); exit('ok')"], "b": ["work('b', 5); exit('ok')"]})
        with pytest.raises(StoppedInTool):
            runtime.run(until=3)
        assert sys.getrecursionlimit() == limit


def test_a_run_that_ends_in_the_middle_leaves_nothing_behind() -> None:
    runtime = runtime_of({"a": ["work('a', 10); exit('ok')"]})
    with pytest.raises(StoppedInTool):
        runtime.run(until=3)
    assert LOG == ["a begins"]
    runtime.close()
    assert LOG == ["a begins", "a is left"]
    job = weakref.ref(runtime.job("a"))
    del runtime
    gc.collect()
    assert job() is None


# -- output ------------------------------------------------------------------------------------------------------------


@tool
async def talk(name: str, seconds: float, **kwargs: object) -> None:
    """Print before and after a pause."""
    print(f"enter {name}")
    await asyncio.sleep(seconds)
    print(f"leave {name}")


@pytest.mark.parametrize(
    ("profile", "a", "b"),
    [
        ("docs", ["enter a", "leave a"], ["enter b", "leave b"]),
        ("1.4", ["enter a"], ["enter b", "leave a", "leave b"]),
        ("1.2", ["enter a"], ["enter b", "leave a", "leave b"]),
    ],
)
def test_prints_go_to_the_own_job_or_to_whoever_waits_on_top(
    profile: str, a: list[str], b: list[str]
) -> None:
    script = {"a": ["x = talk('a', 2)", "exit(1)"], "b": ["x = talk('b', 5)", "exit(1)"]}
    runtime = runtime_of(script, talk, profile=profile)
    runtime.run()
    assert [job.py_env.console[:-1] for job in runtime.jobs] == [a, b]
