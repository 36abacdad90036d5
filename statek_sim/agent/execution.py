"""Running a tool's code: how it is called, and what its result, its exception or its silence is to the model."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from statek_sim.agent.effects import Delayed, Invocation, ToolFunction, ToolOutcome, ToolStatus
from statek_sim.agent.tools.tool import result_text, wants_context
from statek_sim.errors import StatekSimError

Person = Callable[[str], tuple[str, float]]
"""Answers a question: with a text, after so many seconds."""


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


@lru_cache(maxsize=4096)
def traits(function: ToolFunction) -> tuple[bool, bool]:
    """Return whether a tool's code is a coroutine function, and whether it wants the context."""
    return inspect.iscoroutinefunction(function), wants_context(function)


def started(one: Invocation, context: Context) -> Any:
    """Call the tool's code: a coroutine, a `Delayed`, or the result."""
    if traits(one.run)[1]:
        return one.run(**one.call.arguments, context=context)
    return one.run(**one.call.arguments)


async def limited(one: Invocation, context: Context) -> ToolOutcome:
    """Return what comes of a call under asyncio; it is cancelled when it takes longer than it may."""
    try:
        async with asyncio.timeout(one.timeout) as limit:
            value = started(one, context)
            seconds, outcome = outcome_of(await value if inspect.isawaitable(value) else value)
            if seconds:
                await asyncio.sleep(seconds)
            return outcome
    except TimeoutError as error:
        return timed_out(one) if limit.expired() else raised(error)
    except Exception as error:  # noqa: BLE001  # a user's tool
        return raised(error)


def outcome_of(value: object) -> tuple[float, ToolOutcome]:
    """Return what a tool's code returned, and after how many seconds."""
    if isinstance(value, ToolOutcome):
        return 0.0, value
    if not isinstance(value, Delayed):
        return 0.0, ToolOutcome(ToolStatus.RETURNED, result_text(value))
    if value.error is not None:
        return value.seconds, raised(value.error)
    return value.seconds, ToolOutcome(ToolStatus.RETURNED, result_text(value.value))


def raised(error: Exception) -> ToolOutcome:
    """Return what an exception is to the model; one of this toolkit concerns the test, and goes on up."""
    if isinstance(error, StatekSimError):
        raise error
    text = str(error)
    return ToolOutcome(ToolStatus.RAISED, f"{type(error).__name__}: {text}" if text else type(error).__name__)


def timed_out(one: Invocation) -> ToolOutcome:
    """Return what a call is that took too long."""
    return ToolOutcome(ToolStatus.TIMED_OUT, f"TimeoutError: no result within {one.timeout:g} seconds")
