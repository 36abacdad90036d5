"""Write answers to one client, in the order of its requests: whole, in frames, live, or broken off."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from statek_sim.providers.http_provider import PHRASES
from statek_sim.server.exchange import Answer, Incoming, Later, Limits, Live, Silence, Streamed, Unread, Whole
from statek_sim.server.routes import failed

_LAST_CHUNK: Final = b"0\r\n\r\n"
_ABORTIVE: Final = struct.pack("ii", 1, 0)
"""SO_LINGER on, 0 seconds: closing sends RST instead of FIN."""


class Answering:
    """Writes answers to one connection.

    `drained` is set while the client reads slower than it is written to; `finishing` once it says no more, though it
    may still read; `endless` while it is given what ends only with its leaving, of which that is then the sign.
    """

    __slots__ = ("drained", "endless", "finishing", "loop", "transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self.transport = transport
        self.loop = loop
        self.drained: asyncio.Future[None] | None = None
        self.finishing = False
        self.endless = False

    def whole(self, request: Incoming, answer: Whole, *, keep_alive: bool) -> None:
        """Write an answer at once; to a client that is gone, nothing: asyncio would say so on the terminal."""
        if self.transport.is_closing():
            return
        head = head_of(answer.status, answer.content_type, answer.headers, keep_alive)
        body = b"" if request.method == "HEAD" else answer.body
        self.transport.write(b"%scontent-length: %d\r\n\r\n%s" % (head, len(answer.body), body))
        if not keep_alive:
            self.transport.close()

    async def send(
        self, request: Incoming, answer: Answer | Later | Live | Unread, *, keep_alive: bool, whole: bool
    ) -> None:
        """Write an answer that takes its time; `whole`: not in pieces."""
        if isinstance(answer, Unread):
            answer = await self.loop.run_in_executor(None, _read, answer, request.target)
        if isinstance(answer, Later):
            answer = await self.loop.run_in_executor(None, _made, answer, request.target)
        if whole and isinstance(answer, Streamed):
            answer = in_one_piece(answer)
        if isinstance(answer, Silence | Live):
            await self._until_it_leaves(answer, keep_alive=keep_alive)
        elif isinstance(answer, Whole):
            await asyncio.sleep(answer.delay)
            self.whole(request, answer, keep_alive=keep_alive)
        else:
            await self._frames(answer, keep_alive=keep_alive)

    async def _until_it_leaves(self, answer: Silence | Live, *, keep_alive: bool) -> None:
        """Give what may last as long as the client stays; whoever says no more is taken to have left."""
        if self.finishing:
            self.transport.close()
            return
        self.endless = True
        try:
            if isinstance(answer, Silence):
                await self.loop.create_future()
            else:
                await self._live(answer, keep_alive=keep_alive)
        finally:
            self.endless = False

    async def _live(self, answer: Live, *, keep_alive: bool) -> None:
        head = head_of(answer.status, answer.content_type, answer.headers, keep_alive)
        self._write(head + b"transfer-encoding: chunked\r\n\r\n")
        try:
            async for data in answer.frames:
                if not self._write(b"%x\r\n%s\r\n" % (len(data), data)):
                    return
                if self.drained is not None:
                    await self.drained
        finally:
            await answer.frames.aclose()
        self._write(_LAST_CHUNK)
        if not keep_alive:
            self.transport.close()

    async def _frames(self, answer: Streamed, *, keep_alive: bool) -> None:
        head: bytes | None = (
            head_of(answer.status, answer.content_type, answer.headers, keep_alive)
            + b"transfer-encoding: chunked\r\n\r\n"
        )
        for delay, data in answer.frames:
            if delay:
                await asyncio.sleep(delay)
            chunk = b"%x\r\n%s\r\n" % (len(data), data)
            if not self._write(chunk if head is None else head + chunk):
                return
            head = None
            if self.drained is not None:
                await self.drained
        if answer.reset:
            await self._break()
            return
        self._write(_LAST_CHUNK if head is None else head + _LAST_CHUNK)
        if not keep_alive:
            self.transport.close()

    def _write(self, data: bytes) -> bool:
        """Write to a client that is still there; return whether it is."""
        if self.transport.is_closing():
            return False
        self.transport.write(data)
        return True

    async def _break(self) -> None:
        """Reset the connection once the client's side of the kernel has what was written."""
        # A reset discards what the client has not read yet: give it a moment to see the frames before.
        await asyncio.sleep(0.01)
        if self.transport.is_closing():
            return
        connection: socket.socket = self.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORTIVE)
        self.transport.abort()


def in_one_piece(answer: Streamed) -> Answer:
    """Return an answer for a client that knows no chunks; one that is to break has to break all the same."""
    if answer.reset:
        return answer
    return Whole(
        status=answer.status,
        body=b"".join(frame.data for frame in answer.frames),
        content_type=answer.content_type,
        headers=answer.headers,
        delay=sum(frame.delay for frame in answer.frames),
    )


def _read(request: Unread, target: str) -> Answer | Later:
    try:
        return request.answer()
    except Exception as error:  # noqa: BLE001  # the client would wait for ever
        return failed(error, target)


def _made(answer: Later, target: str) -> Whole:
    try:
        return answer.make()
    except Exception as error:  # noqa: BLE001  # the client would wait for ever
        return failed(error, target)


@lru_cache(maxsize=1024)
def head_of(status: int, content_type: str, headers: tuple[tuple[str, str], ...], keep_alive: bool) -> bytes:
    """Return the status line and the headers, but for the length."""
    phrase = "OK" if status == 200 else PHRASES.get(status, "")
    lines = [f"HTTP/1.1 {status} {phrase}", f"content-type: {content_type}"]
    lines += [f"{name}: {value}" for name, value in headers]
    if not keep_alive:
        lines.append("connection: close")
    return ("\r\n".join(lines) + "\r\n").encode("latin-1")


Handler = Callable[[Incoming], Answer | Later | Live | Unread]

_MOST_PENDING: Final = 64
"""Requests of one client that may wait for an answer that takes its time; it is not read from while so many do."""

_MOST_UNREAD: Final = 64 * 1024 * 1024
"""Bytes of answers that a client may leave unread: many send all that they pipeline before they read."""


class AnswerQueue:
    """Gives answers one after another; `transport` is not read from while too much waits or is unread."""

    __slots__ = (
        "_answering",
        "_handler",
        "_limits",
        "_loop",
        "_out",
        "_pending",
        "_pending_bytes",
        "_transport",
    )

    def __init__(
        self,
        handler: Handler,
        limits: Limits,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._handler = handler
        self._limits = limits
        self._transport = transport
        self._loop = loop
        self._out = Answering(transport, loop)
        self._pending: deque[tuple[Incoming, bool, bool]] = deque()
        self._pending_bytes = 0
        self._answering: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether an answer is being given that takes its time."""
        return self._answering is not None

    def give(self, request: Incoming, *, keep_alive: bool, whole: bool) -> None:
        """Answer, or queue behind the answer that is being given; `whole`: not in pieces."""
        if self._answering is not None:
            self._queue(request, keep_alive=keep_alive, whole=whole)
            return
        answer = self._answer(request)
        if whole and type(answer) is Streamed:
            answer = in_one_piece(answer)
        if type(answer) is Whole and not answer.delay:
            self._out.whole(request, answer, keep_alive=keep_alive)
        else:
            self._answering = self._loop.create_task(
                self._take_time(request, answer, keep_alive=keep_alive, whole=whole)
            )

    def finish(self) -> bool:
        """Give what was asked for, then close: the client says no more. Return whether there is something to give."""
        self._out.finishing = True
        return self.busy and not self._out.endless

    def give_up(self) -> None:
        """Stop answering a client that is gone."""
        self._pending.clear()
        if self._answering is not None:
            self._answering.cancel()

    def pause(self) -> None:
        """Wait for a client that reads slower than it is written to."""
        self._out.drained = self._loop.create_future()

    def resume(self) -> None:
        """Go on."""
        if self._out.drained is not None and not self._out.drained.done():
            self._out.drained.set_result(None)
        self._out.drained = None
        self._read_on()

    def look_at_unread(self) -> None:
        """Read no more from a client that leaves too much unread."""
        if self._out.drained is not None and self._transport.get_write_buffer_size() > _MOST_UNREAD:
            self._transport.pause_reading()

    def _answer(self, request: Incoming) -> Answer | Later | Live | Unread:
        try:
            return self._handler(request)
        except Exception as error:  # noqa: BLE001  # the parser would take it for a malformed request
            return failed(error, request.target)

    def _queue(self, request: Incoming, *, keep_alive: bool, whole: bool) -> None:
        self._pending.append((request, keep_alive, whole))
        self._pending_bytes += len(request.body)
        if len(self._pending) >= _MOST_PENDING or self._pending_bytes > self._limits.body:
            self._transport.pause_reading()

    def _read_on(self) -> None:
        """Read from the client again, if little of what it sent waits and little of what it gets is unread."""
        if len(self._pending) <= _MOST_PENDING // 2 and self._pending_bytes <= self._limits.body // 2:
            unread = 0 if self._out.drained is None else self._transport.get_write_buffer_size()
            if unread <= _MOST_UNREAD:
                self._transport.resume_reading()

    async def _take_time(
        self, request: Incoming, answer: Answer | Later | Live | Unread, *, keep_alive: bool, whole: bool
    ) -> None:
        """Give an answer that takes its time, then those that queued behind it.

        One that breaks off in the middle breaks the connection: its client would wait for the rest for ever.
        """
        try:
            await self._give_all(request, answer, keep_alive=keep_alive, whole=whole)
        except Exception:
            self._pending.clear()
            self._transport.abort()
            raise
        finally:
            self._answering = None

    async def _give_all(
        self, request: Incoming, answer: Answer | Later | Live | Unread, *, keep_alive: bool, whole: bool
    ) -> None:
        await self._out.send(request, answer, keep_alive=keep_alive, whole=whole)
        while self._pending and not self._transport.is_closing():
            request, keep_alive, whole = self._pending.popleft()
            self._pending_bytes -= len(request.body)
            self._read_on()
            answer = self._answer(request)
            await self._out.send(request, answer, keep_alive=keep_alive, whole=whole)
        if self._out.finishing:
            self._transport.close()
