"""From a scripted reply to an HTTP answer: which bytes, when, in which format."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

from statek_sim.errors import BadInput
from statek_sim.metering.pieces import token_pieces
from statek_sim.providers.delivery import Manner, computed_reply, wire_reply
from statek_sim.providers.lane import Entry
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import (
    Chat,
    Computed,
    HttpFault,
    NoAnswer,
    RawBody,
    RawStream,
    Reply,
    UsageKind,
)
from statek_sim.providers.wire.format import WireFormat
from statek_sim.providers.wire.reply import NO_USAGE, WireReply
from statek_sim.providers.wire.request import WireRequest
from statek_sim.server.damage import damaged
from statek_sim.server.exchange import Answer, Frame, Silence, Streamed, Whole
from statek_sim.server.fault import Fault, NoUsage, NullUsage
from statek_sim.server.known import PreparedBodies, ReadRequest


@dataclass(frozen=True, slots=True)
class Pacing:
    """How much real time virtual seconds take: none when `speed` is None, else that many pass per real second.

    `token_seconds`: virtual seconds from one event of a stream to the next, where no recording says them.
    """

    speed: float | None = None
    token_seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.speed is not None and not self.speed > 0:
            raise BadInput(f"a pace is more than 0 virtual seconds per second, not {self.speed!r}")
        if not (math.isfinite(self.token_seconds) and self.token_seconds >= 0):
            raise BadInput(f"a token takes a finite number of seconds, 0 or more, not {self.token_seconds!r}")

    def real(self, seconds: float) -> float:
        """Return the real seconds that `seconds` of virtual time take."""
        return 0.0 if self.speed is None else seconds / self.speed


class Renderer:
    """Renders replies for one script: in the manner of `spoken`, at `pacing`."""

    def __init__(self, spoken: Manner, pacing: Pacing) -> None:
        self._spoken = spoken
        self._pacing = pacing
        self._prepared = PreparedBodies()

    def render(
        self,
        entry: Entry,
        request: ChatRequest,
        read: ReadRequest,
        wire: WireFormat,
        number: int,
        faults: tuple[Fault, ...] = (),
    ) -> Answer:
        """Return the answer that `entry` is to the request with this number, with `faults` in it."""
        reply = entry.reply
        answer: Answer
        if isinstance(reply.answer, Chat) and not faults and not read.asked.stream:
            body = self._body(entry, reply.answer, request, read, wire, number)
            return Whole(status=200, body=body, delay=self._pacing.real(reply.latency))
        answer = self._answer(reply, request, read, wire, number, faults)
        for fault in faults:
            answer = damaged(answer, fault, wire.NAME)
        return answer

    def _body(
        self,
        entry: Entry,
        chat: Chat,
        request: ChatRequest,
        read: ReadRequest,
        wire: WireFormat,
        number: int,
    ) -> bytes:
        reply = entry.reply
        key = (
            entry.key,
            entry.position,
            request.role,
            request.model,
            request.turn,
            int(request.at + reply.latency),
            wire.NAME,
            read.prompt_tokens() if reply.usage is UsageKind.MEASURED else None,
        )

        def write(reply_id: str) -> bytes:
            manner = replace(self._spoken, measure=read.measured)
            return wire.reply_body(wire_reply(reply, chat, request, manner, reply_id=reply_id))

        return self._prepared.body(key, write, str(number))

    def _answer(
        self,
        reply: Reply,
        request: ChatRequest,
        read: ReadRequest,
        wire: WireFormat,
        number: int,
        faults: tuple[Fault, ...],
    ) -> Answer:
        delay = self._pacing.real(reply.latency)
        match reply.answer:
            case Computed() as computed:
                given = computed_reply(reply, computed, request)
                return self._answer(given, request, read, wire, number, faults)
            case Chat() as chat:
                manner = replace(self._spoken, measure=read.measured)
                said = wire_reply(reply, chat, request, manner, reply_id=str(number))
                gap = self._pacing.real(self._pacing.token_seconds)
                return _spoken(_reporting(said, faults), read.asked, wire, delay, gap)
            case HttpFault(status=status, retry_after=retry_after):
                return http_error(wire, status, retry_after, delay=delay)
            case RawBody(body=body):
                return Whole(status=200, body=body, delay=delay)
            case RawStream() as recorded:
                return self._recorded(recorded, read.asked, wire, delay)
            case NoAnswer():
                return Silence()
            case other:
                assert_never(other)

    def _recorded(self, recorded: RawStream, asked: WireRequest, wire: WireFormat, delay: float) -> Answer:
        real = self._pacing.real
        if not asked.stream:
            body = wire.join_stream(recorded.body)
            return Whole(status=200, body=body, delay=delay + real(recorded.seconds))
        first, *rest = recorded.pieces or ((0.0, b""),)
        frames = (
            Frame(delay + real(first[0]), first[1]),
            *(Frame(real(seconds), piece) for seconds, piece in rest),
        )
        return Streamed(frames=frames)


def http_error(
    wire: WireFormat, status: int, retry_after: float | None = None, *, message: str = "", delay: float = 0.0
) -> Whole:
    """Return an error as the provider of `wire` words it."""
    said = message or f"HTTP {status}, as the script says"
    # Seconds in this header are whole numbers (RFC 9110, 10.2.3); the SDKs read fractions too.
    headers = () if retry_after is None else (("retry-after", f"{retry_after:g}"),)
    return Whole(status=status, body=wire.error_body(status, said), headers=headers, delay=delay)


def _reporting(said: WireReply, faults: tuple[Fault, ...]) -> WireReply:
    for fault in faults:
        if isinstance(fault, NullUsage):
            said = replace(said, usage=None)
        elif isinstance(fault, NoUsage):
            said = replace(said, usage=NO_USAGE)
    return said


def _spoken(said: WireReply, asked: WireRequest, wire: WireFormat, delay: float, gap: float) -> Answer:
    if not asked.stream:
        return Whole(status=200, body=wire.reply_body(said), delay=delay)
    return Streamed(frames=tuple(_frames(said, asked, wire, delay, gap)))


def _frames(
    said: WireReply, asked: WireRequest, wire: WireFormat, delay: float, gap: float
) -> Iterator[Frame]:
    split = partial(token_pieces, model=asked.model)
    for event in wire.reply_stream(said, split, usage=asked.stream_usage):
        yield Frame(delay, event)
        delay = gap
