"""Scenarios of engine two on the asyncio driver, on a loop whose time is virtual."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from functools import partial

from statek_sim.agent.asynchronous import AsyncDriver, model_of
from statek_sim.agent.effects import CommitPoint, PersonSaid, Question, Receipt, Snapshot
from statek_sim.agent.loop import AgentRun
from statek_sim.agent.simulated import Asked
from statek_sim.agent.virtual_loop import VirtualLoop, run_in
from statek_sim.clock import VirtualClock
from statek_sim.providers.protocol import Provider


class OnAsyncio:
    """What a scenario asks of a driver, done by the asyncio one."""

    def __init__(self, provider: Provider, clock: VirtualClock, person: Asked) -> None:
        self._clock = clock
        self._loop = VirtualLoop(moved=clock.advance_to)
        self._driver = AsyncDriver(
            model_of(provider),
            clock=clock.now,
            person=self._asked,
            committed=self._save,
            receipted=self._note,
        )
        self._tasks: dict[asyncio.Task[None], None] = {}
        self.tool_worked: Callable[[AgentRun, str], None] | None = None
        self.committed: Callable[[Snapshot], None] | None = None
        self.receipted: Callable[[Receipt], None] | None = None
        self.passed_over: Callable[[str, CommitPoint], bool] | None = None
        self.choose: Callable[[Sequence[str]], int] | None = None
        self._person = person
        self._open = 0
        self._over: asyncio.Future[bool] | None = None
        self.after_tool: Callable[[AgentRun, str], None] | None = None

    def at(self, seconds: float, act: Callable[[], None]) -> None:
        self._open += 1
        self._loop.call_at(seconds, self._guarded, act)

    def start(self, run: AgentRun) -> None:
        self.at(self._clock.now(), partial(self._begin, run))

    def run(self, until: float) -> bool:
        self._driver.after_tool = self.after_tool
        self._driver.tool_worked = self._worked
        return run_in(self._loop, self._all(until))

    async def _all(self, until: float) -> bool:
        self._over = asyncio.get_running_loop().create_future()
        self._loop.call_at(math.nextafter(until, math.inf), self._end, False)
        self._left()
        return await self._over

    async def _save(self, snapshot: Snapshot) -> None:
        if self.committed is not None:
            self.committed(snapshot)

    async def _note(self, receipt: Receipt) -> None:
        if self.receipted is not None:
            self.receipted(receipt)

    def kill(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _worked(self, run: AgentRun, tool: str) -> None:
        """Tell of a tool that did its work; when the process dies of that, nothing more happens in it."""
        if self.tool_worked is not None:
            self.tool_worked(run, tool)
        task = asyncio.current_task()
        if task is not None and any(one.cancelling() for one in self._tasks):
            raise asyncio.CancelledError

    async def _asked(self, question: Question) -> PersonSaid:
        answer: asyncio.Future[PersonSaid] = asyncio.get_running_loop().create_future()

        def said(told: PersonSaid) -> bool:
            if answer.done():
                return False
            answer.set_result(told)
            return True

        self._person(question, said)
        return await answer

    def _begin(self, run: AgentRun) -> None:
        self._open += 1
        task = self._loop.create_task(self._driver.run(run))
        self._tasks[task] = None
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        if task.cancelled():
            self._left(1)
            return
        failure = task.exception()
        if failure is not None:
            self._fail(failure)
        self._left(1)

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as failure:  # noqa: BLE001  # told to whoever runs the scenario
            self._fail(failure)
        self._left(1)

    def _left(self, done: int = 0) -> None:
        self._open -= done
        if not self._open:
            self._end(True)

    def _end(self, settled: bool) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_result(settled)

    def _fail(self, failure: BaseException) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_exception(failure)
