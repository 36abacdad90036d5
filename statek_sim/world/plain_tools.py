"""Tools with one simple effect each: a note in the ledger, a print, a failure, a slow answer."""

# No postponed annotations here: STATEK reads the hints of tools as objects, not as text, when it decides whether
# a string argument names a variable.
import asyncio
import datetime
from collections.abc import Callable
from typing import Any

from statek_sim.world.tool_api import ToolApi
from statek_sim.world.world import World


def plain_tools(world: World, api: ToolApi) -> list[Callable[..., Any]]:
    """Return the simple tools."""

    @api.tool
    def note(text: str, **kwargs: Any) -> None:
        """Write a line into the ledger of side effects."""
        world.ledger.write(text)

    @api.tool
    def echo(value: Any, **kwargs: Any) -> Any:
        """Return the value."""
        return value

    @api.tool
    def say(text: str, **kwargs: Any) -> None:
        """Print the text."""
        print(text)

    @api.tool
    def fail(message: str, **kwargs: Any) -> None:
        """Fail with a RuntimeError."""
        raise RuntimeError(message)

    @api.tool
    def note_and_refuse(text: str, **kwargs: Any) -> None:
        """Write a line into the ledger, then fail with a ValueError."""
        world.ledger.write(text)
        raise ValueError("refused")

    @api.tool
    def read_clock(**kwargs: Any) -> str:
        """Return the current time as ISO text."""
        return datetime.datetime.now().isoformat(timespec="seconds")

    @api.tool(hidden=True)
    def reset_everything(**kwargs: Any) -> str:
        """Reset the world; not for models."""
        world.ledger.write("reset")
        return "reset"

    @api.tool
    def read_records(count: int = 10, **kwargs: Any) -> list[dict[str, Any]]:
        """Return a table of numbers, as reporting tools do."""
        return [{"id": n, "amount": n * 17 % 1000, "rate": (n * 7 % 100) / 100} for n in range(count)]

    return [
        note,
        echo,
        say,
        fail,
        note_and_refuse,
        *_slow_tools(world, api),
        read_clock,
        reset_everything,
        read_records,
    ]


def _slow_tools(world: World, api: ToolApi) -> list[Callable[..., Any]]:
    """Return the tools that wait in the middle."""

    @api.tool
    async def slow_echo(text: str, seconds: float = 1.0, **kwargs: Any) -> str:
        """Print the text, wait, and return the text."""
        print(f"enter {text}")
        await asyncio.sleep(seconds)
        print(f"leave {text}")
        return text

    @api.tool
    async def slow_note(text: str, seconds: float = 1.0, timeout: float | None = None, **kwargs: Any) -> str:
        """Write a line into the ledger, wait, write another one, and one on the way out; `timeout` ends the wait."""
        world.ledger.write(f"{text}: begun")
        try:
            await asyncio.wait_for(asyncio.sleep(seconds), timeout)
            world.ledger.write(f"{text}: done")
            return text
        finally:
            world.ledger.write(f"{text}: left")

    return [slow_echo, slow_note]
