"""Connections to real MCP servers under asyncio, through the official SDK: handshake, calls, restarts."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Self, TextIO

from pydantic import ValidationError

from statek_sim.agent.effects import ToolOutcome
from statek_sim.mcp.client import (
    LONGEST_MESSAGE,
    Definition,
    Http,
    McpFailure,
    McpServerSpec,
    Stdio,
    bad_answer,
    call_of,
    call_within_bounds,
    died,
    first_line,
    gone,
    list_of,
    refused,
    returned,
    timed_out,
    unreachable,
)
from statek_sim.values import JSON

try:
    import anyio
    import httpx2
    from mcp import Client, MCPError, StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared.message import SessionMessage
    from mcp_types import (
        CONNECTION_CLOSED,
        PARSE_ERROR,
        REQUEST_TIMEOUT,
        CallToolResult,
        Implementation,
        ToolListChangedNotification,
    )
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"connections to MCP servers require the official SDK; {missing.name} is not installed: pip "
        "install 'pytest-statek[mcp]'",
        name=missing.name,
    ) from missing

BROKEN: Final = (OSError, httpx2.HTTPError, anyio.ClosedResourceError, anyio.BrokenResourceError)
"""Exceptions that the SDK and its transports raise if the connection to a server is lost."""


class Transport:
    """A connection's message streams; a server process writes its standard error to `errors`."""

    def __init__(self, spec: McpServerSpec, errors: TextIO) -> None:
        self.garbage = ""
        """The first line of the last output that was not a JSON-RPC message; empty if there was none."""
        self.lost = False
        """Whether the streams can no longer be used."""
        self.forgotten = False
        """Whether an HTTP server answered that the session is unknown."""
        self._spec = spec
        self._errors = errors

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[Any]:
        """Connect to the server and yield its message streams.

        The streams are relayed, so that `lost` is set as soon as the server exits.
        """
        at = self._spec.at
        match at:
            case Stdio():
                parameters = StdioServerParameters(
                    command=at.command, args=list(at.arguments), env=dict(at.environment), cwd=at.folder
                )
                async with (
                    stdio_client(parameters, errlog=self._errors) as streams,
                    self._watched(streams) as watched,
                ):
                    yield watched
            case Http():
                timeout = httpx2.Timeout(self._spec.bounds.call, read=None)
                async with (
                    httpx2.AsyncClient(
                        headers=dict(at.headers), timeout=timeout, event_hooks={"response": [self._responded]}
                    ) as http,
                    streamable_http_client(
                        at.url, http_client=http, max_sse_event_size=LONGEST_MESSAGE
                    ) as streams,
                    self._watched(streams) as watched,
                ):
                    yield watched

    async def _responded(self, response: httpx2.Response) -> None:
        """Set `forgotten` for a 404 with a session id; the SDK reports a response's body, but not its status."""
        sent = response.request
        self.forgotten |= (
            sent.method == "POST" and response.status_code == 404 and "mcp-session-id" in sent.headers
        )

    @asynccontextmanager
    async def _watched(self, streams: Any) -> AsyncIterator[Any]:
        read, write = streams
        inward, outward = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def pass_on() -> None:
            try:
                async with inward:
                    async for message in read:
                        if isinstance(message, Exception):
                            self.garbage = first_line(message)
                        await inward.send(message)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass  # the session was closed before the streams
            finally:
                self.lost = True

        async with anyio.create_task_group() as group:
            group.start_soon(pass_on)
            try:
                yield outward, write
            finally:
                outward.close()
                group.cancel_scope.cancel()


_CLOSING: Final = 10.0
"""The time that a connection may take to close before its task is cancelled, in seconds."""

_CLIENT: Final = Implementation(name="statek-sim", version="1")


class McpConnection:
    """A connection to one MCP server, open during an `async with` block.

    `definitions` are the tools that the server last listed. When the server announces a change, the list is fetched
    immediately, and the next call to `changes` returns it. Cancelling a call's task also cancels the call on the
    server. Leaving the block stops the server's process within a few seconds, even if the task is cancelled in the
    meantime. The server process shares this process's standard error.
    """

    def __init__(self, spec: McpServerSpec) -> None:
        self.spec = spec
        self.definitions: tuple[Definition, ...] = ()
        self.restarts = 0
        self.version = ""
        """The negotiated protocol version."""
        # Not `sys.stderr`: in tests, for example, it may not be a file that a process can write to.
        self._errors = sys.__stderr__ or sys.stderr
        self._client: Client | None = None
        self._owner: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._transport = Transport(spec, self._errors)
        self._news: tuple[Definition, ...] | None = None
        self._listing: set[asyncio.Task[None]] = set()
        self._stale = False
        self._opening = asyncio.Lock()
        self._in_flight = 0
        self._idle = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Start the server or connect to it, and list its tools; raises `McpFailure` on failure."""
        await self._open()
        self._news = None
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close the connection, and wait for the server's process to exit."""
        await self._close()

    def changes(self) -> tuple[Definition, ...] | None:
        """Return the server's tools if the list changed since this method was last called, else None."""
        news, self._news = self._news, None
        return news

    async def call(self, tool: str, arguments: Mapping[str, JSON]) -> ToolOutcome:
        """Call a tool; a failure is returned as an outcome that names its type, such as `McpTimedOut`."""
        return await call_within_bounds(
            self.spec, tool, self._call(tool, arguments), lambda: self._transport.garbage
        )

    async def _call(self, tool: str, arguments: Mapping[str, JSON]) -> ToolOutcome:
        client = await self._alive()
        name, doing = self.spec.name, call_of(tool)
        try:
            result = await self._call_tool(client, tool, arguments)
        except MCPError as error:
            if not self._transport.forgotten or error.code == CONNECTION_CLOSED:
                raise self._refusal(client, error, doing) from error
        except (RuntimeError, ValidationError) as error:
            raise bad_answer(name, doing, first_line(error)) from error
        except BROKEN as error:
            self._lose(client)
            raise died(name, doing) from error
        else:
            return self._outcome(result)
        # A server that does not know the session did not execute the call: repeat it in a new session.
        self._lose(client)
        return await self._call(tool, arguments)

    async def _call_tool(self, client: Client, tool: str, arguments: Mapping[str, JSON]) -> CallToolResult:
        self._in_flight += 1
        self._idle.clear()
        try:
            return await client.call_tool(tool, dict(arguments))
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    def _outcome(self, result: CallToolResult) -> ToolOutcome:
        content = [
            block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content
        ]
        structured, most = result.structured_content, self.spec.bounds.text
        return returned(content, structured, is_error=bool(result.is_error), most=most)

    def _lose(self, client: Client) -> None:
        """Mark the connection through `client` as lost, unless another call has already opened a new one."""
        self._transport.lost |= self._client is client

    def _refusal(self, client: Client, error: MCPError, doing: str) -> McpFailure:
        if error.code == CONNECTION_CLOSED or self._client is not client or self._transport.lost:
            self._lose(client)
            return died(self.spec.name, doing)
        if error.code == PARSE_ERROR:
            return bad_answer(self.spec.name, doing, error.message)
        if error.code == REQUEST_TIMEOUT:
            return timed_out(self.spec.name, doing, self.spec.bounds.call, self._transport.garbage)
        return refused(self.spec.name, doing, error.code, error.message)

    # -- the connection ----------------------------------------------------------------------------------------

    async def _alive(self) -> Client:
        """Return the SDK client for a running server, restarting a dead one if `Bounds.restarts` allows it."""
        async with self._opening:
            if self._transport.lost or self._client is None:
                if self.restarts >= self.spec.bounds.restarts:
                    raise gone(self.spec.name, self.restarts)
                self.restarts += 1
                before = self.definitions
                if self._transport.forgotten and self._in_flight:
                    await self._idle.wait()  # closing the connection would lose the answers to other calls
                await self._close()
                try:
                    await self._open()
                except McpFailure as failure:
                    raise gone(self.spec.name, self.restarts, str(failure)) from failure
                self._news = self.definitions if self.definitions != before else None
            assert self._client is not None
            return self._client

    async def _open(self) -> None:
        self._over, self._transport = asyncio.Event(), Transport(self.spec, self._errors)
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(ready), name=f"mcp-{self.spec.name}")
        try:
            async with asyncio.timeout(self.spec.bounds.connect):
                await asyncio.shield(ready)
        except TimeoutError:
            await self._close(at_once=True)
            raise timed_out(
                self.spec.name, "the handshake", self.spec.bounds.connect, self._transport.garbage
            ) from None
        except BaseException:
            await self._close(at_once=True)
            raise

    async def _own(self, ready: asyncio.Future[None]) -> None:
        """Open the SDK's client, wait, and close it, all in one task, as the SDK requires."""
        try:
            async with Client(
                self._transport.streams(), message_handler=self._on_message, client_info=_CLIENT, cache=None
            ) as client:
                self.definitions = await list_of(client, self.spec)
                self._client, self.version = client, client.protocol_version
                if not ready.done():
                    ready.set_result(None)
                await self._wait(client)
        except asyncio.CancelledError:
            ready.cancel()
            raise
        except Exception as error:  # noqa: BLE001  # any error from the SDK or a server's process
            if not ready.done():
                ready.set_exception(self._why_not(error))
                ready.exception()  # mark as retrieved: the opener may have stopped waiting
        finally:
            self._client, self._transport.lost = None, True

    async def _wait(self, client: Client) -> None:
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            await self._over.wait()
            return
        over = asyncio.create_task(self._over.wait())
        try:
            async with client.listen(tools_list_changed=True) as changes:
                following = asyncio.create_task(self._follow_changes(client, changes))
                try:
                    await over
                finally:
                    following.cancel()
        except (MCPError, RuntimeError):
            await over  # the server does not announce changes to its tools
        finally:
            over.cancel()

    async def _follow_changes(self, client: Client, changes: AsyncIterator[object]) -> None:
        async for _ in changes:
            self._on_list_changed(client)

    def _why_not(self, error: BaseException) -> McpFailure:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        name = self.spec.name
        match error:
            case McpFailure():
                return error
            case FileNotFoundError() | PermissionError():
                return unreachable(name, f"cannot be started: {error}")
            case MCPError() if error.code == CONNECTION_CLOSED:
                return died(name, "the handshake")
            case MCPError():
                return refused(name, "the handshake", error.code, error.message)
            case _ if isinstance(error, BROKEN):
                return unreachable(name, f"cannot be reached: {first_line(error)}")
            case _:
                return bad_answer(name, "the handshake", first_line(error))

    async def _close(self, *, at_once: bool = False) -> None:
        """Close the connection and wait for the server's process to end, even if this task is cancelled."""
        owner, cancelled = self._owner, False
        for task in self._listing:
            task.cancel()
        if owner is None:
            return
        self._over.set()
        if at_once:
            owner.cancel()
        latest = asyncio.get_running_loop().time() + _CLOSING
        while not owner.done():
            try:
                await asyncio.wait([owner], timeout=max(0.0, latest - asyncio.get_running_loop().time()))
            except asyncio.CancelledError:
                cancelled = True
                continue
            if not owner.done():
                owner.cancel()
                latest += _CLOSING
        self._owner = self._client = None
        if cancelled:
            raise asyncio.CancelledError

    # -- the list ----------------------------------------------------------------------------------------------

    async def _on_message(self, message: object) -> None:
        """Fetch the list of tools when the server announces a change."""
        if isinstance(message, ToolListChangedNotification) and self._client is not None:
            self._on_list_changed(self._client)

    def _on_list_changed(self, client: Client) -> None:
        """Start fetching the list of tools; an announcement during a fetch causes one more fetch."""
        self._stale = True
        # A finished task leaves the set only one loop pass later.
        if all(task.done() for task in self._listing):
            task = asyncio.create_task(self._catch_up(client))
            self._listing.add(task)
            task.add_done_callback(self._listing.discard)

    async def _catch_up(self, client: Client) -> None:
        while self._stale:
            self._stale = False
            await self._list_again(client)

    async def _list_again(self, client: Client) -> None:
        try:
            async with asyncio.timeout(self.spec.bounds.connect):
                found = await list_of(client, self.spec)
        except (
            McpFailure,
            MCPError,
            ValidationError,
            TimeoutError,
            *BROKEN,
        ) as error:
            _LOG.warning("MCP server %r: the changed list of tools cannot be read: %s", self.spec.name, error)
            return
        if found != self.definitions:
            self.definitions = self._news = found


_LOG: Final = logging.getLogger(__name__)
