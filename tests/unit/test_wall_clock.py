"""Wall-clock reads in user code, which this module's tools are."""

from __future__ import annotations

import asyncio
import datetime
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import pydantic
import pytest

from statek_sim import Agent, Runtime, ScriptedLLM, code, tool
from statek_sim.jobs import VirtualClock
from statek_sim.runtime.tools.documentation import docstr
from statek_sim.wall_clock import frozen_wall_clock

START = datetime.datetime(2026, 1, 1, 9, 0)


def test_user_code_reads_virtual_time_inside_the_block() -> None:
    clock = VirtualClock()
    with frozen_wall_clock(clock):
        assert datetime.datetime.now() == START
        clock.advance(60)
        assert datetime.datetime.now() == START + datetime.timedelta(minutes=1)
        assert datetime.date.today() == START.date()


def test_what_a_thread_or_a_model_of_pydantic_calls_reads_virtual_time_too() -> None:
    async def in_thread() -> float:
        return await anyio.to_thread.run_sync(time.time)

    with frozen_wall_clock(VirtualClock()), ThreadPoolExecutor(1) as pool:
        start = time.time()
        model = pydantic.create_model("Order", at=(float, pydantic.Field(default_factory=time.time)))
        assert pool.submit(time.time).result() == start
        assert anyio.run(in_thread) == start
        assert model().model_dump() == {"at": start}


def test_the_real_clock_is_back_after_the_block_and_the_virtual_one_has_no_followers() -> None:
    clock = VirtualClock()
    with frozen_wall_clock(clock):
        pass
    assert datetime.datetime.now() != START
    assert clock.listeners == []


def test_an_inactive_block_leaves_the_clock_alone() -> None:
    clock = VirtualClock(datetime.datetime(1990, 1, 1, tzinfo=datetime.UTC))
    with frozen_wall_clock(clock, active=False):
        assert datetime.datetime.now().year > 1990
        assert clock.listeners == []


def test_the_clock_that_measures_durations_is_frozen_for_user_code_only() -> None:
    clock = VirtualClock()
    with frozen_wall_clock(clock):
        before = time.monotonic()
        clock.advance(5)
        assert time.monotonic() - before == 5


@tool
async def tick(**kwargs: object) -> str:
    """Read the clock, sleep a minute."""
    told = datetime.datetime.now().isoformat()
    await asyncio.sleep(60)
    return told


def test_a_tool_reads_the_time_of_its_own_step() -> None:
    runtime = Runtime(ScriptedLLM([code("print(tick())").after(5), code("print(tick())"), code("exit(1)")]))
    job = runtime.create_job(Agent("worker", tools=[tick]))
    with frozen_wall_clock(runtime.clock):
        runtime.run()
    assert job.py_env.console[:2] == ["2026-01-01T09:00:05", "2026-01-01T09:01:05"]


@tool
def due(**kwargs: object) -> list[datetime.date]:
    """Return two dates."""
    return [datetime.date(2026, 1, 2), datetime.datetime.now()]


def test_a_variable_keeps_the_dates_of_a_tool() -> None:
    runtime = Runtime(ScriptedLLM([code("found = due()"), code("print(found[0])"), code("exit(1)")]))
    job = runtime.create_job(Agent("worker", tools=[due]))
    with frozen_wall_clock(runtime.clock):
        runtime.run()
        assert [type(made).__name__ for made in due()] == ["date", "datetime"]
    assert job.py_env.console[0] == "2026-01-02"


def test_model_code_reads_virtual_time_without_any_freezing() -> None:
    source = "import datetime\nprint(datetime.datetime.now(), datetime.date.today())"
    runtime = Runtime(ScriptedLLM([code(source), code("exit(1)")]))
    runtime.at(86_400, lambda: runtime.create_job(Agent("worker")))
    runtime.run()
    (job,) = runtime.jobs
    assert job.py_env.console[0] == 'datetime("2026-01-02 09:00") 2026-01-02'


def test_modules_imported_inside_the_block_have_real_dates_in_their_tools(
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = '''
from datetime import date, datetime

def plan(day: date, at: datetime | None = None, **kwargs) -> date:
    """Plan a day.

    Args:
        day: The day.
        at: The time.
    """
    return (day, at)
'''
    module: dict[str, Any] = {"__name__": "calendar_app"}
    with frozen_wall_clock(VirtualClock()):
        exec(compile(source, "calendar_app.py", "exec", dont_inherit=True), module)
        plan = tool(module["plan"])
        assert plan("2026-03-01", "2026-03-02T10:00") == (
            datetime.date(2026, 3, 1),
            datetime.datetime(2026, 3, 2, 10),
        )
        docstr(plan)
    assert capsys.readouterr().out.startswith(
        "def plan(day: date, at: UnionType[datetime, NoneType] = None) -> date:"
    )
