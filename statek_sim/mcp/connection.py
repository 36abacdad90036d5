"""A connection to a real MCP server under asyncio, through the official SDK: open, keep, restart, call."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Self, TextIO

from pydantic import ValidationError

from statek_sim.agent.effects import ToolOutcome
from statek_sim.mcp.servers import (
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
"""Errors raised if a server is gone."""


class Transport:
    """One connection to a server, from opening its streams to their end. `errors` takes a process's standard error."""

    def __init__(self, spec: McpServerSpec, errors: TextIO) -> None:
        self.garbage = ""
        """First line of the server's last output that was not a message."""
        self.lost = False
        """Whether the streams are unusable."""
        self.forgotten = False
        """Whether the server reported an unknown session."""
        self._spec = spec
        self._errors = errors

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[Any]:
        """Connect and yield the message streams.

        Messages are relayed, so that a server's exit is noticed immediately.
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
        """Notice that the server does not know the session: the SDK passes on the body, not the status."""
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
                pass  # the session is closed first
            finally:
                self.lost = True

        async with anyio.create_task_group() as group:
            group.start_soon(pass_on)
            try:
                yield outward, write
            finally:
                outward.close()
                group.cancel_scope.cancel()


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, or its type."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__


_CLOSING: Final = 10.0
"""Seconds before a connection that does not close by itself is cut."""

_CLIENT: Final = Implementation(name="statek-sim", version="1")


class McpConnection:
    """One server, from entering the block to leaving it.

    `definitions` are the tools of its latest list. A changed list is fetched at once and returned by `changes` on the
    next call. A call is cancelled with its task, and the server is notified. Leaving the block always ends the server's
    process within a few seconds, and a cancellation waits for that. `errors` takes what the process writes to standard
    error; None: this process's own.
    """

    def __init__(self, spec: McpServerSpec, *, errors: TextIO | None = None) -> None:
        self.spec = spec
        self.definitions: tuple[Definition, ...] = ()
        self.restarts = 0
        self.version = ""
        """The negotiated version of the protocol."""
        # Not `sys.stderr`: in tests, for example, it may not be a file that a process can write to.
        self._errors = errors or sys.__stderr__ or sys.stderr
        self._client: Client | None = None
        self._owner: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._transport = Transport(spec, self._errors)
        self._news: tuple[Definition, ...] | None = None
        self._listing: set[asyncio.Task[None]] = set()
        self._stale = False
        self._opening = asyncio.Lock()
        self._in_flight = 0
        self._landed = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Start or reach the server and list its tools; raises `McpFailure` if that fails."""
        await self._open()
        self._news = None
        return self

    async def __aexit__(self, *error: object) -> None:
        """Disconnect from the server."""
        await self._close()

    def changes(self) -> tuple[Definition, ...] | None:
        """Return the server's tools if they changed since the last call, else None."""
        news, self._news = self._news, None
        return news

    async def call(self, tool: str, arguments: Mapping[str, JSON]) -> ToolOutcome:
        """Call a tool; every failure is an outcome with a type."""
        return await call_within_bounds(
            self.spec, tool, self._call(tool, arguments), lambda: self._transport.garbage
        )

    async def _call(self, tool: str, arguments: Mapping[str, JSON]) -> ToolOutcome:
        client = await self._alive()
        name, doing = self.spec.name, call_of(tool)
        try:
            result = await self._asked(client, tool, arguments)
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
        # A restarted server does not know the session, and did nothing: start a new session.
        self._lose(client)
        return await self._call(tool, arguments)

    async def _asked(self, client: Client, tool: str, arguments: Mapping[str, JSON]) -> CallToolResult:
        self._in_flight += 1
        self._landed.clear()
        try:
            return await client.call_tool(tool, dict(arguments))
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._landed.set()

    def _outcome(self, result: CallToolResult) -> ToolOutcome:
        content = [
            block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content
        ]
        structured, most = result.structured_content, self.spec.bounds.text
        return returned(content, structured, is_error=bool(result.is_error), most=most)

    def _lose(self, client: Client) -> None:
        """Mark a connection as unusable, unless another call has already opened a new one."""
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
        """Return the client of a running server; a dead one is restarted as often as allowed."""
        async with self._opening:
            if self._transport.lost or self._client is None:
                if self.restarts >= self.spec.bounds.restarts:
                    raise gone(self.spec.name, self.restarts)
                self.restarts += 1
                before = self.definitions
                if self._transport.forgotten and self._in_flight:
                    await self._landed.wait()  # closing it would cut off the answers to other calls
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
        """Hold the connection in one task until its end, as the SDK requires."""
        try:
            async with Client(
                self._transport.streams(), message_handler=self._noticed, client_info=_CLIENT, cache=None
            ) as client:
                self.definitions = await list_of(client, self.spec)
                self._client, self.version = client, client.protocol_version
                if not ready.done():
                    ready.set_result(None)
                await self._wait(client)
        except asyncio.CancelledError:
            ready.cancel()
            raise
        except Exception as error:  # noqa: BLE001  # any error of the SDK or a server's process
            if not ready.done():
                ready.set_exception(self._why_not(error))
                ready.exception()  # retrieved, even if it is no longer awaited
        finally:
            self._client, self._transport.lost = None, True

    async def _wait(self, client: Client) -> None:
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            await self._over.wait()
            return
        over = asyncio.create_task(self._over.wait())
        try:
            async with client.listen(tools_list_changed=True) as changes:
                heard = asyncio.create_task(self._hear(client, changes))
                try:
                    await over
                finally:
                    heard.cancel()
        except (MCPError, RuntimeError):
            await over  # it does not announce changes of its list
        finally:
            over.cancel()

    async def _hear(self, client: Client, changes: AsyncIterator[object]) -> None:
        async for _ in changes:
            self._told_of_change(client)

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
        """Close the connection and wait until its process is gone; a cancellation also waits for that."""
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

    async def _noticed(self, message: object) -> None:
        """Fetch the list when the server announces a change."""
        if isinstance(message, ToolListChangedNotification) and self._client is not None:
            self._told_of_change(self._client)

    def _told_of_change(self, client: Client) -> None:
        """Fetch the list; any further announcements meanwhile cause one more fetch."""
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
            _LOG.warning(
                "MCP server %r: its list of tools changed and cannot be read: %s", self.spec.name, error
            )
            return
        if found != self.definitions:
            self.definitions = self._news = found


_LOG: Final = logging.getLogger(__name__)
