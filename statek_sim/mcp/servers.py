"""An agent's MCP servers and their timeouts, their tools, and results as a model reads them."""

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
    """Return a result's blocks as text, in order; at most `most` characters.

    Texts are unchanged, resources have their text, links their address; pictures, sounds and binary resources their
    type and size. A structured value that no block repeats comes last, as JSON; FastMCP's `{"result": X}` counts as
    repeated by a block with X.
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
    """Return an entry of `tools/list` as a definition.

    A title replaces a missing description: some servers give one or the other.
    """
    schema = listed.get("inputSchema")
    nothing: dict[str, JSON] = {"type": "object", "properties": {}}
    parameters = schema if isinstance(schema, dict) else nothing
    described = listed.get("description") or listed.get("title") or ""
    return Definition(name=str(listed["name"]), description=str(described), parameters=parameters)


_SHOWN: Final = 300


class McpFailure(Exception):
    """A server failed; the message has the server, the request, and the response."""


class McpServerDied(McpFailure):
    """The server, or its connection, ended before it answered."""


class McpServerGone(McpFailure):
    """The server is gone and is not restarted."""


class McpTimedOut(McpFailure):
    """The server did not answer in time."""


class McpBadAnswer(McpFailure):
    """The server's answer is not a valid result."""


class McpRefused(McpFailure):
    """The server answered with a JSON-RPC error."""


class McpToolFailed(McpFailure):
    """The tool itself reported an error (`isError`)."""


def died(server: str, doing: str) -> McpServerDied:
    """Return the error for a server that died during an operation: whether it was completed is unknown."""
    return McpServerDied(f"MCP server {server!r} ended before it answered {doing}")


def gone(server: str, restarts: int, why: str = "") -> McpServerGone:
    """Return the error for a server that died and was not or could not be restarted."""
    again = "is not started again" if not restarts else f"was started again {_times(restarts)} and is gone"
    return McpServerGone(f"MCP server {server!r} died and {again}{f': {why}' if why else ''}")


def unreachable(server: str, why: str) -> McpServerGone:
    """Return the error for a server that never started."""
    return McpServerGone(f"MCP server {server!r} {why}")


def call_of(tool: str) -> str:
    """Return the phrase for a call of the tool."""
    return f"the call of {tool!r}"


def timed_out(server: str, doing: str, seconds: float, garbage: str = "") -> McpTimedOut:
    """Return the error for a server that did not answer; `garbage` is its unreadable output."""
    sent = "; it sent what is no message" if garbage else ""
    return McpTimedOut(f"MCP server {server!r} did not answer {doing} within {seconds:g} seconds{sent}")


def bad_answer(server: str, doing: str, what: str) -> McpBadAnswer:
    """Return the error for an invalid result."""
    return McpBadAnswer(f"MCP server {server!r} answered {doing} with what is no result: {what[:_SHOWN]}")


def refused(server: str, doing: str, code: int, message: str) -> McpRefused:
    """Return the error for a refusal."""
    return McpRefused(f"MCP server {server!r} refused {doing}: {message[:_SHOWN]} ({code})")


def returned(
    content: Sequence[Mapping[str, JSON]],
    structured: Mapping[str, JSON] | None,
    *,
    is_error: bool,
    most: int,
) -> ToolOutcome:
    """Return the result of a call as a model reads it; see `text_of`. Raises `McpToolFailed` for an error result."""
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


_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}", re.ASCII)


LONGEST_MESSAGE: Final = 64 * 1024 * 1024
"""Maximum bytes of one message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of an MCP server: seconds, pages and characters."""

    connect: float = 30.0
    """Seconds to start, initialize and list the tools."""
    call: float = 30.0
    """Seconds of one call; the harness's own timeout of a tool may end it earlier."""
    pages: int = 100
    """Pages of a list of tools: endless lists are refused."""
    text: int = 200_000
    """Characters of a result for the model; a longer one is cut, with a note about the omitted length."""
    restarts: int = 1
    """How often a dead server is restarted, or reconnected, on the next call."""

    def __post_init__(self) -> None:
        """Raise `BadInput` for invalid bounds."""
        for name in ("connect", "call"):
            if not 0 < getattr(self, name) < 1e6:
                raise BadInput(
                    f"bounds of an MCP server: {name} is {getattr(self, name)!r}, expected a number of seconds above 0"
                )
        for name, least in (("pages", 1), ("text", 1), ("restarts", 0)):
            if not getattr(self, name) >= least:
                raise BadInput(
                    f"bounds of an MCP server: {name} is {getattr(self, name)!r}, expected {least} or more"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stdio:
    """A server as a child process. `environment` is added to the few variables that the SDK passes on."""

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
    """One server: its name, and its address or command.

    `prefix` precedes the names of its tools, separated by two underscores; None: the server's name. With an empty one
    the tools keep their names.
    """

    name: str
    at: Stdio | Http
    prefix: str | None = None
    tags: Sequence[str] = ()
    bounds: Bounds = field(default_factory=Bounds)

    def __post_init__(self) -> None:
        """Raise `BadInput` for a name that no tool's name could start with."""
        check_server_name(self.name)
        if self.prefix:
            check_server_name(self.prefix)


def check_server_name(name: str) -> None:
    """Raise `BadInput` for an invalid prefix of tool names."""
    if not _NAME.fullmatch(name) or "__" in name:
        raise BadInput(
            f"MCP server {name!r}: expected a name of 1 to 32 letters, digits, '_' or '-' that starts "
            "with a letter and has no '__'"
        )


NET: float = 1.0
"""Additional seconds that the harness waits, because errors of the connection are more precise."""


class Connection(Protocol):
    """A server, real or scripted."""

    @property
    def spec(self) -> McpServerSpec:
        """The server and its limits."""

    @property
    def definitions(self) -> Sequence[Definition]:
        """The tools of its latest list."""

    def changes(self) -> Sequence[Definition] | None:
        """Return its tools if they changed since the last call, else None."""

    async def call(self, tool: str, arguments: Mapping[str, JSON]) -> ToolOutcome:
        """Call a tool; every failure is an outcome with a type."""


class McpSource:
    """A `ToolSource`: `registry.follow(McpSource(connection))`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def name(self) -> str:
        """The server's name in the registry."""
        return self._connection.spec.name

    @property
    def prefix(self) -> str | None:
        """Prefix of its tools' names."""
        return self._connection.spec.prefix

    def tools(self) -> tuple[Tool, ...]:
        """Return its current tools."""
        return tuple(self._tool(one) for one in self._connection.definitions)

    def changed(self) -> bool:
        """Return whether they changed since the last call."""
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
    """Anything that returns a page of a list: a client of the SDK."""

    async def list_tools(self, *, cursor: str | None) -> Any:  # the SDK's page: `tools` and `next_cursor`
        """Return the page that starts at `cursor`."""


async def list_of(client: Listing, spec: McpServerSpec) -> tuple[Definition, ...]:
    """Return all pages of a server's list; `McpBadAnswer` for an endless list."""
    found: list[Definition] = []
    cursor: str | None = None
    for _ in range(spec.bounds.pages):
        try:
            page = await client.list_tools(cursor=cursor)
        except (RuntimeError, ValidationError) as error:
            reason = next(iter(str(error).splitlines()), "") or type(error).__name__
            raise bad_answer(spec.name, "tools/list", reason) from error
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
    """Wait for a call within the server's limits; `garbage` is its unreadable output."""
    try:
        async with asyncio.timeout(spec.bounds.call) as limit:
            return await calling
    except McpFailure as failure:
        return outcome(failure)
    except TimeoutError:
        if not limit.expired():
            raise
        return outcome(timed_out(spec.name, call_of(tool), spec.bounds.call, garbage()))
