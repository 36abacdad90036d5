"""Tools that are code give the same trace in a harness and on an event loop of the caller's."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import Any

from statek_sim.agent.async_driver import AsyncDriver, model_of
from statek_sim.agent.effects import Delayed, ToolContext
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.tools.tool import tool_from
from statek_sim.clock import VirtualClock
from statek_sim.providers.script import Reply, ScriptedCall, text, tool_calls
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.virtual_loop import VirtualLoop, run_in
from tests.tables import table_test


def plain(n: int) -> str:
    """Return, or raise anything."""
    if n % 4 == 0:
        raise (ValueError(n), asyncio.CancelledError(), SystemExit(n))[n % 3]
    return f"plain {n}"


def delayed(n: int) -> Delayed:
    """Return, or raise, after some seconds."""
    return Delayed(n, n % 3) if n % 4 else Delayed(error=KeyError(n), seconds=n % 3)


def lazy(n: int) -> object:
    """Return what is awaited."""
    return asyncio.sleep(n % 3, f"lazy {n}")


async def sleeps(n: int, context: ToolContext) -> str:
    """Sleep, and maybe fail."""
    await context.sleep(n % 4 / 2)
    if n % 5 == 0:
        raise RuntimeError(f"late at {context.now():g}")
    return f"slept until {context.now():g}"


async def gathers(n: int) -> str:
    """Wait for several things."""
    await asyncio.gather(*(asyncio.sleep(at) for at in range(n % 3 + 1)))
    return "gathered"


async def hangs(n: int) -> str:
    """Never end."""
    await asyncio.sleep(1_000)
    return "never"


@table_test("seed", range(40))
def test_tools_that_are_code_end_in_the_same_order_on_both_drivers(seed: int) -> None:
    rng = random.Random(seed)
    tools: list[Any] = [
        plain,
        delayed,
        lazy,
        sleeps,
        gathers,
        replace(tool_from(hangs), timeout=rng.choice([1.0, 2.0])),
    ]
    names = ["plain", "delayed", "lazy", "sleeps", "gathers", "hangs"]
    script: list[Reply] = [
        tool_calls(
            *(ScriptedCall(rng.choice(names), {"n": rng.randint(1, 60)}) for _ in range(rng.randint(1, 4)))
        )
        for _ in range(4)
    ]
    script.append(text("done"))
    simulated = AgentHarness(ScriptedLLM(script), tools=tools).run("Work.")
    clock = VirtualClock()
    run = AgentHarness(tools=tools).begin("Work.", clock=clock)
    driver = AsyncDriver(model_of(ScriptedLLM(script)), clock=clock.now)
    run_in(VirtualLoop(moved=clock.advance_to), driver.run(run))
    assert list(run.trace.events) == list(simulated.trace.events)
    assert run.answer == "done"
