"""What an MCP server says about a tool, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from statek_sim.values import JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One entry of `tools/list`. `name` is the server's own."""

    name: str
    description: str
    parameters: Mapping[str, JSON]


def definition_of(listed: Mapping[str, JSON]) -> Definition:
    """Return the definition that an entry of `tools/list` is.

    A title stands for a description that is not there: some servers give the one or the other.
    """
    schema = listed.get("inputSchema")
    nothing: dict[str, JSON] = {"type": "object", "properties": {}}
    parameters = schema if isinstance(schema, dict) else nothing
    described = listed.get("description") or listed.get("title") or ""
    return Definition(name=str(listed["name"]), description=str(described), parameters=parameters)
