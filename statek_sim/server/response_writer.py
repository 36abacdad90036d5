"""Write answers to one client, in the order of its requests: whole, in frames, live, or broken off."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import lru_cache
from typing import Final

from statek_sim.providers.http_provider import PHRASES
from statek_sim.server.exchange import Answer, Incoming, Later, Live, Streamed, Whole, worked_out
from statek_sim.server.routes import failed

_LAST_CHUNK: Final = b"0\r\n\r\n"
_ABORTIVE: Final = struct.pack("ii", 1, 0)
"""SO_LINGER on, 0 seconds: closing sends RST instead of FIN."""

_MOST_PENDING: Final = 64
"""Requests of one client that may wait for an answer that takes its time; it is not read from while so many do."""

_MOST_UNREAD: Final = 64 * 1024 * 1024
"""Bytes of answers that a client may leave unread: many send all that they pipeline before they read."""

Handler = Callable[[Incoming], Answer | Later | Live]


class AnswerQueue:
    """Answers one client's requests one after another; it is not read from while too much waits or is unread.

    `finishing`: the client says no more, though it may still read. `endless`: what it is given ends only with its
    leaving, of which its last word is then the sign.
    """

    __slots__ = ("_drained", "_endless", "_finishing", "_handler", "_loop", "_pending", "_task", "_transport")

    def __init__(
        self, handler: Handler, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._handler = handler
        self._transport = transport
        self._loop = loop
        self._pending: deque[Incoming] = deque()
        self._task: asyncio.Task[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._finishing = False
        self._endless = False
        transport.set_write_buffer_limits(high=_MOST_UNREAD)

    @property
    def busy(self) -> bool:
        """Whether an answer is being given that takes its time."""
        return self._task is not None

    def give(self, request: Incoming) -> None:
        """Answer at once, in a task, or behind the answer that is being given."""
        if self._task is not None:
            self._pending.append(request)
            if len(self._pending) >= _MOST_PENDING:
                self._transport.pause_reading()
            return
        answer = self._answer(request)
        if type(answer) is Whole and not answer.delay:
            self._write_whole(request, answer)
        else:
            self._task = self._loop.create_task(self._take_time(request, answer))

    def finish(self) -> bool:
        """Give what was asked for, then close: the client says no more. Return whether there is something to give."""
        self._finishing = True
        return self.busy and not self._endless

    def give_up(self) -> None:
        """Stop answering a client that is gone."""
        self._pending.clear()
        if self._task is not None:
            self._task.cancel()

    def pause(self) -> None:
        """Wait for a client that leaves too much unread."""
        self._drained = self._loop.create_future()
        self._transport.pause_reading()

    def resume(self) -> None:
        """Go on."""
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._drained = None
        self._read_on()

    def _read_on(self) -> None:
        if self._drained is None and len(self._pending) <= _MOST_PENDING // 2:
            self._transport.resume_reading()

    def _answer(self, request: Incoming) -> Answer | Later | Live:
        try:
            return self._handler(request)
        except Exception as error:  # noqa: BLE001  # the parser would take it for a malformed request
            return failed(error, request.target)

    async def _take_time(self, request: Incoming, answer: Answer | Later | Live) -> None:
        """Give an answer that takes its time, then those that queued behind it.

        One that breaks off in the middle breaks the connection: its client would wait for the rest for ever.
        """
        try:
            await self._send(request, answer)
            while self._pending and not self._transport.is_closing():
                request = self._pending.popleft()
                self._read_on()
                await self._send(request, self._answer(request))
            if self._finishing:
                self._transport.close()
        except Exception:
            self._pending.clear()
            self._transport.abort()
            raise
        finally:
            self._task = None

    async def _send(self, request: Incoming, answer: Answer | Later | Live) -> None:
        if isinstance(answer, Later):
            answer = await self._loop.run_in_executor(None, _made, answer, request.target)
        if isinstance(answer, Streamed) and request.version == "1.0":
            answer = in_one_piece(answer)
        if isinstance(answer, Whole):
            await asyncio.sleep(answer.delay)
            self._write_whole(request, answer)
        elif isinstance(answer, Streamed):
            await self._stream(request, answer, _timed(answer))
        elif self._finishing:
            self._transport.close()
        else:
            self._endless = True
            try:
                if isinstance(answer, Live):
                    await self._stream(request, answer, answer.frames)
                else:
                    await self._loop.create_future()
            finally:
                self._endless = False

    def _write_whole(self, request: Incoming, answer: Whole) -> None:
        """Write an answer at once; to a client that is gone, nothing: asyncio would say so on the terminal."""
        if self._transport.is_closing():
            return
        head = head_of(answer.status, answer.content_type, answer.headers, request.keep_alive)
        body = b"" if request.method == "HEAD" else answer.body
        self._transport.write(b"%scontent-length: %d\r\n\r\n%s" % (head, len(answer.body), body))
        if not request.keep_alive:
            self._transport.close()

    async def _stream(
        self, request: Incoming, answer: Streamed | Live, frames: AsyncGenerator[bytes, None]
    ) -> None:
        """Write frames as chunks; the head of a live answer goes before its first frame, others' goes with it."""
        transport = self._transport
        head = head_of(answer.status, answer.content_type, answer.headers, request.keep_alive)
        head += b"transfer-encoding: chunked\r\n\r\n"
        if isinstance(answer, Live):
            transport.write(head)
            head = b""
        async with aclosing(frames):
            async for data in frames:
                if transport.is_closing():
                    return
                transport.write(b"%s%x\r\n%s\r\n" % (head, len(data), data))
                head = b""
                if self._drained is not None:
                    await self._drained
        if isinstance(answer, Streamed) and answer.reset:
            await self._break()
        elif not transport.is_closing():
            transport.write(head + _LAST_CHUNK)
            if not request.keep_alive:
                transport.close()

    async def _break(self) -> None:
        """Reset the connection once the client's side of the kernel has what was written."""
        # A reset discards what the client has not read yet: give it a moment to see the frames before.
        await asyncio.sleep(0.01)
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


def _made(answer: Later, target: str) -> Answer:
    try:
        return worked_out(answer)
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
