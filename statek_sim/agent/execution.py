"""Running a tool's code: how it is called, and what its result, its exception or its silence is to the model."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from statek_sim.agent.effects import Delayed, Invocation, ToolContext, ToolOutcome, ToolStatus, Wait, Waited
from statek_sim.agent.tools.tool import code_of, result_text
from statek_sim.agent.virtual_loop import GRACE, cancelled_in_time, closed, closed_late
from statek_sim.errors import PartBroke, StatekSimError
from statek_sim.sandbox.ordered_set import without_addresses

OWN_FAILURES: Final = (Exception, SystemExit, asyncio.CancelledError)
"""What plain code of a user raises as its own failure: a run cannot be cancelled in the middle of such code, and code
that was a program's ends by `SystemExit`."""


@dataclass(frozen=True, slots=True)
class Context:
    """The `ToolContext` of a driver."""

    clock: Callable[[], float]
    wait: Callable[[float], Awaitable[Any]]

    def now(self) -> float:
        """Return seconds since the run began."""
        return self.clock()

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        await self.wait(seconds)


def started(invocation: Invocation, context: ToolContext) -> Any:
    """Call the tool's code: what it returns is something to be awaited, a `Delayed`, or the result."""
    name = code_of(invocation.run).context
    if name is not None:
        return invocation.run(**invocation.call.arguments, **{name: context})
    return invocation.run(**invocation.call.arguments)


async def limited(
    invocation: Invocation,
    start: Callable[[], Any],
    *,
    grace: float = GRACE,
    left: Callable[[], None] | None = None,
) -> ToolOutcome:
    """Return what comes of a call under asyncio; it is cancelled when it takes longer than it may.

    `start` begins it, or gives what it returned when it was begun before. The call is a task of its own, so that code
    which cancels the task it runs in ends its call and nothing else. Code that goes on when it is cancelled has `grace`
    seconds more and is closed then; `left` is told of what cannot be closed either and runs on.
    """
    call = asyncio.create_task(_limited(invocation, start))
    latest = None if invocation.timeout is None else invocation.timeout + grace
    try:
        await asyncio.wait({call}, timeout=latest)
    except asyncio.CancelledError:
        # The run is cancelled. Whatever the call makes of that is its own affair.
        try:
            over = await cancelled_in_time(call, grace)
        except asyncio.CancelledError:  # again: nobody wants to wait
            over = await closed(call)
        if not over and left is not None:
            left()
        raise
    if call.done():
        return raised(asyncio.CancelledError()) if call.cancelled() else call.result()
    over = await closed(call)
    if not over and left is not None:
        left()
    return went_on(invocation, grace, over=over)


async def _limited(invocation: Invocation, start: Callable[[], Any]) -> ToolOutcome:
    try:
        async with asyncio.timeout(invocation.timeout) as limit:
            value = start()
            seconds, outcome = outcome_of(await value if inspect.isawaitable(value) else value)
            if seconds:
                await asyncio.sleep(seconds)
            return outcome
    except TimeoutError as error:
        return timed_out(invocation) if limit.expired() else raised(error)
    except asyncio.CancelledError as error:
        if from_outside(error):
            raise
        return raised(error)
    except OWN_FAILURES as error:
        return raised(error)


def from_outside(error: BaseException) -> bool:
    """Return whether an error is the cancellation of the task that runs; else what it awaits has failed."""
    if not isinstance(error, asyncio.CancelledError):
        return False
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def part_cancelled(error: asyncio.CancelledError) -> PartBroke:
    """Return what it is when plain code of a run's part raises `CancelledError`, which would end the run silently."""
    return PartBroke(f"a part of the run raised {shown_error(error)}, though nobody cancelled the run")


async def waited(effect: Wait) -> Waited:
    """Return what came of waiting; an error of this toolkit concerns the test, and goes on up."""
    limit = asyncio.timeout(effect.seconds)
    try:
        async with limit:
            with closed_late(effect.what, effect.seconds):
                value = await effect.what
        # What swallows its cancellation ends when it likes, and not in time.
        return Waited(error=TimeoutError(), late=True) if limit.expired() else Waited(value)
    except StatekSimError:
        raise
    except OWN_FAILURES as error:
        if from_outside(error):
            raise
        # What is waited for may raise a TimeoutError of its own, of a connection for instance.
        return Waited(error=error, late=limit.expired() and isinstance(error, TimeoutError))


def outcome_of(value: object) -> tuple[float, ToolOutcome]:
    """Return what a tool's code returned, and after how many seconds."""
    if isinstance(value, str):
        return 0.0, _returned(value)
    if isinstance(value, ToolOutcome):
        return 0.0, value
    if not isinstance(value, Delayed):
        return 0.0, _returned(value)
    if value.error is not None:
        return value.seconds, raised(value.error)
    return value.seconds, _returned(value.value)


def _returned(value: object) -> ToolOutcome:
    if isinstance(value, str):
        return ToolOutcome(ToolStatus.RETURNED, value)
    if inspect.isasyncgen(value):
        return raised(TypeError("its result is an async generator, which nobody reads; return what it gives"))
    if not inspect.isawaitable(value):
        # What an iterator raises while it is read here is the tool's.
        return ToolOutcome(ToolStatus.RETURNED, result_text(value))
    if inspect.iscoroutine(value):
        value.close()
    return raised(
        TypeError(f"its result is a {type(value).__name__} that nobody awaited; return what it gives")
    )


def raised(error: BaseException) -> ToolOutcome:
    """Return what an exception is to the model; one of this toolkit concerns the test, and goes on up."""
    if isinstance(error, asyncio.CancelledError):
        return ToolOutcome(ToolStatus.CANCELLED, "CancelledError: the tool was cancelled from inside")
    if isinstance(error, StatekSimError):
        raise error
    return ToolOutcome(ToolStatus.RAISED, shown_error(error))


def shown_error(error: BaseException) -> str:
    """Return an exception as `Type: message`, or its type where it says nothing; addresses in it are left out."""
    try:
        words = str(error)
    except Exception as worse:  # noqa: BLE001  # a user's exception
        words = f"its words raised {type(worse).__name__}"
    return without_addresses(f"{type(error).__name__}: {words}".removesuffix(": "))


def timed_out(invocation: Invocation) -> ToolOutcome:
    """Return what a call is that took too long."""
    return ToolOutcome(ToolStatus.TIMED_OUT, f"TimeoutError: no result within {invocation.timeout:g} seconds")


def went_on(invocation: Invocation, grace: float, *, over: bool) -> ToolOutcome:
    """Return what a call is that took too long and did not end when it was cancelled."""
    end = (
        f"was ended {grace:g} seconds later" if over else "cannot be ended: it is left behind and still runs"
    )
    return ToolOutcome(
        ToolStatus.TIMED_OUT,
        f"{timed_out(invocation).text}; it went on when it was cancelled, and {end}",
    )


def first_of(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first failure of a group that is none itself."""
    first = failures.exceptions[0]
    return first_of(first) if isinstance(first, BaseExceptionGroup) else first


async def in_time(given: object) -> object:
    """Return what a person says, after the seconds that they take: a `Delayed` says how many."""
    if not isinstance(given, Delayed):
        return given
    await asyncio.sleep(given.seconds)
    if given.error is not None:
        raise given.error
    return given.value
