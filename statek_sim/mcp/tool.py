"""A tool as an MCP server has it, and what a call of it gives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from statek_sim.values import JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """What a call gave: blocks of content, and a structured value where the tool has an output schema."""

    content: tuple[Mapping[str, JSON], ...] = ()
    structured: Mapping[str, JSON] | None = None
    is_error: bool = False

    def as_json(self) -> dict[str, JSON]:
        """Return it as the `result` of a `tools/call`."""
        fields: dict[str, JSON] = {"content": [dict(block) for block in self.content]}
        if self.structured is not None:
            fields["structuredContent"] = dict(self.structured)
        if self.is_error:
            fields["isError"] = True
        return fields


def text_result(text: str, *, is_error: bool = False) -> CallResult:
    """Return the result that a text is."""
    return CallResult(content=({"type": "text", "text": text},), is_error=is_error)


class Asking(Protocol):
    """What a served tool may do while it is called."""

    def now(self) -> float:
        """Return seconds by the clock that `sleep` goes by."""

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""

    async def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far the call is; nothing happens where it did not ask for that."""

    async def log(self, level: str, data: JSON) -> None:
        """Send the client a line of the log."""

    async def ask(self, method: str, params: Mapping[str, JSON]) -> JSON:
        """Ask the client something (`sampling/createMessage`, `elicitation/create`); return its result."""


ServedCode = Callable[[Mapping[str, JSON], Asking], Awaitable[CallResult]]
"""What a tool does: takes the arguments of a call."""


def _object() -> dict[str, Any]:
    return {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTool:
    """One tool of an MCP server. `input_schema` and `output_schema` are JSON Schema."""

    name: str
    run: ServedCode
    description: str = ""
    input_schema: Mapping[str, JSON] = field(default_factory=_object)
    output_schema: Mapping[str, JSON] | None = None

    def listed(self) -> dict[str, JSON]:
        """Return it as an entry of `tools/list`."""
        fields: dict[str, JSON] = {"name": self.name, "inputSchema": dict(self.input_schema)}
        if self.description:
            fields["description"] = self.description
        if self.output_schema is not None:
            fields["outputSchema"] = dict(self.output_schema)
        return fields
