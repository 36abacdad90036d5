"""A worker that is alive keeps its session however long a step takes; one that is not loses it, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from statek_sim.agent.async_driver import AsyncDriver, LoopClock, holding, model_of
from statek_sim.agent.checkpoints.seals import Entry
from statek_sim.agent.checkpoints.sessions import Keeper, SessionStore
from statek_sim.agent.effects import Delayed
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.loop import AgentRun
from statek_sim.agent.tools.tool import tool_from
from statek_sim.errors import Fenced
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import Reply, text, tool_call
from statek_sim.providers.scripted import FunctionLLM
from statek_sim.store.files import FileStore
from statek_sim.virtual_loop import VirtualLoop, run_in
from tests.store.conftest import MakeSessions, Seconds
from tests.store.simulated_disk import SimulatedDisk

LONG = 500.0
"""Seconds that the step takes; a lease runs for 60."""


def replies(request: ChatRequest) -> Reply:
    seen = any(message["role"] == "tool" for message in request.messages)
    return text("Done.") if seen else tool_call("dig")


def agent(dig: Callable[[], Any]) -> AgentHarness:
    return AgentHarness(
        FunctionLLM(replies), tools=[tool_from(dig, name="dig", description="Dig.", timeout=1000)]
    )


def store(clock: Callable[[], float]) -> SessionStore:
    return SessionStore(FileStore(SimulatedDisk(), clock=clock))


async def dig_long() -> str:
    await asyncio.sleep(LONG)
    return "deep"


async def worker(
    sessions: SessionStore, *, renews: bool = True, dig: Callable[[], Any] = dig_long
) -> AgentRun:
    """Do what one worker does with the session `s`."""
    clock, harness = LoopClock(), agent(dig)
    clock.now()
    keeper = Keeper(sessions, "s", worker="a", plan="p")
    assert harness.provider is not None
    driver = AsyncDriver(
        model_of(harness.provider), clock=clock.now, committed=keeper.save, receipted=keeper.note
    )
    run = harness.begin("Go", clock=clock, keeper=keeper)
    await (holding(keeper, driver.run(run)) if renews else driver.run(run))
    return run


async def rival(sessions: SessionStore) -> float:
    """Look for a session every 10 seconds; return when one was free."""
    while (lease := sessions.claim_next(worker="b")) is None:
        await asyncio.sleep(10)
    assert lease.worker == "b"
    return asyncio.get_running_loop().time()


def test_a_worker_whose_step_outlasts_the_lease_is_not_fenced_while_it_is_alive() -> None:
    async def both() -> tuple[str | None, bool]:
        sessions = store(asyncio.get_running_loop().time)
        looking = asyncio.ensure_future(rival(sessions))
        run = await worker(sessions)
        return run.answer, looking.done()

    assert run_in(VirtualLoop(), both()) == ("Done.", False)


def test_a_worker_that_does_not_renew_is_fenced_after_its_step() -> None:
    async def both() -> float:
        sessions = store(asyncio.get_running_loop().time)
        looking = asyncio.ensure_future(rival(sessions))
        with pytest.raises(Fenced, match=r"run 's': worker 'a' no longer has the lease"):
            await worker(sessions, renews=False)
        return await looking

    assert run_in(VirtualLoop(), both()) == 60.0


def test_a_session_of_a_worker_that_died_is_free_after_one_lease() -> None:
    async def both() -> float:
        sessions = store(asyncio.get_running_loop().time)
        working = asyncio.ensure_future(worker(sessions))
        looking = asyncio.ensure_future(rival(sessions))
        await asyncio.sleep(90)
        working.cancel()
        return await looking

    # It renewed at 80 seconds for the last time; the rival looks at every tenth.
    assert run_in(VirtualLoop(), both()) == 140.0


def test_work_is_cancelled_when_another_worker_has_the_session() -> None:
    ended: list[float] = []

    async def dig() -> str:
        try:
            await asyncio.sleep(LONG)
        finally:
            ended.append(asyncio.get_running_loop().time())
        return "deep"

    async def both() -> None:
        sessions = store(asyncio.get_running_loop().time)
        working = asyncio.ensure_future(worker(sessions, dig=dig))
        await asyncio.sleep(50)
        sessions.claim("s", worker="a", plan="p")  # the same worker, started again: it need not wait
        with pytest.raises(Fenced):
            await working

    run_in(VirtualLoop(), both())
    assert ended == [60.0]


def test_what_the_work_raises_is_raised_and_nothing_is_left_behind() -> None:
    async def breaking() -> str:
        await asyncio.sleep(30)
        raise KeyError("gone")

    async def both() -> set[asyncio.Task[Any]]:
        keeper = Keeper(store(asyncio.get_running_loop().time), "s", worker="a", plan="p")
        with pytest.raises(KeyError, match="gone"):
            await holding(keeper, breaking())
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert run_in(VirtualLoop(), both()) == set()


def test_the_simulated_driver_renews_in_virtual_time() -> None:
    def dig() -> Delayed:
        return Delayed(LONG, "deep")

    harness = agent(dig)
    disk = SimulatedDisk()
    sessions = SessionStore(FileStore(disk, clock=harness.clock.now))
    claims: list[object] = []

    class Watched(SessionStore):
        def renew(self, lease: Any) -> None:
            claims.append(sessions.claim_next(worker="b"))
            super().renew(lease)

    run = harness.run(
        "Go", keeper=Keeper(Watched(FileStore(disk, clock=harness.clock.now)), "s", worker="a", plan="p")
    )
    assert run.answer == "Done."
    assert claims == [None] * 24  # every 20 seconds of 500, but at the end, where it saves


def test_a_lease_that_was_renewed_runs_anew_and_a_lost_one_is_not_renewed(
    make_sessions: MakeSessions, seconds: Seconds
) -> None:
    one, other = make_sessions(), make_sessions()
    lease = one.claim("s", worker="a", plan="p")
    one.save(lease, Entry(point="began", status="running", at=0.0, state={}))
    seconds.now += 50
    one.renew(lease)
    seconds.now += 50
    assert other.claim_next(worker="b") is None
    seconds.now += 10
    assert other.claim_next(worker="b") is not None
    with pytest.raises(Fenced):
        one.renew(lease)
