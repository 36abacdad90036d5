"""The system tools that STATEK registers itself, as its requests describe them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, Literal

from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.values import ToolSpec

SystemToolsVersion = Literal["1.2", "1.4"]

_FILES: Final[Mapping[SystemToolsVersion, str]] = {
    "1.2": "system_tools_1_2.json",
    "1.4": "system_tools_1_4.json",
}


@dataclass(frozen=True, slots=True)
class SystemToolSpec:
    """One registered system tool: its wire spec, and the styles it is meant for (None for all)."""

    name: str
    spec: ToolSpec
    target: frozenset[ChatStyle] | None


@cache
def system_tool_specs(version: SystemToolsVersion) -> tuple[SystemToolSpec, ...]:
    """Return the system tools of STATEK 1.2.7 or 1.4.2, in the order they are registered.

    The data is what those versions send, captured by `tools/capture_system_tools.py`. Do not change it.
    """
    text = files("statek_sim.runtime.tools").joinpath(_FILES[version]).read_text(encoding="utf-8")
    return tuple(
        SystemToolSpec(
            name=entry["spec"]["function"]["name"],
            spec=entry["spec"],
            target=None if entry["target"] is None else frozenset(map(ChatStyle, entry["target"])),
        )
        for entry in json.loads(text)["tools"]
    )
