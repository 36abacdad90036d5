"""The answers of one connection, in turn: a request that comes while another is answered waits for its own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from statek_sim.server.answering import Answering, in_one_piece
from statek_sim.server.exchange import Answer, Incoming, Later, Limits, Live, Streamed, Unread, Whole
from statek_sim.server.refusals import failed

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
