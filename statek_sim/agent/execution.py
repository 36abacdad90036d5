"""Running a tool's code: how it is called, and what its result, its exception or its silence is to the model."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from statek_sim.agent.effects import Delayed, Invocation, ToolOutcome, ToolStatus, Wait, Waited
from statek_sim.agent.tools.tool import code_of, result_text
from statek_sim.errors import StatekSimError


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


def started(one: Invocation, context: Context) -> Any:
    """Call the tool's code: what it returns is something to be awaited, a `Delayed`, or the result."""
    if code_of(one.run).wants_context:
        return one.run(**one.call.arguments, context=context)
    return one.run(**one.call.arguments)


async def limited(one: Invocation, start: Callable[[], Any]) -> ToolOutcome:
    """Return what comes of a call under asyncio; it is cancelled when it takes longer than it may.

    `start` begins it, or gives what it returned when it was begun before.
    """
    try:
        async with asyncio.timeout(one.timeout) as limit:
            value = start()
            seconds, outcome = outcome_of(await value if inspect.isawaitable(value) else value)
            if seconds:
                await asyncio.sleep(seconds)
            return outcome
    except TimeoutError as error:
        return timed_out(one) if limit.expired() else raised(error)
    except asyncio.CancelledError:
        # The run's own cancellation goes on up; what a tool cancelled inside itself is the tool's failure.
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return ToolOutcome(ToolStatus.CANCELLED, "CancelledError: the tool was cancelled from inside")
    except Exception as error:  # noqa: BLE001  # a user's tool
        return raised(error)


async def waited(effect: Wait) -> Waited:
    """Return what came of waiting; an error of this toolkit concerns the test, and goes on up."""
    try:
        async with asyncio.timeout(effect.seconds):
            return Waited(await effect.what)
    except StatekSimError:
        raise
    except Exception as error:  # noqa: BLE001  # a user's guard
        return Waited(error=error)


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
    if isinstance(value, str) or not inspect.isawaitable(value):
        return ToolOutcome(ToolStatus.RETURNED, result_text(value))
    if inspect.iscoroutine(value):
        value.close()
    return raised(
        TypeError(f"its result is a {type(value).__name__} that nobody awaited; return what it gives")
    )


def raised(error: Exception) -> ToolOutcome:
    """Return what an exception is to the model; one of this toolkit concerns the test, and goes on up."""
    if isinstance(error, StatekSimError):
        raise error
    text = str(error)
    return ToolOutcome(ToolStatus.RAISED, f"{type(error).__name__}: {text}" if text else type(error).__name__)


def timed_out(one: Invocation) -> ToolOutcome:
    """Return what a call is that took too long."""
    return ToolOutcome(ToolStatus.TIMED_OUT, f"TimeoutError: no result within {one.timeout:g} seconds")
