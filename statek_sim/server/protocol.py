"""HTTP/1.1 on asyncio: bytes in, requests out; `response_writer` writes. httptools (llhttp) reads the requests.

A shell around a function from request to answer, and a thin one: a server for tests that is slower than what it
tests hides the load it was started for. Bodies and heads have limits, a request must arrive in time, what is not HTTP
is answered with 400 and closed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import httptools

from statek_sim.server.exchange import Incoming, Limits
from statek_sim.server.response_writer import AnswerQueue, Handler, head_of
from statek_sim.server.routes import refused

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_LINGERING: Final = 0.5
"""Seconds in which a refused client may finish sending and read why."""

_END_OF_HEAD: Final = b"\r\n\r\n"
_LINE: Final = 4
"""Bytes that a header behind a body takes beside its name and its value, at least."""

_LONGEST_SIZE: Final = 64
"""Bytes that are kept of what came before, for the size of a chunk that comes in two pieces."""


class HttpProtocol(asyncio.Protocol):
    """One connection."""

    __slots__ = (
        "_answers",
        "_body",
        "_body_bytes",
        "_body_here",
        "_chunk_here",
        "_handler",
        "_head",
        "_head_open",
        "_headers",
        "_here",
        "_last_body",
        "_limits",
        "_loop",
        "_parser",
        "_refused",
        "_slice",
        "_tail",
        "_target",
        "_trailer_bytes",
        "_transport",
        "open_connections",
        "started_at",
    )

    def __init__(self, handler: Handler, limits: Limits, open_connections: set[HttpProtocol]) -> None:
        self._handler = handler
        self._limits = limits
        self._parser = httptools.HttpRequestParser(self)
        self._refused = False
        self._head_open = False
        self._here = False
        self._head = bytearray()
        self._slice = self._tail = self._target = self._last_body = b""
        self._headers: dict[str, str] = {}
        self._body: bytes | bytearray = b""
        self._body_bytes = self._body_here = 0
        self._chunk_here: int | None = None
        self.open_connections = open_connections
        self.started_at: float | None = None
        """When the request that is being received began, by the loop's clock; None between requests."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember who is there."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._answers = AnswerQueue(self._handler, self._limits, transport, self._loop)
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
        # Slices as long as a head may be: one that begins and ends in the same is short enough.
        most = self._limits.head
        if len(data) <= most:
            self._read(data)
        else:
            for at in range(0, len(data), most):
                self._read(data[at : at + most])
        self._answers.look_at_unread()

    def eof_received(self) -> bool:
        """Let a client that says no more have what it asked for; return whether that is still to be given.

        It may have left as well: the next pieces that are written to it tell.
        """
        # Of a request that is not whole, no more will come.
        self.started_at = None
        self._body = b""
        return self._answers.finish()

    def _read(self, data: bytes) -> None:
        if self._refused:
            return
        if b"\t" in data:
            line = self._head[max(self._head.rfind(b"\n"), 0) :] if self._head_open else b""
            data = with_spaces(line, data)
        self._slice, self._last_body = data, b""
        self._here, self._body_here, self._chunk_here = False, 0, None
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # refused when its head was complete
        except httptools.HttpParserError as error:
            self._refuse(400, f"this is no HTTP/1.1 request: {error}")
        if self._head_open:
            # A header is told of when it is complete; one that never is has to stop somewhere too.
            self._head += data[self._begin_of_head() :] if self._here else data
            self._check_head(len(self._head))
        elif self._chunk_here is not None:
            size = chunk_size(self._tail + data[: len(data) - self._chunk_here])
            self._check_body(self._body_bytes - self._chunk_here + size)
        self._tail = (self._tail + data[-_LONGEST_SIZE:])[-_LONGEST_SIZE:]
        self._slice = self._last_body = b""

    def _begin_of_head(self) -> int:
        """Return where in this slice the head begins that has not ended.

        No head that is open has an empty line in it: it begins behind the last one, or behind what the body before it
        has after its own last one.
        """
        body = self._last_body
        inside = body.rfind(_END_OF_HEAD)
        behind = len(body) if inside < 0 else len(body) - inside - len(_END_OF_HEAD)
        before = self._slice.rfind(_END_OF_HEAD)
        return behind + (0 if before < 0 else before + len(_END_OF_HEAD))

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
        self._trailer_bytes = 0
        self._head.clear()
        self._head_open = self._here = True
        self._body = b""
        self._body_bytes = self._body_here = 0
        self._chunk_here = None

    def on_url(self, url: bytes) -> None:
        """Take a piece of the target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; one that comes twice counts as one with both values. Those behind a body are left out."""
        if not self._head_open:
            self._trailer_bytes += len(name) + len(value) + _LINE
            self._check_head(self._trailer_bytes)
            return
        key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")
        self._headers[key] = f"{self._headers[key]}, {text}" if key in self._headers else text

    def on_headers_complete(self) -> None:
        """Look at what is announced before it is sent."""
        self._head_open = False
        raw: bytes | bytearray = self._slice
        if self._head:
            raw = self._head + raw
            self._check_head(raw.find(_END_OF_HEAD) + len(_END_OF_HEAD))
        version = self._parser.get_http_version()
        self._check_announced(version, raw)
        waits = version == "1.1" and self._headers.get("expect", "").lower() == "100-continue"
        # In the middle of the answer before, it would be taken for a part of that.
        if waits and not (self._refused or self._answers.busy or self._transport.is_closing()):
            self._transport.write(_CONTINUE)

    def _check_announced(self, version: str, raw: bytes | bytearray) -> None:
        problem = head_problem(version, self._headers)
        if speaks_another(raw, self._target):
            self._refuse(400, "this is no HTTP/1.1 request: it names another protocol")
        elif problem is not None:
            self._refuse(*problem)
        elif self._parser.should_upgrade():
            self._refuse(501, "this server speaks HTTP/1.1 only; let the client ask without an upgrade")
        announced = self._headers.get("content-length", "")
        if announced.isdecimal():
            self._check_body(int(announced[:20]))

    def on_chunk_header(self) -> None:
        """Begin a chunk."""
        self._chunk_here = 0

    def on_chunk_complete(self) -> None:
        """End it."""
        self._chunk_here = None

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._body_bytes += len(body)
        self._body_here += len(body)
        if self._chunk_here is not None:
            self._chunk_here += len(body)
        self._check_body(self._body_bytes)
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
        if self._refused:
            return
        request = Incoming(
            self._parser.get_method().decode("latin-1"),
            self._target.decode("latin-1"),
            self._headers,
            bytes(self._body),
        )
        self._body = self._target = b""
        # The last of chunks is an empty line itself: what comes next begins behind it.
        whole = b"" if "transfer-encoding" in self._headers else request.body
        self._last_body = whole[-self._body_here :] if self._body_here else b""
        parser = self._parser
        self._answers.give(
            request, keep_alive=parser.should_keep_alive(), whole=parser.get_http_version() == "1.0"
        )

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


_VERSIONS: Final = ("1.0", "1.1")
_HOST: Final = re.compile(
    r"(?:\[(?:[0-9A-Fa-f:.]+(?:%[\w.~%-]+)?|[vV][0-9A-Fa-f]+\.[\w.~!$&'()*+,;=:-]+)\]"
    r"|(?:[\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)"
    r"(?::[0-9]*)?",
    re.ASCII,
)
"""`uri-host [":" port]`: an address in brackets, or a name, which may be empty. Two hosts have `, ` between them."""


def head_problem(version: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
    """Return the status and the reason for a head that is not to be read on; None when there is none."""
    if version not in _VERSIONS:
        return 400, f"this is no HTTP/1.1 request: it says version {version}"
    host = headers.get("host")
    if host is None and version != "1.0":
        return 400, "this is no HTTP/1.1 request: it has no Host header"
    if host is not None and not _is_host(host):
        return 400, f"expected one host in the Host header, got {host[:80]!r}"
    encoding = headers.get("transfer-encoding", "chunked")
    if encoding.lower() != "chunked":
        return 501, f"of transfer encodings only chunked is read here, not {encoding[:80]!r}"
    return None


@lru_cache(maxsize=256)
def _is_host(host: str) -> bool:
    return _HOST.fullmatch(host) is not None


def speaks_another(raw: bytes | bytearray, target: bytes) -> bool:
    """Tell whether the request for `target` in `raw` names RTSP or ICE, which llhttp reads as if they were HTTP.

    What a body says about such a line is not meant: JSON has no line break in its strings.
    """
    if b"RTSP/" not in raw and b"ICE/" not in raw:
        return False
    return re.search(b" " + re.escape(target) + rb" (?:RTSP|ICE)/[0-9.]+\r\n", raw) is not None


_CODING: Final = re.compile(rb"\ntransfer-encoding:[ \t]*chunked[ \t]+", re.IGNORECASE)


def with_spaces(before: bytes | bytearray, raw: bytes) -> bytes:
    """Return `raw`, which comes behind `before`, with spaces for the tabs behind a transfer encoding `chunked`.

    Both may stand around a value (RFC 9110, 5.5); llhttp takes the spaces alone. What a body says about such a line is
    not meant here either.
    """
    spaced = _CODING.sub(lambda found: found[0].replace(b"\t", b" "), before + raw)
    return bytes(spaced[len(before) :])


_SIZE: Final = re.compile(rb"(?:^|\r\n)([0-9A-Fa-f]+)[ \t]*(?:;[^\r\n]*)?\r\n\Z")


def chunk_size(raw: bytes) -> int:
    """Return the bytes that a chunk has whose size is the last line of `raw`; 0 when that line is no size."""
    found = _SIZE.search(raw)
    return int(found[1], 16) if found else 0
