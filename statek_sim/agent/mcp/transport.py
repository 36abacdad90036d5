"""The streams to an MCP server, through the official SDK: a process of its own, or HTTP; what is noticed on them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, TextIO

from statek_sim.agent.mcp.servers import Http, McpServerSpec, Stdio

try:
    import anyio
    import httpx2
    from mcp import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared.message import SessionMessage
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"connections to MCP servers use the official SDK, and {missing.name} is not installed: "
        "pip install 'pytest-statek[mcp]'",
        name=missing.name,
    ) from missing

BROKEN: Final = (OSError, httpx2.HTTPError, anyio.ClosedResourceError, anyio.BrokenResourceError)
"""What is raised where a server is not there any more."""


class Transport:
    """One way to a server, from opening its streams to their end. `errors` takes a process's standard error."""

    def __init__(self, spec: McpServerSpec, errors: TextIO) -> None:
        self.garbage = ""
        """The first line of what the server said last that was no message."""
        self.lost = False
        """Whether the streams are of no use any more."""
        self.forgotten = False
        """Whether the server said that it does not know the session."""
        self._spec = spec
        self._errors = errors

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[Any]:
        """Connect; what the server sends goes through here, so that its end is known at once."""
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
                    streamable_http_client(at.url, http_client=http) as streams,
                    self._watched(streams) as watched,
                ):
                    yield watched

    async def _responded(self, response: httpx2.Response) -> None:
        """Notice that the server does not know the session: the SDK hands on what the body says, not the status."""
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
                pass  # the session is gone first
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
    """Return the first line of what an error says, or its name."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__
