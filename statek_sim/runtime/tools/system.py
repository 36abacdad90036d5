"""The system tools that STATEK registers itself, as its requests describe them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import FunctionType
from typing import Any, Final

from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.values import ToolSpec


@dataclass(frozen=True, slots=True)
class SystemToolSpec:
    """One registered system tool: its wire spec, the styles it is meant for (None for all), and its documentation.

    `docstr` and `brief` are what the tools of these names print about it.
    """

    name: str
    spec: ToolSpec
    target: frozenset[ChatStyle] | None
    docstr: str
    brief: str


_CALLABLES: Final[dict[Callable[..., Any], SystemToolSpec]] = {}


def stands_for(function: Callable[..., Any], tool: SystemToolSpec) -> None:
    """Note the callable of a system tool. It has no attribute for this: agents see those of a function."""
    _CALLABLES[function] = tool


def system_tool(function: object) -> SystemToolSpec | None:
    """Return the system tool that a callable stands for, None for anything else."""
    return _CALLABLES.get(function) if isinstance(function, FunctionType) else None


@cache
def system_tool_specs(version: str) -> tuple[SystemToolSpec, ...]:
    """Return the system tools of a profile's `system_tools`, in the order they are registered.

    The data is what the release sends, captured by `tools/capture_system_tools.py`. Do not change it.
    """
    name = f"system_tools_{version.replace('.', '_')}.json"
    text = files("statek_sim.runtime.tools").joinpath(name).read_text(encoding="utf-8")
    return tuple(
        SystemToolSpec(
            name=entry["spec"]["function"]["name"],
            spec=entry["spec"],
            target=None if entry["target"] is None else frozenset(map(ChatStyle, entry["target"])),
            docstr=entry["docstr"],
            brief=entry["brief"],
        )
        for entry in json.loads(text)["tools"]
    )
