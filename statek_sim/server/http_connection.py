"""One HTTP/1.1 connection on asyncio. httptools (llhttp) parses requests; answers are sent in order.

A head and a body have size limits, and a request must arrive in time. Unparsable input is answered with 400, an upgrade
with 501, and the connection closes. Host and encoding headers are not checked.
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
    Answer,
    Incoming,
    Limits,
    Live,
    Silence,
    Streamed,
    Whole,
    failed,
    refused,
)

Handler = Callable[[Incoming], Answer | Live]

_LINGERING: Final = 0.5
"""Seconds for a client that still sends to read the last answer; an immediate close would reset its connection."""

_BEFORE_A_RESET: Final = 0.05
"""Seconds for a client to read the events of a stream that is reset."""

_ABORTIVE: Final = struct.pack("ii", 1, 0)
"""SO_LINGER with 0 seconds: closing sends RST instead of FIN."""

_LINE: Final = 4
"""Minimum bytes of a header besides its name and its value."""


class HttpConnection(asyncio.Protocol):
    """The connection of one client, whose requests are answered one after another.

    `started_at` is when the current request began, by the loop's clock; None between requests.
    """

    def __init__(self, handler: Handler, limits: Limits, open_connections: set[HttpConnection]) -> None:
        self.started_at: float | None = None
        self._handler = handler
        self._limits = limits
        self._open_connections = open_connections
        self._parser = httptools.HttpRequestParser(self)
        self._head_open = False
        self._only_head = False
        """Whether the current chunk only contains a head, or a part of one."""
        self._line_bytes = self._piece_bytes = 0
        self._target = b""
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._finished = False
        """Whether further input is ignored."""
        self._heard_all = False
        """Whether the client has closed its sending side."""
        self._pending: deque[tuple[Incoming, Whole | None]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._endless = False
        """Whether the current answer ends when the client disconnects, which a half-close signals."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Record the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._open_connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop answering a client that is gone, and release its data."""
        self._open_connections.discard(self)
        self.started_at = None
        self._finished = True
        self._body = bytearray()
        self._pending.clear()
        # The parser and this connection reference each other: without this, memory would be freed only later.
        del self._parser
        if self._task is not None:
            self._task.cancel()

    def eof_received(self) -> bool:
        """Send the pending answers to a client that sends no more; return whether there are any."""
        self.started_at = None
        self._finished = self._heard_all = True
        return self._task is not None and not self._endless

    def data_received(self, data: bytes) -> None:
        """Parse the input; answer each complete request."""
        if self._finished:
            return
        self._only_head = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # already refused when its head was complete
        except httptools.HttpParserError as error:
            self._refuse(400, f"not an HTTP/1.1 request: {error}")
        if self._head_open and self._only_head:
            self._piece_bytes += len(data)
            self._check_head(self._piece_bytes)

    # Callbacks of the parser, in this order.

    def on_message_begin(self) -> None:
        """Start a request."""
        self.started_at = self._loop.time()
        self._head_open = True
        self._line_bytes = self._piece_bytes = 0
        self._target = b""
        self._headers = {}
        self._body = bytearray()

    def on_url(self, url: bytes) -> None:
        """Add a piece of the target."""
        self._target += url
        self._line_bytes += len(url)
        self._check_head(self._line_bytes)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; a repeated one counts as one with both values. Trailers are ignored."""
        if not self._head_open:
            return
        self._line_bytes += len(name) + len(value) + _LINE
        self._check_head(self._line_bytes)
        key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")
        self._headers[key] = f"{self._headers[key]}, {text}" if key in self._headers else text

    def on_headers_complete(self) -> None:
        """Check the announced body before it is sent."""
        self._head_open = False
        version = self._parser.get_http_version()
        if version not in ("1.0", "1.1"):
            self._refuse(400, f"not an HTTP/1.1 request: its version is {version}")
        elif self._parser.should_upgrade():
            self._refuse(501, "this server supports HTTP/1.1 only; disable the upgrade in the client")
        announced = self._headers.get("content-length", "")
        if announced.isdecimal():
            self._check_body(int(announced[:20]))
        waits = version == "1.1" and self._headers.get("expect", "").lower() == "100-continue"
        # Sent during the previous answer, it would become a part of that answer.
        if waits and self._task is None and not self._finished:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Add a piece of the body."""
        self._check_body(len(self._body) + len(body))
        if not self._finished:
            self._body += body

    def on_message_complete(self) -> None:
        """Answer the request, or queue it behind the current answer."""
        self.started_at = None
        self._only_head = False
        if self._finished:
            return
        version = self._parser.get_http_version()
        keep_alive = version == "1.1" and self._parser.should_keep_alive()
        method, target = self._parser.get_method().decode("latin-1"), self._target.decode("latin-1")
        self._finished = not keep_alive
        body, self._body = bytes(self._body), bytearray()
        self._give(Incoming(method, target, self._headers, body, version, keep_alive))

    # Refusals.

    def _check_head(self, size: int) -> None:
        if size > self._limits.head:
            self._refuse(431, f"the head of the request exceeds {self._limits.head} bytes")

    def _check_body(self, size: int) -> None:
        if size > self._limits.body:
            self._refuse(413, f"the body of the request exceeds {self._limits.body} bytes")

    def refuse_slow(self) -> None:
        """Refuse a request that does not arrive in time."""
        self._refuse(408, f"the request did not arrive within {self._limits.seconds:g} seconds")

    def _refuse(self, status: int, message: str) -> None:
        """Send an error and close: the rest of the input cannot be parsed."""
        if self._finished:
            return
        self._finished = True
        self.started_at = None
        target = self._target.decode("latin-1")
        self._give(Incoming("", target, {}, b"", keep_alive=False), refused(status, message, target))

    def stop(self) -> None:
        """Close at once, even during an answer."""
        self._transport.abort()

    # Answers.

    def _give(self, request: Incoming, refusal: Whole | None = None) -> None:
        """Answer at once, in a task, or after the current answer."""
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
        """Send an answer that takes time, then those queued after it.

        An answer that fails in the middle breaks the connection: its client would wait for the rest forever.
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
        """Write an answer at once, unless the client is gone, for which asyncio would log a warning."""
        if self._transport.is_closing():
            return
        body = b"" if request.method == "HEAD" else answer.body
        head = _head(answer, request, f"content-length: {len(answer.body)}")
        self._transport.write(head + body)
        self._end(request)

    async def _stream(
        self, request: Incoming, answer: Streamed | Live, frames: AsyncGenerator[bytes, None]
    ) -> None:
        """Write frames as chunks, or unchunked to an HTTP/1.0 client, which reads until the connection closes.

        The head of a live answer is sent before its first frame, that of any other answer together with it.
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
        """Close the connection after the last answer, once the client has read it."""
        if not request.keep_alive:
            self._transport.write_eof()
            self._loop.call_later(_LINGERING, self._transport.close)

    async def _break(self) -> None:
        """Reset the connection once the written data has reached the client's kernel."""
        # A reset discards data that the client has not read yet: give it time to read the frames before.
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
    """Return the status line and the headers; `framing` is the header for the body's length."""
    phrase = "OK" if answer.status == 200 else PHRASES.get(answer.status, "")
    lines = [f"HTTP/1.1 {answer.status} {phrase}", f"content-type: {answer.content_type}"]
    lines += [f"{name}: {value}" for name, value in answer.headers]
    lines += [framing] if framing else []
    lines += [] if request.keep_alive else ["connection: close"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
