"""Which MCP servers an agent has, and how long everything about them may take."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from statek_sim.errors import BadInput

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much an MCP server may take. Seconds, pages and characters."""

    connect: float = 30.0
    """Seconds to start, shake hands and list the tools."""
    call: float = 30.0
    """Seconds of one call; the harness's own timeout of a tool may end it before."""
    pages: int = 100
    """Pages of a list of tools: a server that always has one more is refused."""
    text: int = 200_000
    """Characters of a result that a model reads; of what is longer it reads the beginning, and how much is left out."""
    restarts: int = 1
    """How often a server that died is started, or connected to, again: at the next call."""

    def __post_init__(self) -> None:
        """Raise `BadInput` for bounds that are none."""
        for name in ("connect", "call"):
            if not 0 < getattr(self, name) < 1e6:
                raise BadInput(
                    f"bounds of an MCP server: {name} is {getattr(self, name)!r}, expected seconds above 0"
                )
        for name, least in (("pages", 1), ("text", 1), ("restarts", 0)):
            if not getattr(self, name) >= least:
                raise BadInput(
                    f"bounds of an MCP server: {name} is {getattr(self, name)!r}, expected {least} or more"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stdio:
    """A server that is a process of ours. `environment` comes on top of the few variables that the SDK passes on."""

    command: str
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Http:
    """A server behind streamable HTTP; `url` is its endpoint, usually `.../mcp`."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerSpec:
    """One server: its name here, and where it is.

    `prefix` goes before the names of its tools, with two underscores between; None: the name under a variant that
    prefixes, and nothing under one that does not. An empty one: the tools keep their names.
    """

    name: str
    at: Stdio | Http
    prefix: str | None = None
    tags: Sequence[str] = ()
    bounds: Bounds = field(default_factory=Bounds)

    def __post_init__(self) -> None:
        """Raise `BadInput` for a name that no tool's name could begin with."""
        check_server_name(self.name)
        if self.prefix:
            check_server_name(self.prefix)


def check_server_name(name: str) -> None:
    """Raise `BadInput` for what cannot stand before a tool's name."""
    if not _NAME.fullmatch(name) or "__" in name:
        raise BadInput(
            f"MCP server {name!r}: expected a name of 1 to 32 letters, digits, '_' or '-' that begins with a letter, "
            "without two '_' in a row"
        )
