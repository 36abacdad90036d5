"""Answers on their way to one client: whole, in frames, live, or broken off."""

from __future__ import annotations

import asyncio
import socket
import struct
from functools import lru_cache
from typing import Final

from statek_sim.providers.http_provider import PHRASES
from statek_sim.server.exchange import Answer, Incoming, Later, Live, Silence, Streamed, Unread, Whole
from statek_sim.server.refusals import failed

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
