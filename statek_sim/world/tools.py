"""The tools of the built-in world, by the names that scenarios use."""

from __future__ import annotations

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
from statek_sim.world.claim_tools import claim_tools, item_tools
from statek_sim.world.framework_tools import delegation_tools, framework_tools
from statek_sim.world.plain_tools import plain_tools
from statek_sim.world.tool_api import ToolApi
from statek_sim.world.waiting_tools import waiting_tools
from statek_sim.world.world import World

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
    """Return the decorator for functions that shall look like those of a module, where users have their tools.

    Python's texts about wrong arguments name a function in full, and models read them.
    """

    def decorator(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        if function is None:
            return lambda given: decorator(given, **options)
        function.__qualname__ = function.__name__
        return decorate(function, **options)

    return decorator


class WorldTools(Mapping[str, Callable[..., Any]]):
    """Every built-in tool by name, and the runtime's own `extra` ones.

    A group of tools is made when one of them is first asked for.
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
