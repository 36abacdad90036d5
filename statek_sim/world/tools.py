"""The built-in world's tools, by their names in scenarios.

The tools for the work queue and for external events are in `statek_sim.world.claim_tools`.
"""

# No postponed annotations here: STATEK reads the hints of tools as objects, not as text, when it decides whether
# a string argument names a variable.
import asyncio
import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from statek_sim.tool_names import (
    CLAIM_TOOLS,
    DELEGATION_TOOLS,
    FRAMEWORK_TOOLS,
    ITEM_TOOLS,
    PLAIN_TOOLS,
    WAITING_TOOLS,
)
from statek_sim.world.claim_tools import claim_tools, item_tools, waiting_tools
from statek_sim.world.world import ToolApi, World


def plain_tools(world: World, api: ToolApi) -> list[Callable[..., Any]]:
    """Return the tools that need only the ledger and the clock."""

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
    """Return the async tools that sleep."""

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


def framework_tools(_: World, api: ToolApi) -> list[Callable[..., Any]]:
    """Return a tool that registers each kind of error handler, and a tool that reads a harness limit."""

    def undecorated(context: Any, error: Any = None) -> None:
        """Lack the decorator."""

    @api.error_handler
    def public_name(context: Any, error: Any = None) -> None:
        """Lack the underscore."""

    @api.error_handler
    def _one_parameter(context: Any) -> None:
        """Lack the error."""

    @api.error_handler
    def _error_required(context: Any, error: Any) -> None:
        """Lack the default."""

    @api.error_handler
    def _good(context: Any, error: Any = None) -> None:
        """Follow the protocol."""

    candidates = {
        "undecorated": undecorated,
        "public name": public_name,
        "one parameter": _one_parameter,
        "error required": _error_required,
        "good": _good,
    }

    @api.tool
    def make_tool_with_handler(kind: str, **kwargs: Any) -> str:
        """Declare a tool whose error handler is of this kind; tell whether the framework took it."""

        def claim(**kwargs: Any) -> None:
            """Claim nothing."""

        try:
            api.tool(error_handler=candidates[kind])(claim)
        except TypeError:
            return "refused"
        return "accepted"

    @api.tool
    def harness_limit(name: str, **kwargs: Any) -> Any:
        """Return a limit of the process's harness."""
        return getattr(api.get_llm_harness(), name)

    return [make_tool_with_handler, harness_limit]


def delegation_tools(_: World, api: ToolApi) -> list[Callable[..., Any]]:
    """Return the tools that delegate work to other agents."""

    @api.subtask
    def start_subtask(role: str, **kwargs: Any) -> Any:
        """Hand a task to another agent."""
        return api.create_new_job(api.agents[role], shared_vars={}, parent_job=api.get_current_job())

    @api.tool
    def finish_subtask(result: Any = None, error: str | None = None, **kwargs: Any) -> None:
        """Report the outcome of this job's task to whoever delegated it."""
        api.complete_sub_task(result=result, error=error)

    @api.tool
    def delegate(role: str, **kwargs: Any) -> Any:
        """Hand a task to another agent and return a future of its outcome."""
        return api.delegate_task(api.agents[role], parent_job=api.get_current_job())

    return [start_subtask, finish_subtask, delegate]


_GROUPS: Final = {
    claim_tools: CLAIM_TOOLS,
    item_tools: ITEM_TOOLS,
    waiting_tools: WAITING_TOOLS,
    plain_tools: PLAIN_TOOLS,
    framework_tools: FRAMEWORK_TOOLS,
    delegation_tools: DELEGATION_TOOLS,
}
_GROUP_OF: Final = {name: group for group, names in _GROUPS.items() for name in names}


def _as_of_a_module(decorate: Callable[..., Any]) -> Callable[..., Any]:
    """Return `decorate`, which first gives a nested function the qualified name of a module-level function.

    Users define their tools in modules. Python's errors about wrong arguments contain the qualified name, and models
    see these errors.
    """

    def decorator(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        if function is None:
            return lambda given: decorator(given, **options)
        function.__qualname__ = function.__name__
        return decorate(function, **options)

    return decorator


class WorldTools(Mapping[str, Callable[..., Any]]):
    """All built-in tools, keyed by name, along with the runtime's own `extra` tools.

    All tools in a group are created the first time one of them is accessed.
    """

    def __init__(self, world: World, api: ToolApi, *, extra: Iterable[Callable[..., Any]] = ()) -> None:
        self._world = world
        self._api = replace(api, tool=_as_of_a_module(api.tool), subtask=_as_of_a_module(api.subtask))
        self._made: dict[str, Callable[..., Any]] = {function.__name__: function for function in extra}
        self._names = (*self._made, *_GROUP_OF)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name not in self._made:
            made = _GROUP_OF[name](self._world, self._api)
            self._made.update({function.__name__: function for function in made})
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
