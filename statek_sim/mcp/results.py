"""The result of an MCP tool or of a failed server, as the text that the model reads.

Nothing of a result is dropped without a word. Failures have names; each is a result for the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim.agent.effects import ToolOutcome, ToolStatus
from statek_sim.values import JSON

_BYTES_OF_BASE64: Final = 3 / 4


def text_of(
    content: Sequence[Mapping[str, JSON]], structured: Mapping[str, JSON] | None, *, most: int
) -> str:
    """Return a result's blocks as text, in their order; `most` characters of it.

    Texts stand as they are, resources with their text, links with their address; pictures, sounds and binary
    resources as what they are and how large. A structured value that no block says comes last, as JSON; FastMCP's
    `{"result": X}` is said by a block that says X.
    """
    blocks = [_block(block) for block in content]
    if structured is not None and not any(_says(text, structured) for text in blocks):
        blocks.append(json.dumps(structured, ensure_ascii=False, separators=(",", ":")))
    text = "\n".join(blocks)
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[{len(text) - most} of {len(text)} characters are left out]"


def _block(block: Mapping[str, JSON]) -> str:
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "image" | "audio" as kind:
            return f"[{kind} {block.get('mimeType', '')}, {_size(block.get('data'))} bytes]"
        case "resource":
            resource = block.get("resource")
            return _resource(resource if isinstance(resource, dict) else {})
        case "resource_link":
            named = block.get("title") or block.get("name") or ""
            return " ".join(str(part) for part in ("[resource", named, block.get("uri", "")) if part) + "]"
        case kind:
            return f"[a block of type {kind!r} that is not known here]"


def _resource(resource: Mapping[str, JSON]) -> str:
    uri = resource.get("uri", "")
    if isinstance(resource.get("text"), str):
        return f"[resource {uri}]\n{resource['text']}"
    return f"[resource {uri} {resource.get('mimeType', '')}, {_size(resource.get('blob'))} bytes]"


def _size(base64: JSON) -> int:
    text = base64 if isinstance(base64, str) else ""
    return int(len(text.rstrip("=")) * _BYTES_OF_BASE64)


def _says(text: str, structured: Mapping[str, JSON]) -> bool:
    wrapped = structured["result"] if set(structured) == {"result"} else structured
    if text == wrapped:
        return True
    try:
        return json.loads(text) in (structured, wrapped)
    except (ValueError, RecursionError):
        return False


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


_SHOWN: Final = 300


class McpFailure(Exception):
    """A server failed; the message says which server, what it was asked, and what came."""


class McpServerDied(McpFailure):
    """The server ended, or its connection did, before it answered."""


class McpServerGone(McpFailure):
    """The server is not there and is not started again."""


class McpTimedOut(McpFailure):
    """The server did not answer in time."""


class McpBadAnswer(McpFailure):
    """The server answered with what is no result."""


class McpRefused(McpFailure):
    """The server answered with a JSON-RPC error."""


class McpToolFailed(McpFailure):
    """The tool says itself that it failed (`isError`)."""


def died(server: str, doing: str) -> McpServerDied:
    """Return that a server died while it was doing something: whether that was done nobody knows."""
    return McpServerDied(f"MCP server {server!r} ended before it answered {doing}")


def gone(server: str, restarts: int, why: str = "") -> McpServerGone:
    """Return that a server died and is not started again, or could not be."""
    again = "is not started again" if not restarts else f"was started again {_times(restarts)} and is gone"
    return McpServerGone(f"MCP server {server!r} died and {again}{f': {why}' if why else ''}")


def unreachable(server: str, why: str) -> McpServerGone:
    """Return that a server was never there."""
    return McpServerGone(f"MCP server {server!r} {why}")


def call_of(tool: str) -> str:
    """Return the words for the call of a tool."""
    return f"the call of {tool!r}"


def timed_out(server: str, doing: str, seconds: float, garbage: str = "") -> McpTimedOut:
    """Return that a server did not answer; `garbage` is what it sent that nobody could read."""
    sent = "; it sent what is no message" if garbage else ""
    return McpTimedOut(f"MCP server {server!r} did not answer {doing} within {seconds:g} seconds{sent}")


def bad_answer(server: str, doing: str, what: str) -> McpBadAnswer:
    """Return that an answer is no result."""
    return McpBadAnswer(f"MCP server {server!r} answered {doing} with what is no result: {what[:_SHOWN]}")


def refused(server: str, doing: str, code: int, message: str) -> McpRefused:
    """Return that the server refused."""
    return McpRefused(f"MCP server {server!r} refused {doing}: {message[:_SHOWN]} ({code})")


def returned(
    content: Sequence[Mapping[str, JSON]],
    structured: Mapping[str, JSON] | None,
    *,
    is_error: bool,
    most: int,
) -> ToolOutcome:
    """Return the result of a call as a model reads it; see `text_of`. `McpToolFailed` for one that is an error."""
    text = text_of(content, structured, most=most)
    if is_error:
        raise McpToolFailed(text)
    return ToolOutcome(ToolStatus.RETURNED, text)


def outcome(failure: McpFailure) -> ToolOutcome:
    """Return a failure as the result of a call."""
    status = ToolStatus.TIMED_OUT if isinstance(failure, McpTimedOut) else ToolStatus.RAISED
    return ToolOutcome(status, f"{type(failure).__name__}: {failure}".removesuffix(": "))


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
