"""Transports for an MCP server: streamable HTTP and stdio (MCP revision 2025-11-25, section Transports)."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from collections.abc import AsyncGenerator, Sequence
from typing import Final, NoReturn, TextIO

from statek_sim.mcp.client import LONGEST_MESSAGE
from statek_sim.mcp.server import McpEntry, McpJournal, McpServer
from statek_sim.mcp.session import (
    INVALID_REQUEST,
    VERSIONS,
    Die,
    Message,
    RpcError,
    Send,
    Session,
    error,
    parsed,
)
from statek_sim.providers.network import is_loopback
from statek_sim.server.exchange import JSON_TYPE, Incoming, Live, Whole
from statek_sim.server.llm_server import RunningServer

PATH: Final = "/mcp"
"""The URL path of the MCP endpoint."""

DIED: Final = 3
"""The exit status of a server process ended by the fault `dies`."""

_SESSION: Final = "mcp-session-id"
_METHODS: Final = "POST, GET, DELETE"
_NO_SESSION: Final = -32001


class McpHttpServer(RunningServer):
    """An MCP server over streamable HTTP at `url`, running in its own thread until the `with` block ends.

    The fault `dies` closes every connection and the port; with `process`, it ends this process. Requests from other
    machines, and from pages with other origins in a local browser, are rejected unless `anywhere` is set.
    """

    def __init__(
        self,
        server: McpServer,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        anywhere: bool = False,
        process: bool = False,
    ) -> None:
        self.server = server
        self._process = process
        endpoint = _Endpoint(server, self._die, anywhere=anywhere)
        super().__init__(endpoint.answer, host=host, port=port, anywhere=anywhere)
        self.url += PATH

    def start(self) -> None:
        """Accept connections from now on, and record the start in the journal."""
        self.server.journal.add(McpEntry(what="started", method="streamable-http", detail=str(os.getpid())))
        super().start()

    @property
    def journal(self) -> McpJournal:
        """The journal of client requests."""
        return self.server.journal

    def list_only(self, names: Sequence[str]) -> None:
        """List only these tools from now on, and notify every client; raises `BadInput` for an unknown tool."""
        self.server.list_only(names)

    def _die(self) -> None:
        if self._process:
            os._exit(DIED)
        self.halt()


class _Refused(Exception):
    """Raised for a request that is answered with an HTTP error status and a JSON-RPC error code."""

    def __init__(self, status: int, message: str, code: int = INVALID_REQUEST) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class _Client:
    """An HTTP client's session, and the notifications waiting to be sent to it."""

    def __init__(self, server: McpServer, name: str, die: Die) -> None:
        self._news: asyncio.Queue[str | None] = asyncio.Queue()
        self.session = Session(server, announce=self._news.put, die=die, name=name)

    def close(self) -> None:
        """Close the session and its notification stream."""
        self.session.close()
        self._news.put_nowait(None)

    async def announced(self) -> AsyncGenerator[bytes, None]:
        """Yield notifications as server-sent events; if several streams are open, each event goes to only one."""
        while (line := await self._news.get()) is not None:
            yield _event(line)

    async def answered(self, message: Message) -> AsyncGenerator[bytes, None]:
        """Yield the answer to a request as server-sent events; closing the connection cancels the call."""
        stream: asyncio.Queue[str | None] = asyncio.Queue()

        async def reply(line: str) -> None:
            stream.put_nowait(line)

        task = asyncio.get_running_loop().create_task(self.session.receive(message, reply))
        task.add_done_callback(lambda _: stream.put_nowait(None))
        try:
            while (line := await stream.get()) is not None:
                yield _event(line)
        finally:
            task.cancel()


class _Endpoint:
    """Answers HTTP requests to the MCP endpoint."""

    def __init__(self, server: McpServer, die: Die, *, anywhere: bool) -> None:
        self._server = server
        self._die = die
        self._anywhere = anywhere
        self._clients: dict[str, _Client] = {}
        self._made = 0

    def answer(self, request: Incoming) -> Whole | Live:
        """Return the HTTP answer to a request, recording refusals in the journal."""
        try:
            self._check(request)
            match request.method:
                case "POST":
                    return self._post(request)
                case "GET":
                    _accepts(request, "text/event-stream")
                    return Live(frames=self._client(request).announced())
                case "DELETE":
                    self._client(request).close()
                    del self._clients[request.headers[_SESSION]]
                    return Whole(status=200, body=b"")
                case _:
                    raise _Refused(405, "expected POST, GET or DELETE")
        except _Refused as refusal:
            self._server.journal.add(
                McpEntry(what="refused", method=request.method, detail=f"{refusal.status} {refusal}")
            )
            body = json.dumps(error(None, refusal.code, str(refusal))).encode()
            allow = (("allow", _METHODS),) if refusal.status == 405 else ()
            return Whole(status=refusal.status, body=body, headers=allow)

    def _check(self, request: Incoming) -> None:
        if request.target.partition("?")[0] != PATH:
            raise _Refused(404, f"unknown path {request.target}; the MCP endpoint is {PATH}")
        if not self._anywhere:
            for header in ("host", "origin"):
                value = request.headers.get(header)
                if value is not None and not is_loopback(_host(value)):
                    raise _Refused(403, f"{header} is {value!r}, expected this machine's loopback")
        version = request.headers.get("mcp-protocol-version")
        if version is not None and version not in VERSIONS:
            raise _Refused(
                400, f"protocol version {version!r} is not supported; expected {', '.join(VERSIONS)}"
            )

    def _post(self, request: Incoming) -> Whole | Live:
        _accepts(request, JSON_TYPE)
        _accepts(request, "text/event-stream")
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON_TYPE:
            raise _Refused(415, f"expected content-type: {JSON_TYPE}")
        try:
            message = parsed(request.body)
        except RpcError as refusal:
            raise _Refused(400, str(refusal), refusal.code) from None
        if message.get("method") == "initialize" and "id" in message:
            self._made += 1
            name = f"session-{self._made}"
            client = self._clients[name] = _Client(self._server, name, self._die)
            return Live(frames=client.answered(message), headers=((_SESSION, name),))
        client = self._client(request)
        if "id" in message and "method" in message:
            return Live(frames=client.answered(message))
        try:
            client.session.take(message)
        except RpcError as refusal:
            raise _Refused(400, str(refusal), refusal.code) from None
        return Whole(status=202, body=b"")

    def _client(self, request: Incoming) -> _Client:
        name = request.headers.get(_SESSION)
        if name is None:
            raise _Refused(400, f"missing header {_SESSION}: send initialize first")
        if name not in self._clients:
            raise _Refused(404, f"session {name!r} no longer exists", _NO_SESSION)
        return self._clients[name]


def _accepts(request: Incoming, wanted: str) -> None:
    accepted = request.headers.get("accept", "")
    kinds = {part.partition(";")[0].strip().lower() for part in accepted.split(",")}
    if not kinds & {wanted, "*/*", f"{wanted.partition('/')[0]}/*"}:
        raise _Refused(406, f"accept is {accepted!r}, expected {JSON_TYPE} and text/event-stream")


def _host(header: str) -> str:
    """Return the host name in a Host or Origin header."""
    name = header.rpartition("//")[2]
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0]


def _event(line: str) -> bytes:
    return f"event: message\ndata: {line}\n\n".encode()


_GRACE: Final = 0.5
"""The time that running calls may take after the client has closed its input, in seconds."""


def serve_stdio(server: McpServer) -> None:
    """Serve one client on standard input and output until it closes the input.

    Tools print to standard error, because the client reads standard output as messages.
    """
    out, sys.stdout = sys.stdout, sys.stderr
    try:
        asyncio.run(_serve(server, out))
    finally:
        sys.stdout = out


async def _serve(server: McpServer, out: TextIO) -> None:
    async def send(line: str) -> None:
        try:
            out.write(line + "\n")
            out.flush()
        except BrokenPipeError:
            _die()

    reader = await _standard_input()
    server.journal.add(McpEntry(what="started", method="stdio", detail=str(os.getpid())))
    session = Session(server, announce=send, die=_die)
    async with asyncio.TaskGroup() as group:
        taken: set[asyncio.Task[None]] = set()
        while line := await reader.readline():
            if line.strip():
                taken.add(task := group.create_task(_take(session, line, send)))
                task.add_done_callback(taken.discard)
        if taken:
            # `echo ... | statek-sim serve mcp TOOLS` closes the input before the answer is ready.
            await asyncio.wait(taken, timeout=_GRACE)
        session.close()


async def _standard_input() -> asyncio.StreamReader:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LONGEST_MESSAGE)
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or sys.stdin.isatty()):
        # A file or /dev/null cannot be awaited, but can be read immediately.
        reader.feed_data(sys.stdin.buffer.read())
        reader.feed_eof()
        return reader
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def _take(session: Session, line: bytes, send: Send) -> None:
    try:
        await session.receive(parsed(line), send)
    except RpcError as refusal:
        await send(json.dumps(error(None, refusal.code, str(refusal))))


def _die() -> NoReturn:
    os._exit(DIED)
