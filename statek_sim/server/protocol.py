"""HTTP/1.1 on asyncio: bytes in, requests out; `response_writer` writes. httptools (llhttp) reads the requests.

A shell around a function from request to answer, and a thin one: a server for tests that is slower than what it
tests hides the load it was started for. Bodies and heads have limits, a request must arrive in time, what is not HTTP
is answered with 400 and closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import httptools

from statek_sim.server.exchange import Incoming, Limits
from statek_sim.server.response_writer import AnswerQueue, Handler, head_of
from statek_sim.server.routes import refused

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_LINGERING: Final = 0.5
"""Seconds in which a refused client may finish sending and read why."""

_LINE: Final = 4
"""Bytes that a header takes beside its name and its value, at least."""


class HttpProtocol(asyncio.Protocol):
    """One connection.

    What counts towards the limit of a head are its lines, and of a line that never ends the pieces in which it comes.
    """

    __slots__ = (
        "_answers",
        "_behind",
        "_body",
        "_handler",
        "_head_bytes",
        "_head_open",
        "_headers",
        "_limits",
        "_line_bytes",
        "_loop",
        "_parser",
        "_piece_bytes",
        "_refused",
        "_target",
        "_transport",
        "open_connections",
        "started_at",
    )

    def __init__(self, handler: Handler, limits: Limits, open_connections: set[HttpProtocol]) -> None:
        self._handler = handler
        self._limits = limits
        self._parser = httptools.HttpRequestParser(self)
        self._refused = False
        self._head_open = self._behind = False
        self._head_bytes = self._line_bytes = self._piece_bytes = 0
        self._target = b""
        self._headers: dict[str, str] = {}
        self._body: bytes | bytearray = b""
        self.open_connections = open_connections
        self.started_at: float | None = None
        """When the request that is being received began, by the loop's clock; None between requests."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember who is there."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._answers = AnswerQueue(self._handler, transport, self._loop)
        self.open_connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop answering a client that is gone, and let go of what it had sent."""
        self.open_connections.discard(self)
        self.started_at = None
        self._refused = True
        self._body = b""
        self._headers = {}
        # The parser and this connection hold each other: memory would be given back some time later only.
        del self._parser
        self._answers.give_up()

    def data_received(self, data: bytes) -> None:
        """Read what came; answer each request that is complete."""
        # Pieces as long as a head may be: one that begins and ends in the same is short enough.
        for at in range(0, len(data), self._limits.head):
            self._read(data[at : at + self._limits.head])

    def eof_received(self) -> bool:
        """Let a client that says no more have what it asked for; return whether that is still to be given.

        It may have left as well: the next pieces that are written to it tell.
        """
        # Of a request that is not whole, no more will come.
        self.started_at = None
        self._body = b""
        return self._answers.finish()

    def _read(self, piece: bytes) -> None:
        if self._refused:
            return
        self._behind, self._piece_bytes = False, len(piece)
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            pass  # refused when its head was complete
        except httptools.HttpParserError as error:
            self._refuse(400, f"this is no HTTP/1.1 request: {error}")
        if self._head_open:
            self._head_bytes += len(piece)
            self._check_head(self._head_bytes)

    def pause_writing(self) -> None:
        """Wait for a client that reads slower than it is written to."""
        self._answers.pause()

    def resume_writing(self) -> None:
        """Go on."""
        self._answers.resume()

    # What the parser calls, in this order.

    def on_message_begin(self) -> None:
        """Start a request."""
        self.started_at = self._loop.time()
        self._target = b""
        self._headers = {}
        self._line_bytes = 0
        self._head_open = True
        # What came before it in the same piece is no part of its head.
        self._head_bytes = -self._piece_bytes if self._behind else 0
        self._body = b""

    def on_url(self, url: bytes) -> None:
        """Take a piece of the target."""
        self._target += url
        self._line_bytes += len(url)
        self._check_head(self._line_bytes)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; one that comes twice counts as one with both values. Those behind a body are left out."""
        self._line_bytes += len(name) + len(value) + _LINE
        self._check_head(self._line_bytes)
        if not self._head_open:
            return
        key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")
        self._headers[key] = f"{self._headers[key]}, {text}" if key in self._headers else text

    def on_headers_complete(self) -> None:
        """Look at what is announced before it is sent."""
        self._head_open = False
        headers, version = self._headers, self._parser.get_http_version()
        problem = _head_problem(version, headers)
        if problem is not None:
            self._refuse(*problem)
        elif self._parser.should_upgrade():
            self._refuse(501, "this server speaks HTTP/1.1 only; let the client ask without an upgrade")
        announced = headers.get("content-length", "")
        if announced.isdecimal():
            self._check_body(int(announced[:20]))
        waits = version == "1.1" and headers.get("expect", "").lower() == "100-continue"
        # In the middle of the answer before, it would be taken for a part of that.
        if waits and not (self._refused or self._answers.busy or self._transport.is_closing()):
            self._transport.write(_CONTINUE)

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._check_body(len(self._body) + len(body))
        if self._refused:
            self._body = b""
        elif self._body:
            # One block that grows, and not a list: the system gets it back at once when the client goes.
            if type(self._body) is bytes:
                self._body = bytearray(self._body)
            self._body += body
        else:
            self._body = body

    def on_message_complete(self) -> None:
        """Answer, or queue behind the answer that is being given."""
        self.started_at = None
        self._behind = True
        if self._refused:
            return
        parser = self._parser
        request = Incoming(
            parser.get_method().decode("latin-1"),
            self._target.decode("latin-1"),
            self._headers,
            bytes(self._body),
            parser.get_http_version(),
            parser.should_keep_alive(),
        )
        self._body = self._target = b""
        self._answers.give(request)

    # Refusals.

    def _check_head(self, size: int) -> None:
        if size > self._limits.head:
            self._refuse(431, f"the head of a request has at most {self._limits.head} bytes here")

    def _check_body(self, size: int) -> None:
        if size > self._limits.body:
            self._refuse(413, f"the body of a request has at most {self._limits.body} bytes here")

    def refuse_slow(self) -> None:
        """Give up on a request that does not arrive."""
        self._refuse(408, f"a request has to arrive within {self._limits.seconds:g} seconds here")

    def _refuse(self, status: int, message: str) -> None:
        """Say what is wrong and close: what follows on this connection cannot be understood."""
        if self._refused:
            return
        self._refused = True
        self.started_at = None
        # What was asked for before is given, however long it takes.
        if self._answers.finish():
            return
        if not (self._answers.busy or self._transport.is_closing()):
            answer = refused(status, message, self._target.decode("latin-1"))
            head = head_of(status, answer.content_type, (), False)
            body = answer.body
            self._transport.write(b"%scontent-length: %d\r\n\r\n%s" % (head, len(body), body))
            self._transport.write_eof()
        # Closed while the client still sends, the connection would be reset, and the reason lost with it.
        self._loop.call_later(_LINGERING, self._transport.close)

    def stop(self) -> None:
        """Close at once, whatever is being sent."""
        self._transport.abort()


def _head_problem(version: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
    """Return the status and the reason for a head that is not to be read on; None when there is none."""
    if version not in ("1.0", "1.1"):
        return 400, f"this is no HTTP/1.1 request: it says version {version}"
    host = headers.get("host")
    if host is None and version != "1.0":
        return 400, "this is no HTTP/1.1 request: it has no Host header"
    if host is not None and "," in host:
        return 400, f"expected one host in the Host header, got {host[:80]!r}"
    encoding = headers.get("transfer-encoding", "chunked")
    if encoding.lower() != "chunked":
        return 501, f"of transfer encodings only chunked is read here, not {encoding[:80]!r}"
    return None
