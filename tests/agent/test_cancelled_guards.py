"""Guards whose own waiting is cancelled: they fail as any other, and nobody takes the run for cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from statek_sim.agent.async_driver import AsyncDriver, LoopClock, model_of
from statek_sim.agent.effects import Guard as LoopGuard
from statek_sim.agent.effects import GuardPoint, Parts, Subject, Verdict
from statek_sim.agent.guards.guard import Find, Finds, Guard
from statek_sim.agent.guards.pipeline import GuardSet, in_loop
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.loop import AgentRun
from statek_sim.errors import PartBroke
from statek_sim.providers.script import text
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.virtual_loop import VirtualLoop, run_in
from tests.tables import table_test

SUBJECT = Subject(point=GuardPoint.INPUT, text="x")
WHY = "g: did not answer (the guard raised CancelledError)"


def plain(subject: Subject) -> Finds:
    """Raise what the result of a cancelled future raises."""
    raise asyncio.CancelledError


def late(subject: Subject) -> Iterator[Find]:
    """Raise when the finds are taken, not when they are asked for."""
    if subject.text:
        raise asyncio.CancelledError
    yield Find("never")


async def waiting(subject: Subject) -> Finds:
    """Wait for something that somebody else cancels."""
    future: asyncio.Future[Finds] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.cancel)
    return await future


def guard(check: Callable[[Subject], Finds | Awaitable[Finds]], fails: str = "closed") -> Guard:
    return Guard(name="g", check=check, points=frozenset({GuardPoint.INPUT}), fails=fails)  # type: ignore[arg-type]


@table_test("check", [plain, late])
@table_test(("fails", "action"), [("closed", "block"), ("open", "warn")])
def test_a_plain_guard_that_is_cancelled_fails_as_it_says(
    check: Callable[[Subject], Finds], fails: str, action: str
) -> None:
    outcome = GuardSet([guard(check, fails)]).run(SUBJECT)
    assert (outcome.action, outcome.reason) == (action, WHY)


def test_an_async_guard_whose_waiting_is_cancelled_fails_in_production() -> None:
    assert asyncio.run(GuardSet([guard(waiting)]).arun(SUBJECT)).reason == WHY
    assert asyncio.run(GuardSet([guard(plain)]).arun(SUBJECT)).reason == WHY


def test_who_waits_for_guards_can_still_be_cancelled() -> None:
    async def long(subject: Subject) -> Finds:
        await asyncio.sleep(60)
        return ()

    async def main() -> bool:
        task = asyncio.ensure_future(GuardSet([guard(long)]).arun(SUBJECT))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled()

    assert asyncio.run(main())


def agent(part: LoopGuard) -> AgentHarness:
    return AgentHarness(ScriptedLLM([text("Hello.")]), parts=Parts(guards=[part]))


def simulated(harness: AgentHarness) -> AgentRun:
    return harness.run("Hi")


def on_asyncio(harness: AgentHarness) -> AgentRun:
    async def main() -> AgentRun:
        assert harness.provider is not None
        clock = LoopClock()
        run = harness.begin("Hi", clock=clock)
        await AsyncDriver(model_of(harness.provider), clock=clock.now).run(run)
        return run

    return run_in(VirtualLoop(), main())


@table_test("drive", [simulated, on_asyncio])
@table_test("check", [plain, late, waiting])
def test_a_run_ends_as_its_cancelled_guard_says(
    drive: Callable[[AgentHarness], AgentRun], check: Callable[[Subject], Finds | Awaitable[Finds]]
) -> None:
    run = drive(agent(in_loop(GuardSet([guard(check)]))))
    assert (run.stop, run.detail) == ("blocked", WHY)
    run = drive(agent(in_loop(GuardSet([guard(check, "open")]))))
    assert (run.stop, run.answer) == ("final", "Hello.")


@pytest.mark.parametrize("drive", [simulated, on_asyncio])
def test_a_bare_guard_that_is_cancelled_is_a_part_that_broke(
    drive: Callable[[AgentHarness], AgentRun],
) -> None:
    def bare(subject: Subject) -> Verdict:
        raise asyncio.CancelledError

    async def waits(subject: Subject) -> Verdict:
        raise asyncio.CancelledError

    for part in (bare, waits):
        with pytest.raises(PartBroke, match="raised CancelledError, but nothing cancelled the run"):
            drive(agent(part))
