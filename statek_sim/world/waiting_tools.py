"""Tools that wait for external events."""

# No postponed annotations here: STATEK reads the hints of tools as objects, not as text, when it decides whether
# a string argument names a variable.
from collections.abc import Callable
from typing import Any

from statek_sim.world.tool_api import ToolApi
from statek_sim.world.world import ExternalEvent, World


def waiting_tools(world: World, api: ToolApi) -> list[Callable[..., Any]]:
    """Return the tools that give futures of external events."""

    @api.stored
    class Happening(api.future):  # type: ignore[name-defined, misc]  # the runtime's own future class
        def __init__(self, event: ExternalEvent) -> None:
            super().__init__(deps=event, state_num=0)
            self.event = event

    def is_ready(future: Any) -> bool:
        return bool(future.event.is_ready())

    def value(future: Any) -> Any:
        if not future.event.is_ready():
            raise api.future_error(future)
        return future.event.value

    def pair(future: Any) -> tuple[Any, Any]:
        return value(future)  # type: ignore[no-any-return]  # the scenario resolves it with two values

    @api.temporal(complement=value, condition=is_ready)
    @api.tool
    def wait_for(name: str, **kwargs: Any) -> Any:
        """Wait for an external event and return its value."""
        return Happening(world.events[name])

    @api.temporal(complement=pair, condition=is_ready)
    @api.tool
    def wait_for_pair(name: str, **kwargs: Any) -> Any:
        """Wait for an external event that brings two values."""
        return Happening(world.events[name])

    def one(name: str) -> Any:
        future = Happening(world.events[name])
        future.set_complement_functions(value, is_ready)
        return future

    @api.tool
    def wait_for_any(*names: str, **kwargs: Any) -> Any:
        """Wait for the first of several external events and return its value."""
        return api.any_future(*map(one, names))

    @api.tool
    def wait_for_all(*names: str, **kwargs: Any) -> Any:
        """Wait for several external events and return their values."""
        return api.all_future(*map(one, names))

    @api.tool
    def is_waiting(future: api.future, **kwargs: Any) -> bool:  # type: ignore[name-defined]
        """Tell whether a future is not ready yet, without waiting for it."""
        return not future.check_condition()

    return [wait_for, wait_for_pair, wait_for_any, wait_for_all, is_waiting]
