"""The asyncio driver: executes runs with real models, tools and time, in production and in integration tests.

Time comes from the event loop. On a `VirtualLoop`, time is virtual, and a run has the same trace as in a `Simulation`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Never, NoReturn, TypeVar

from statek_sim.agent.approvals import EXPIRED, word_of
from statek_sim.agent.effects import (
    Answer,
    AskModel,
    AskPerson,
    CallTools,
    Commit,
    Delayed,
    Invocation,
    LetTimePass,
    PersonSaid,
    Question,
    Receipt,
    Snapshot,
    ToolOutcome,
    Wait,
    receipt_of,
)
from statek_sim.agent.execution import (
    OWN_FAILURES,
    Context,
    first_of,
    from_outside,
    in_time,
    limited,
    outcome_of,
    part_cancelled,
    raised,
    started,
    waited,
)
from statek_sim.agent.loop import AgentRun
from statek_sim.agent.tools.tool import code_of, read_to_end
from statek_sim.clock import EPOCH
from statek_sim.errors import BadInput, ProviderFailure, ProviderTimeout, StatekSimError, Unanswered
from statek_sim.providers.protocol import (
    CLIENT_TIMEOUT,
    ChatRequest,
    Provider,
    RawReply,
    ask,
    bug_of,
    checked_reply,
)
from statek_sim.virtual_loop import GRACE, closed_late

if TYPE_CHECKING:
    from statek_sim.agent.checkpoints.sessions import Keeper

T = TypeVar("T")

AsyncModel = Callable[[ChatRequest], Awaitable[RawReply]]
"""A coroutine function that sends a request to a model and returns the reply, or raises a `ProviderFailure`."""

AsyncPerson = Callable[[Question], Awaitable[PersonSaid | str | bool | Delayed]]
"""Like `harness.Person`, answers a question, but must not return None. It is cancelled at the deadline."""


AroundTool = Callable[[str, str, str], AbstractContextManager[object]]
"""Returns a context manager to wrap around a tool call, given the run's job, the tool name and the call id."""


class LoopClock:
    """A clock that follows the running event loop, starting at `since` seconds; wall time starts at `start`.

    For a resumed run, `AgentHarness.begin` sets `since` to the time that had already passed.
    """

    def __init__(self, start: datetime = EPOCH, *, since: float = 0.0) -> None:
        self._since = since
        self._start = start.replace(tzinfo=None)
        self._zero: float | None = None

    def go_on_from(self, seconds: float) -> None:
        """Start the clock at `seconds` or later; raises `BadInput` if it is already running and behind that time."""
        if self._zero is None:
            self._since = max(self._since, seconds)
        elif self.now() < seconds:
            raise BadInput(
                f"a session saved at {seconds:g} s cannot continue on a clock that is at {self.now():g} "
                "s; expected a separate LoopClock: setting this one back or forward would distort other measurements"
            )

    def now(self) -> float:
        """Return the seconds since the clock was first read."""
        at = asyncio.get_running_loop().time()
        if self._zero is None:
            self._zero = at
        return self._since + at - self._zero

    def wall(self) -> datetime:
        """Return the current wall time as a naive datetime."""
        return self._start + timedelta(seconds=self.now())


async def holding(keeper: Keeper, work: Coroutine[Any, Any, T]) -> T:
    """Await work, renewing a keeper's lease in the meantime, and return the result: `holding(keeper, driver.run(run))`.

    If another worker takes over the session, the work is cancelled and `Fenced` is raised. Code that blocks the event
    loop also blocks renewals; `AsyncDriver(threads=True)` avoids this by running synchronous functions in threads.
    """

    async def renew() -> NoReturn:
        while True:
            await asyncio.sleep(keeper.every)
            keeper.renew()

    working, renewing = asyncio.ensure_future(work), asyncio.ensure_future(renew())
    try:
        await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else renewing.result()
    finally:
        working.cancel()
        renewing.cancel()
        await asyncio.gather(working, renewing, return_exceptions=True)


def model_of(provider: Provider) -> AsyncModel:
    """Return a coroutine function that sends requests to a `Provider`, sleeping for its latency."""

    async def complete(request: ChatRequest) -> RawReply:
        try:
            reply = ask(provider, request)
        except ProviderFailure as failure:
            if failure.latency:
                await asyncio.sleep(failure.latency)
            raise
        if reply.latency:
            await asyncio.sleep(reply.latency)
        return reply

    return complete


class AsyncDriver:
    """Performs the effects of runs under asyncio.

    A model request fails with `ProviderTimeout` after `timeout` seconds. A tool's coroutine is cancelled at the tool's
    timeout, and all of a run's coroutines are cancelled with the run. A coroutine that ignores cancellation is closed
    after `grace` seconds, and the run continues; calls that cannot even be closed are listed in `left_behind` as `job:
    tool`. A synchronous function blocks the event loop; with `threads`, it runs in a thread, and a timeout ends the
    wait but not the function. `committed` is awaited before a run continues, and `receipted` before a run gets the
    result of a call or question; `person` answers the runs' questions. `around_tool` returns a context manager for each
    tool call, such as a tracer's current span.
    """

    def __init__(
        self,
        model: AsyncModel,
        *,
        clock: Callable[[], float],
        timeout: float | None = CLIENT_TIMEOUT,
        threads: bool = False,
        person: AsyncPerson | None = None,
        committed: Callable[[Snapshot], Awaitable[None]] | None = None,
        around_tool: AroundTool | None = None,
        receipted: Callable[[Receipt], Awaitable[None]] | None = None,
        grace: float = GRACE,
    ) -> None:
        self._model = model
        self._context: Final = Context(clock)
        self._timeout = timeout
        self._threads = threads
        self._person = person
        self._committed = committed
        self._around: AroundTool = around_tool or (lambda *_: nullcontext())
        self._receipted = receipted
        self._grace = grace
        self.left_behind: list[str] = []
        self.tool_worked: Callable[[AgentRun, str], None] | None = None
        """Called when a tool has finished, before its receipt is written."""
        self.after_tool: Callable[[AgentRun, str], None] | None = None
        self.in_order: (
            Callable[[Sequence[Invocation], Mapping[int, Delayed]], Mapping[int, Delayed]] | None
        ) = None
        """Takes calls and their declared durations by position; returns the durations, in order of their ends."""

    async def run(self, run: AgentRun) -> None:
        """Execute a run until it is DONE; call again after pushing a message to the run."""
        steps = run.go()
        answer: Answer = None
        task = asyncio.current_task()
        before = task.cancelling() if task is not None else 0
        try:
            while True:
                if task is not None and task.cancelling() > before:
                    # A model, person or store swallowed the run's cancellation and returned anyway.
                    raise asyncio.CancelledError
                try:
                    effect = steps.send(answer)
                except StopIteration:
                    return
                except asyncio.CancelledError as error:
                    raise part_cancelled(error) from error
                match effect:
                    case AskModel():
                        answer = await self._ask(effect.request)
                    case CallTools():
                        answer = await self._call(run, effect)
                    case LetTimePass():
                        await asyncio.sleep(effect.seconds)
                        answer = None
                    case AskPerson():
                        answer = await self._ask_person(run, effect)
                    case Wait():
                        answer = await waited(effect)
                    case Commit():
                        if self._committed is not None:
                            await _await_callback(self._committed(effect.snapshot()))
                        answer = None
        except BaseException:
            if run.batch is not None:
                run.batch.dropped()
            raise
        finally:
            steps.close()

    async def _ask(self, request: ChatRequest) -> RawReply | ProviderFailure:
        try:
            answering = self._model(request)
            async with asyncio.timeout(self._timeout) as limit:
                with closed_late(answering, self._timeout, self._grace):
                    return checked_reply("the model", await answering)
        except TimeoutError as error:
            if not limit.expired():
                # The model raised its own TimeoutError, which does not mean that the provider was too slow.
                raise bug_of("the model", error) from error
            return ProviderTimeout("", latency=self._timeout or 0.0)
        except ProviderFailure as failure:
            return failure
        except StatekSimError:
            raise
        except OWN_FAILURES as error:
            if from_outside(error):
                raise
            raise bug_of("the model", error) from error

    async def _ask_person(self, run: AgentRun, effect: AskPerson) -> Sequence[PersonSaid]:
        """Ask all questions together.

        If the person's callable raises, the other questions are cancelled and the run ends.
        """
        positions = range(len(effect.questions))
        if len(positions) == 1:
            return [await self._answer(run, effect, 0)]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._answer(run, effect, at)) for at in positions]
        except BaseExceptionGroup as failures:
            raise first_of(failures) from None
        return [task.result() for task in tasks]

    async def _note(self, run: AgentRun, key: str, came: ToolOutcome | PersonSaid) -> None:
        if self._receipted is not None:
            await _await_callback(self._receipted(receipt_of(run.job, key, came, at=self._context.now())))

    async def _answer(self, run: AgentRun, effect: AskPerson, position: int) -> PersonSaid:
        question = effect.questions[position]
        if self._person is None and question.seconds is None:
            raise Unanswered(f"{question.text!r}: the driver has no person to ask; pass one")
        try:
            answering = _nobody() if self._person is None else self._person(question)
            async with asyncio.timeout(question.seconds) as limit:
                with closed_late(answering, question.seconds, self._grace):
                    person_answer = await in_time(await answering)
        except TimeoutError:
            if not limit.expired():
                raise
            person_answer = EXPIRED
        except asyncio.CancelledError as error:
            if from_outside(error):
                raise
            raise part_cancelled(error) from error
        answer = word_of(question, person_answer)
        await self._note(run, question.token, answer)
        effect.said(position, answer)
        return answer

    # -- tools -------------------------------------------------------------------------------------------------

    async def _call(self, run: AgentRun, effect: CallTools) -> Sequence[ToolOutcome]:
        """Execute calls concurrently and return their outcomes; an error from this package cancels them."""
        outcomes: list[ToolOutcome | None] = [None] * len(effect.calls)
        waiting: list[tuple[int, Callable[[], Any] | Delayed]] = []
        for position, invocation in enumerate(effect.calls):
            waits = code_of(invocation.run).waits
            start: Callable[[], Any] = partial(started, invocation, self._context)
            if waits or self._threads:
                waiting.append((position, start if waits else partial(_in_thread, start)))
                continue
            with self._around(run.job, invocation.call.name, invocation.call.id):
                now = await _uncancelled(partial(_at_once, start))
            if isinstance(now, ToolOutcome):
                outcomes[position] = await self._ended(run, effect, position, now)
            else:
                waiting.append((position, now))
        delayed = {position: start for position, start in waiting if isinstance(start, Delayed)}
        if self.in_order is not None and len(delayed) > 1:
            ends = self.in_order(effect.calls, delayed)
            if ends is not delayed:
                waiting = [*(one for one in waiting if one[0] not in delayed), *ends.items()]

        async def wait(position: int, start: Callable[[], Any] | Delayed) -> None:
            call = effect.calls[position].call
            with self._around(run.job, call.name, call.id):
                outcome = await limited(
                    effect.calls[position],
                    (lambda: start) if isinstance(start, Delayed) else start,
                    grace=self._grace,
                    left=lambda: self.left_behind.append(f"{run.job}: {call.name}"),
                )
            outcomes[position] = await self._ended(run, effect, position, outcome)

        if len(waiting) == 1:
            await wait(*waiting[0])
        elif waiting:
            try:
                async with asyncio.TaskGroup() as group:
                    for one in waiting:
                        group.create_task(wait(*one))
            except BaseExceptionGroup as failures:
                raise first_of(failures) from None
        return [outcome for outcome in outcomes if outcome is not None]

    async def _ended(
        self, run: AgentRun, effect: CallTools, position: int, outcome: ToolOutcome
    ) -> ToolOutcome:
        if self.tool_worked is not None and not effect.calls[position].checks:
            self.tool_worked(run, effect.calls[position].call.name)
        await self._note(run, effect.calls[position].key, outcome)
        effect.done(position, outcome)
        if self.after_tool is not None:
            self.after_tool(run, effect.calls[position].call.name)
        return outcome


def _at_once(start: Callable[[], Any]) -> ToolOutcome | Callable[[], Any] | Delayed:
    """Call a synchronous function; return its outcome, or its result if that is an awaitable or a `Delayed`."""
    try:
        value = start()
        if inspect.isawaitable(value):
            return lambda: value
        if isinstance(value, Delayed) and value.seconds:
            return value
        return outcome_of(value)[1]
    except OWN_FAILURES as error:
        return raised(error)


async def _uncancelled(plain: Callable[[], T]) -> T:
    """Return the result of synchronous code, undoing the cancellation if the code cancelled its own task."""
    task = asyncio.current_task()
    before = task.cancelling() if task is not None else 0
    value = plain()
    if task is None or task.cancelling() == before:
        return value
    while task.cancelling() > before:
        task.uncancel()
    try:
        # A cancellation that was already requested is raised at the next await, even though it was undone.
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        if task.cancelling() > before:
            raise  # cancelled by other code in the meantime
    return value


async def _nobody() -> Never:
    """Wait forever; the question's deadline ends the wait."""
    await asyncio.Event().wait()
    raise AssertionError("nothing sets it")


async def _await_callback(work: Awaitable[None]) -> None:
    """Await a user's callback; if its own code raises `CancelledError`, raise `PartBroke` instead."""
    try:
        await work
    except asyncio.CancelledError as error:
        if from_outside(error):
            raise
        raise part_cancelled(error) from error


async def _in_thread(start: Callable[[], Any]) -> object:
    value, error = await asyncio.to_thread(_thread_result, start)
    if error is not None:
        return raised(error)
    return await value if inspect.isawaitable(value) else value


def _thread_result(start: Callable[[], Any]) -> tuple[Any, StopIteration | None]:
    """Return the result of synchronous code, or the `StopIteration` it raised, which a future cannot hold.

    A generator is exhausted here, in the thread, where it does not block the event loop.
    """
    try:
        return read_to_end(start()), None
    except StopIteration as error:
        return None, error
