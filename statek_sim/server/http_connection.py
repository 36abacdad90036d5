"""An HTTP/1.1 connection on asyncio: httptools (llhttp) parses requests, which are answered in order.

The connection is closed after a response of 431 (head larger than `LARGEST_HEAD`), 413 (body larger than
`LARGEST_BODY`), 400 (unparsable input) or 501 (upgrade). Host and encoding headers are not checked.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final

import httptools

from statek_sim.providers.http_provider import PHRASES
from statek_sim.server.exchange import (
    EVENTS_TYPE,
    Answer,
    Incoming,
    Live,
    Silence,
    Streamed,
    Whole,
    failed,
    refused,
)

Handler = Callable[[Incoming], Answer | Live]

_LINGERING: Final = 0.5
"""Seconds to wait before closing, so that a client still sending data can read the response before the reset."""

_BEFORE_A_RESET: Final = 0.05
"""Seconds to wait before a reset, so that the client can read the events already sent."""

_ABORTIVE: Final = struct.pack("ii", 1, 0)
"""SO_LINGER with 0 seconds: closing sends RST instead of FIN."""

LARGEST_HEAD: Final = 1024 * 1024
"""The maximum size of a request's target and headers, in bytes, without the last chunk of the head."""

LARGEST_BODY: Final = 32 * 1024 * 1024
"""The maximum size of a request body, in bytes."""


class HttpConnection(asyncio.Protocol):
    """A connection to one client. Requests are answered one after another.

    While it is open, the connection is in `open_connections`.
    """

    def __init__(self, handler: Handler, open_connections: set[HttpConnection]) -> None:
        self._handler = handler
        self._open_connections = open_connections
        self._parser = httptools.HttpRequestParser(self)
        self._head_open = False
        self._head_bytes = 0
        self._target = b""
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._finished = False
        """Whether to ignore further input because the last request has been received."""
        self._heard_all = False
        """Whether the client has closed its sending side."""
        self._pending: deque[tuple[Incoming, Whole | None]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._endless = False
        """Whether the current response ends only when the client disconnects or half-closes the connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the new connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._open_connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel pending responses to the disconnected client, and release its data."""
        self._open_connections.discard(self)
        self._finished = True
        self._body = bytearray()
        self._pending.clear()
        # The parser and this connection reference each other; break the cycle, so that memory is freed at once.
        del self._parser
        if self._task is not None:
            self._task.cancel()

    def eof_received(self) -> bool:
        """Handle the client's half-close; return whether to keep the connection open for pending responses."""
        self._finished = self._heard_all = True
        return self._task is not None and not self._endless

    def data_received(self, data: bytes) -> None:
        """Parse the input, and answer each complete request."""
        if self._finished:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # already refused when its head was complete
        except httptools.HttpParserError as error:
            self._refuse(400, f"not an HTTP/1.1 request: {error}")
        if self._head_open:
            self._head_bytes += len(data)
            if self._head_bytes > LARGEST_HEAD:
                self._refuse(431, f"the request head exceeds {LARGEST_HEAD} bytes")

    # Callbacks of the parser, in this order.

    def on_message_begin(self) -> None:
        """Reset the state for a new request."""
        self._head_open = True
        self._head_bytes = 0
        self._target = b""
        self._headers = {}
        self._body = bytearray()

    def on_url(self, url: bytes) -> None:
        """Append a chunk to the request target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header, joining the values if the header is repeated; trailers are ignored."""
        if not self._head_open:
            return
        key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")
        self._headers[key] = f"{self._headers[key]}, {text}" if key in self._headers else text

    def on_headers_complete(self) -> None:
        """Reject an invalid head before the client sends the body."""
        self._head_open = False
        version = self._parser.get_http_version()
        if version not in ("1.0", "1.1"):
            self._refuse(400, f"not an HTTP/1.1 request: the version is {version}")
        elif self._parser.should_upgrade():
            self._refuse(501, "this server supports only HTTP/1.1; disable the upgrade in the client")
        announced = self._headers.get("content-length", "")
        if announced.isdecimal():
            self._check_body(int(announced[:20]))
        waits = version == "1.1" and self._headers.get("expect", "").lower() == "100-continue"
        # During the previous answer, this line would become a part of that answer.
        if waits and self._task is None and not self._finished:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Append a chunk to the body, and check the body's total size."""
        self._check_body(len(self._body) + len(body))
        if not self._finished:
            self._body += body

    def on_message_complete(self) -> None:
        """Answer the complete request, or queue it until the current response is sent."""
        if self._finished:
            return
        version = self._parser.get_http_version()
        keep_alive = version == "1.1" and self._parser.should_keep_alive()
        method, target = self._parser.get_method().decode("latin-1"), self._target.decode("latin-1")
        self._finished = not keep_alive
        body, self._body = bytes(self._body), bytearray()
        self._give(Incoming(method, target, self._headers, body, version, keep_alive))

    # Refusals.

    def _check_body(self, size: int) -> None:
        if size > LARGEST_BODY:
            self._refuse(413, f"the request body exceeds {LARGEST_BODY} bytes")

    def _refuse(self, status: int, message: str) -> None:
        """Send an error and close the connection, because the rest of the input cannot be parsed."""
        if self._finished:
            return
        self._finished = True
        target = self._target.decode("latin-1")
        self._give(Incoming("", target, {}, b"", keep_alive=False), refused(status, message, target))

    def stop(self) -> None:
        """Close the connection immediately, even in the middle of a response."""
        self._transport.abort()

    # Answers.

    def _give(self, request: Incoming, refusal: Whole | None = None) -> None:
        """Answer a request now (in a task if the answer takes time), or queue it until the current response is sent."""
        if self._task is not None:
            self._pending.append((request, refusal))
            return
        answer = refusal or self._answer(request)
        if isinstance(answer, Whole) and not answer.delay:
            self._write_whole(request, answer)
        else:
            self._task = self._loop.create_task(self._take_time(request, answer))

    def _answer(self, request: Incoming) -> Answer | Live:
        try:
            return self._handler(request)
        except Exception as error:  # noqa: BLE001  # the parser would take it for a malformed request
            return failed(error, request.target)

    async def _take_time(self, request: Incoming, answer: Answer | Live) -> None:
        """Send a response that takes time, then the responses to all queued requests.

        An exception while sending aborts the connection, so that the client does not wait forever.
        """
        try:
            await self._send(request, answer)
            while self._pending and not self._transport.is_closing():
                request, refusal = self._pending.popleft()
                await self._send(request, refusal or self._answer(request))
            if self._heard_all:
                self._transport.close()
        except Exception:
            self._transport.abort()
            raise
        finally:
            self._task = None

    async def _send(self, request: Incoming, answer: Answer | Live) -> None:
        if isinstance(answer, Whole):
            await asyncio.sleep(answer.delay)
            self._write_whole(request, answer)
            return
        if isinstance(answer, Streamed):
            await self._stream(request, answer, _timed(answer))
            return
        if self._heard_all:
            self._transport.close()
            return
        self._endless = True
        try:
            if isinstance(answer, Silence):
                await self._loop.create_future()
            else:
                await self._stream(request, answer, answer.frames)
        finally:
            self._endless = False

    def _write_whole(self, request: Incoming, answer: Whole) -> None:
        """Write a whole response, unless the client has disconnected (asyncio would log a warning)."""
        if self._transport.is_closing():
            return
        body = b"" if request.method == "HEAD" else answer.body
        head = _head(answer, request, f"content-length: {len(answer.body)}")
        self._transport.write(head + body)
        self._end(request)

    async def _stream(
        self, request: Incoming, answer: Streamed | Live, frames: AsyncGenerator[bytes, None]
    ) -> None:
        """Write frames as HTTP chunks or, for an HTTP/1.0 client, as plain bytes that end when the connection closes.

        A live response's head is written immediately; otherwise, the head is written with the first frame.
        """
        transport, chunked = self._transport, request.version != "1.0"
        head = _head(answer, request, "transfer-encoding: chunked" if chunked else "")
        if isinstance(answer, Live):
            transport.write(head)
            head = b""
        async with aclosing(frames):
            async for data in frames:
                if transport.is_closing():
                    return
                if data:
                    transport.write(head + (b"%x\r\n%s\r\n" % (len(data), data) if chunked else data))
                    head = b""
        if isinstance(answer, Streamed) and answer.reset:
            await self._break()
        elif not transport.is_closing():
            transport.write(head + (b"0\r\n\r\n" if chunked else b""))
            self._end(request)

    def _end(self, request: Incoming) -> None:
        """If this was the last response, close the connection once the client has had time to read it."""
        if not request.keep_alive:
            self._transport.write_eof()
            self._loop.call_later(_LINGERING, self._transport.close)

    async def _break(self) -> None:
        """Reset the connection once the client has had time to read the data already sent."""
        # A reset discards data that the client has not read yet.
        await asyncio.sleep(_BEFORE_A_RESET)
        if self._transport.is_closing():
            return
        connection: socket.socket = self._transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORTIVE)
        self._transport.abort()


async def _timed(answer: Streamed) -> AsyncGenerator[bytes, None]:
    for delay, data in answer.frames:
        if delay:
            await asyncio.sleep(delay)
        yield data


def _head(answer: Whole | Streamed | Live, request: Incoming, framing: str) -> bytes:
    """Return a response's status line and headers; `framing` is the header that determines the body's length."""
    status, kind = (200, EVENTS_TYPE) if isinstance(answer, Live) else (answer.status, answer.content_type)
    lines = [
        f"HTTP/1.1 {status} {'OK' if status == 200 else PHRASES.get(status, '')}",
        f"content-type: {kind}",
    ]
    lines += [f"{name}: {value}" for name, value in answer.headers]
    lines += [framing] if framing else []
    lines += [] if request.keep_alive else ["connection: close"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
