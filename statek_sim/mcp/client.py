"""An agent's MCP servers: their addresses, limits and tools, and results and failures as a model sees them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from pydantic import BaseModel, ValidationError

from statek_sim.agent.effects import ToolOutcome, ToolStatus
from statek_sim.agent.tools.tool import Tool, tool_of_schema
from statek_sim.errors import BadInput
from statek_sim.values import JSON

_BYTES_OF_BASE64: Final = 3 / 4


def text_of(
    content: Sequence[Mapping[str, JSON]], structured: Mapping[str, JSON] | None, *, most: int
) -> str:
    """Return a tool result's content blocks as one string, shortened to `most` characters with a note.

    Text blocks and text resources are included unchanged, links as their address, and images, audio and binary
    resources as their type and size. A structured value is appended as JSON unless a block has the same value. For
    `{"result": 5}`, which is how FastMCP wraps the result 5, a block with 5 counts as the same value.
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
            return f"[content block of unknown type {kind!r}]"


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
    """A tool in a server's `tools/list`: its name without prefix, and its parameters' JSON Schema."""

    name: str
    description: str
    parameters: Mapping[str, JSON]


def definition_of(listed: Mapping[str, JSON]) -> Definition:
    """Return a tool's definition from its entry in `tools/list`.

    The title replaces a missing description, because some servers send only a title.
    """
    schema = listed.get("inputSchema")
    nothing: dict[str, JSON] = {"type": "object", "properties": {}}
    parameters = schema if isinstance(schema, dict) else nothing
    described = listed.get("description") or listed.get("title") or ""
    return Definition(name=str(listed["name"]), description=str(described), parameters=parameters)


_SHOWN: Final = 300


class McpFailure(Exception):
    """Base class for MCP server failures; the message names the server and the request."""


class McpServerDied(McpFailure):
    """The server exited, or the connection was lost, before a request was answered."""


class McpServerGone(McpFailure):
    """The server cannot be started or reached, or it died more times than `Bounds.restarts` allows."""


class McpTimedOut(McpFailure):
    """The server did not answer within `Bounds.call` or `Bounds.connect` seconds."""


class McpBadAnswer(McpFailure):
    """The server's answer is malformed."""


class McpRefused(McpFailure):
    """The server answered with a JSON-RPC error; the message contains its code."""


class McpToolFailed(McpFailure):
    """The tool returned an error result (`isError`); the message is its text."""


def died(server: str, doing: str) -> McpServerDied:
    """Return the error for a server that died during a request, which may or may not have been executed."""
    return McpServerDied(f"MCP server {server!r} ended before it answered {doing}")


def gone(server: str, restarts: int, why: str = "") -> McpServerGone:
    """Return the error for a server that died again after `restarts` restarts; `why` is the last restart's error."""
    after = f" after {restarts} restarts" if restarts > 1 else " after 1 restart" if restarts else ""
    return McpServerGone(f"MCP server {server!r} died{after} and is not restarted{f': {why}' if why else ''}")


def unreachable(server: str, why: str) -> McpServerGone:
    """Return the error for a server that cannot be started or reached; `why` is the reason, as a verb phrase."""
    return McpServerGone(f"MCP server {server!r} {why}")


def call_of(tool: str) -> str:
    """Return the phrase that describes a call to this tool in error messages."""
    return f"the call to {tool!r}"


def timed_out(server: str, doing: str, seconds: float, garbage: str = "") -> McpTimedOut:
    """Return the error for a server that did not answer; `garbage` is output that was not a JSON-RPC message."""
    sent = "; it sent output that is not a JSON-RPC message" if garbage else ""
    return McpTimedOut(f"MCP server {server!r} did not answer {doing} within {seconds:g} seconds{sent}")


def bad_answer(server: str, doing: str, what: str) -> McpBadAnswer:
    """Return the error for a malformed answer; `what` describes the problem."""
    return McpBadAnswer(f"MCP server {server!r} sent an invalid answer to {doing}: {what[:_SHOWN]}")


def refused(server: str, doing: str, code: int, message: str) -> McpRefused:
    """Return the error for a JSON-RPC error with this code and message."""
    return McpRefused(f"MCP server {server!r} refused {doing}: {message[:_SHOWN]} ({code})")


def returned(
    content: Sequence[Mapping[str, JSON]],
    structured: Mapping[str, JSON] | None,
    *,
    is_error: bool,
    most: int,
) -> ToolOutcome:
    """Return a tool result as the text that a model sees (see `text_of`); raises `McpToolFailed` for an error."""
    text = text_of(content, structured, most=most)
    if is_error:
        raise McpToolFailed(text)
    return ToolOutcome(ToolStatus.RETURNED, text)


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's message, or its type's name if the message is empty."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def outcome(failure: McpFailure) -> ToolOutcome:
    """Return a failure as a call's outcome, with the failure's type and message as text."""
    status = ToolStatus.TIMED_OUT if isinstance(failure, McpTimedOut) else ToolStatus.RAISED
    return ToolOutcome(status, f"{type(failure).__name__}: {failure}".removesuffix(": "))


_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}", re.ASCII)


LONGEST_MESSAGE: Final = 64 * 1024 * 1024
"""The maximum size of a JSON-RPC message in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Time and size limits for an MCP server."""

    connect: float = 30.0
    """Seconds to start the server, initialize the connection and list the tools."""
    call: float = 30.0
    """Seconds for one call; a timeout in the agent's harness may end the call earlier."""
    pages: int = 100
    """Maximum number of pages in a list of tools; a longer list raises `McpBadAnswer`."""
    text: int = 200_000
    """Maximum number of characters in a result; a longer one is cut, with a note that gives the omitted length."""
    restarts: int = 1
    """How many times the next call restarts a dead server or reconnects to it."""

    def __post_init__(self) -> None:
        """Raise `BadInput` for a limit that is out of range."""
        for name in ("connect", "call"):
            if not 0 < getattr(self, name) < 1e6:
                raise BadInput(
                    f"MCP server bounds: {name} is {getattr(self, name)!r}; expected a number of seconds above 0"
                )
        for name, least in (("pages", 1), ("text", 1), ("restarts", 0)):
            if not getattr(self, name) >= least:
                raise BadInput(
                    f"MCP server bounds: {name} is {getattr(self, name)!r}; expected {least} or more"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stdio:
    """A server started as a child process; `environment` extends the few variables passed on by the SDK."""

    command: str
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Http:
    """A server reached over streamable HTTP; `url` is its endpoint, usually `.../mcp`."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerSpec:
    """An agent's MCP server: its name, and its address or command.

    The agent's tools are named `prefix__tool`. The prefix is the server's name if `prefix` is None; with an empty
    prefix, tools keep their own names.
    """

    name: str
    at: Stdio | Http
    prefix: str | None = None
    tags: Sequence[str] = ()
    bounds: Bounds = field(default_factory=Bounds)

    def __post_init__(self) -> None:
        """Raise `BadInput` for a name or prefix that tool names cannot start with."""
        check_server_name(self.name)
        if self.prefix:
            check_server_name(self.prefix)


def check_server_name(name: str) -> None:
    """Raise `BadInput` for a server name that tool names cannot start with."""
    if not _NAME.fullmatch(name) or "__" in name:
        raise BadInput(
            f"MCP server {name!r}: expected a name of 1 to 32 letters, digits, '_' or '-' that starts "
            "with a letter and has no '__'"
        )


NET: float = 1.0
"""Seconds added to the harness's timeout so that the connection can report its more precise error first."""


class Connection(Protocol):
    """A connection to an MCP server, real or scripted."""

    @property
    def spec(self) -> McpServerSpec:
        """The server's name, address and limits."""

    @property
    def definitions(self) -> Sequence[Definition]:
        """The tools that the server last listed."""

    def changes(self) -> Sequence[Definition] | None:
        """Return the tools if the list changed since this method was last called, else None."""

    async def call(self, tool: str, arguments: Mapping[str, JSON]) -> ToolOutcome:
        """Call a tool; a failure is returned as an outcome that names its type, such as `McpTimedOut`."""


class McpSource:
    """Makes a server's tools available to an agent: `registry.follow(McpSource(connection))`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def name(self) -> str:
        """The server's name in the registry."""
        return self._connection.spec.name

    @property
    def prefix(self) -> str | None:
        """The prefix for the tools' names; None means the server's name."""
        return self._connection.spec.prefix

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools that the server currently lists."""
        return tuple(self._tool(one) for one in self._connection.definitions)

    def changed(self) -> bool:
        """Return whether the tools changed since this method was last called."""
        return self._connection.changes() is not None

    def _tool(self, definition: Definition) -> Tool:
        connection, spec = self._connection, self._connection.spec

        async def run(**arguments: Any) -> ToolOutcome:
            return await connection.call(definition.name, arguments)

        return tool_of_schema(
            definition.name,
            definition.description,
            definition.parameters,
            run,
            tags=tuple(spec.tags),
            timeout=spec.bounds.call + NET,
        )


class Listing(Protocol):
    """A client that lists a server's tools page by page, such as the SDK's."""

    async def list_tools(self, *, cursor: str | None) -> Any:  # the SDK's page: `tools` and `next_cursor`
        """Return the page starting at `cursor`."""


async def list_of(client: Listing, spec: McpServerSpec) -> tuple[Definition, ...]:
    """Return the tools on all pages of a server's list; raises `McpBadAnswer` for an invalid or endless list."""
    found: list[Definition] = []
    cursor: str | None = None
    for _ in range(spec.bounds.pages):
        try:
            page = await client.list_tools(cursor=cursor)
        except (RuntimeError, ValidationError) as error:
            raise bad_answer(spec.name, "tools/list", first_line(error)) from error
        found += map(_definition, page.tools)
        if page.next_cursor is None:
            return tuple(found)
        if page.next_cursor == cursor:
            raise bad_answer(spec.name, "tools/list", f"the cursor {cursor!r} leads to itself")
        cursor = page.next_cursor
    raise bad_answer(spec.name, "tools/list", f"a list of more than {spec.bounds.pages} pages")


def _definition(tool: BaseModel) -> Definition:
    return definition_of(tool.model_dump(mode="json", by_alias=True, exclude_none=True))


async def call_within_bounds(
    spec: McpServerSpec, tool: str, calling: Awaitable[ToolOutcome], garbage: Callable[[], str]
) -> ToolOutcome:
    """Await a call to `tool` and return its outcome; after `Bounds.call` seconds, the call fails.

    An `McpFailure` raised by `calling` also becomes a failed outcome. `garbage` returns output from the server that was
    not a JSON-RPC message, for use in the error message.
    """
    try:
        async with asyncio.timeout(spec.bounds.call) as limit:
            return await calling
    except McpFailure as failure:
        return outcome(failure)
    except TimeoutError:
        if not limit.expired():
            raise
        return outcome(timed_out(spec.name, call_of(tool), spec.bounds.call, garbage()))
