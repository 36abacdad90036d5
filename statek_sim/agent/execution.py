"""Runs tool code and turns its result, exception or timeout into the outcome that the model sees."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from statek_sim.agent.effects import Delayed, Invocation, ToolContext, ToolOutcome, ToolStatus, Wait, Waited
from statek_sim.agent.tools.tool import code_of, result_text
from statek_sim.errors import PartBroke, StatekSimError
from statek_sim.sandbox.ordered_set import without_addresses
from statek_sim.virtual_loop import GRACE, cancelled_in_time, closed, closed_late

OWN_FAILURES: Final = (Exception, SystemExit, asyncio.CancelledError)
"""Exceptions that count as failures of a user's synchronous code, including two that `Exception` does not cover.

A run cannot be cancelled inside synchronous code, and code written as a program ends with `SystemExit`.
"""


@dataclass(frozen=True, slots=True)
class Context:
    """The `ToolContext` that a driver passes to tools; `clock` returns its seconds."""

    clock: Callable[[], float]

    def now(self) -> float:
        """Return the seconds since the run began."""
        return self.clock()

    async def sleep(self, seconds: float) -> None:
        """Wait for this many seconds of event loop time."""
        await asyncio.sleep(seconds)


def started(invocation: Invocation, context: ToolContext) -> Any:
    """Call a tool's code and return its result, which may be an awaitable or a `Delayed`."""
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
    """Execute a call under asyncio and return its outcome; the call is cancelled at its timeout.

    `start` starts the call, or returns the result of one that was already started. The call runs in a separate task, so
    that code which cancels its own task ends only its call. Code that ignores cancellation is closed after `grace`
    seconds; `left` is called for code that cannot be closed and keeps running.
    """
    call = asyncio.create_task(_limited(invocation, start))
    latest = None if invocation.timeout is None else invocation.timeout + grace
    try:
        await asyncio.wait({call}, timeout=latest)
    except asyncio.CancelledError:
        # The run is cancelled, so the call's own outcome no longer matters.
        try:
            over = await cancelled_in_time(call, grace)
        except asyncio.CancelledError:  # cancelled again: stop waiting immediately
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
    """Return whether an error is the cancellation of the running task rather than a failure of the awaited code."""
    if not isinstance(error, asyncio.CancelledError):
        return False
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def part_cancelled(error: asyncio.CancelledError) -> PartBroke:
    """Return the error for synchronous code that raises `CancelledError`, so that it does not end the run silently."""
    return PartBroke(f"a part of the run raised {shown_error(error)}, but nothing cancelled the run")


async def waited(effect: Wait) -> Waited:
    """Perform a `Wait` and return its result. An error from this package is raised, because it concerns the test."""
    limit = asyncio.timeout(effect.seconds)
    try:
        async with limit:
            with closed_late(effect.what, effect.seconds):
                value = await effect.what
        # Code that ignores its cancellation may end late.
        return Waited(error=TimeoutError(), late=True) if limit.expired() else Waited(value)
    except StatekSimError:
        raise
    except OWN_FAILURES as error:
        if from_outside(error):
            raise
        # The awaited code may raise its own TimeoutError, for example from a connection.
        return Waited(error=error, late=limit.expired() and isinstance(error, TimeoutError))


def outcome_of(value: object) -> tuple[float, ToolOutcome]:
    """Return a call's duration in seconds and its outcome, given the value returned by the tool's code."""
    if isinstance(value, ToolOutcome):
        return 0.0, value
    if not isinstance(value, Delayed):
        return 0.0, _returned(value)
    return value.seconds, _returned(value.value) if value.error is None else raised(value.error)


def _returned(value: object) -> ToolOutcome:
    if isinstance(value, str):
        return ToolOutcome(ToolStatus.RETURNED, value)
    if inspect.isasyncgen(value):
        return raised(TypeError("its result is an async generator, which is never read; return its items"))
    if not inspect.isawaitable(value):
        # Exceptions raised while an iterator is read here are the tool's.
        return ToolOutcome(ToolStatus.RETURNED, result_text(value))
    if inspect.iscoroutine(value):
        value.close()
    return raised(
        TypeError(f"its result is a {type(value).__name__} that was never awaited; return its result")
    )


def raised(error: BaseException) -> ToolOutcome:
    """Return the outcome of a call that raised an exception.

    An error from this package is re-raised, because it concerns the test.
    """
    if isinstance(error, asyncio.CancelledError):
        return ToolOutcome(ToolStatus.CANCELLED, "CancelledError: the tool was cancelled from inside")
    if isinstance(error, StatekSimError):
        raise error
    return ToolOutcome(ToolStatus.RAISED, shown_error(error))


def shown_error(error: BaseException) -> str:
    """Format an exception as `Type: message`, or just its type if it has no message, without memory addresses."""
    try:
        words = str(error)
    except Exception as worse:  # noqa: BLE001  # a user's exception
        words = f"its message raised {type(worse).__name__}"
    return without_addresses(f"{type(error).__name__}: {words}".removesuffix(": "))


def timed_out(invocation: Invocation) -> ToolOutcome:
    """Return the outcome of a call that timed out."""
    return ToolOutcome(ToolStatus.TIMED_OUT, f"TimeoutError: no result within {invocation.timeout:g} seconds")


def went_on(invocation: Invocation, grace: float, *, over: bool) -> ToolOutcome:
    """Return the outcome of a call that timed out and did not end when cancelled."""
    end = f"was ended {grace:g} seconds later" if over else "cannot be ended and is still running"
    return ToolOutcome(
        ToolStatus.TIMED_OUT,
        f"{timed_out(invocation).text}; it continued after its cancellation, and {end}",
    )


def first_of(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first failure in an exception group that is not itself a group."""
    first = failures.exceptions[0]
    return first_of(first) if isinstance(first, BaseExceptionGroup) else first


async def in_time(given: object) -> object:
    """Return a person's reply, waiting first if it is a `Delayed`."""
    if not isinstance(given, Delayed):
        return given
    await asyncio.sleep(given.seconds)
    if given.error is not None:
        raise given.error
    return given.value
