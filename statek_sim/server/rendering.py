"""Converts scripted replies to HTTP responses, including the format, bytes and timing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, assert_never

from statek_sim.errors import BadInput, UnmatchedRequest
from statek_sim.providers.delivery import Manner, computed_reply, usage_of, wire_reply
from statek_sim.providers.mismatch import Entry
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import (
    Chat,
    Computed,
    HttpError,
    NoAnswer,
    RawBody,
    RawStream,
    Reply,
    UsageKind,
    Vector,
)
from statek_sim.providers.wire.format import WireFormat
from statek_sim.providers.wire.reply import NO_USAGE, WireReply, compact
from statek_sim.server.demands import UNKNOWN_TOOLS_HEADER, check_offered, within_demands
from statek_sim.server.embedding import EmbeddingRequest, embeddings_body, vector_of
from statek_sim.server.exchange import ESTIMATED, Answer, Frame, Silence, Streamed, Whole
from statek_sim.server.fault import Fault, NoAnswerAtAll, NoUsage, NullUsage, with_fault
from statek_sim.server.parsed_request import ParsedRequest
from statek_sim.usage.tokenizers import token_pieces
from statek_sim.values import JSON


@dataclass(frozen=True, slots=True)
class Pacing:
    """Converts virtual to real time. `speed` is the virtual seconds per real second; if None, waits take no real time.

    `token_seconds` is the number of virtual seconds between the events in a stream that was not recorded.
    """

    speed: float | None = None
    token_seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.speed is not None and not self.speed > 0:
            raise BadInput(
                f"expected a speed above 0, in virtual seconds per real second, got {self.speed!r}"
            )
        if not (math.isfinite(self.token_seconds) and self.token_seconds >= 0):
            raise BadInput(
                f"expected a finite number of seconds per token, 0 or more, got {self.token_seconds!r}"
            )

    def real(self, seconds: float) -> float:
        """Return the number of real seconds for `seconds` of virtual time."""
        return 0.0 if self.speed is None else seconds / self.speed


class ServedRequest(NamedTuple):
    """A request: its one-based `number`, its `name` in messages, its content, format and faults."""

    number: int
    name: str
    chat: ChatRequest
    read: ParsedRequest
    wire: WireFormat
    faults: tuple[Fault, ...] = ()


def render(entry: Entry, served: ServedRequest, manner: Manner, pacing: Pacing) -> Answer:
    """Return the HTTP response from a script entry to a request, with the request's faults applied.

    Raises `ScriptError` if the reply violates the request's requirements.
    """
    if UNKNOWN_TOOLS_HEADER not in served.chat.headers:
        check_offered(entry, served.read.request.tools)
    return with_faults(_answer(entry, served, manner, pacing), served.faults, served.wire)


def _answer(entry: Entry, served: ServedRequest, manner: Manner, pacing: Pacing) -> Answer:
    reply = entry.reply
    if isinstance(reply.answer, Computed):
        reply = computed_reply(reply, reply.answer, served.chat)
    delay = pacing.real(reply.latency)
    match reply.answer:
        case Chat() as chat:
            message = _message(entry.position, reply, chat, served, manner)
            headers = ESTIMATED if served.read.estimated and reply.usage is UsageKind.MEASURED else ()
            if served.read.request.stream:
                frames = tuple(_frames(message, served, delay, pacing))
                return Streamed(frames=frames, headers=headers, message=message)
            body = served.wire.reply_body(message)
            return Whole(status=200, body=body, headers=headers, delay=delay, message=message)
        case HttpError(status=status, retry_after=retry_after):
            return http_error(served.wire, status, retry_after, delay=delay)
        case RawBody(body=body):
            if served.read.request.stream:
                raise UnmatchedRequest(
                    f"reply {entry.position} is raw(...), but the request asks for a stream; use raw_stream([(seconds, "
                    "bytes), ...])"
                )
            return Whole(status=200, body=body, delay=delay)
        case RawStream() as recorded:
            return _recorded(recorded, served, delay, pacing)
        case NoAnswer():
            return Silence()
        case Vector():
            raise BadInput(f"reply {entry.position} is an embedding, but the request is not for embeddings")
        case Computed():
            raise BadInput("a callable returned another callable; expected a reply")
        case other:
            assert_never(other)


def _message(position: int, reply: Reply, chat: Chat, served: ServedRequest, manner: Manner) -> WireReply:
    """Apply the request's limits and options to the reply, and replace its usage if a fault requires this."""
    request, read, params = served.chat, served.read, served.read.request
    if chat.thinking and params.shows_thinking is not True:
        raise UnmatchedRequest(
            f"reply {position} contains thinking, but the request does not ask for it "
            f"({params.shows_thinking}), so no provider would send it; request thinking, or remove thinking(...)"
        )
    manner = replace(manner, measure=read.measured)
    answer = wire_reply(reply, chat, request, manner, reply_id=str(served.number))
    formed = within_demands(answer, params.demands, model=request.model, name=f"reply {position}")
    if formed is not answer and reply.usage is UsageKind.MEASURED:
        usage = usage_of(reply, request, formed.text, formed.calls, read.measured)
        formed = replace(formed, usage=usage)
    for fault in served.faults:
        if isinstance(fault, NullUsage | NoUsage):
            formed = replace(formed, usage=None if isinstance(fault, NullUsage) else NO_USAGE)
    return replace(formed, echo=params.echo, thinks=params.thinks)


def _frames(message: WireReply, served: ServedRequest, delay: float, pacing: Pacing) -> Iterator[Frame]:
    params = served.read.request
    split = partial(token_pieces, model=params.model)
    for event in served.wire.reply_stream(message, split, usage=params.stream_usage):
        yield Frame(delay, event)
        delay = pacing.real(pacing.token_seconds)


def _recorded(recorded: RawStream, served: ServedRequest, delay: float, pacing: Pacing) -> Answer:
    if not served.read.request.stream:
        body = served.wire.join_stream(recorded.body)
        return Whole(status=200, body=body, delay=delay + pacing.real(recorded.seconds))
    frames = [Frame(pacing.real(seconds), piece) for seconds, piece in recorded.pieces or ((0.0, b""),)]
    frames[0] = Frame(delay + frames[0].delay, frames[0].data)
    return Streamed(frames=tuple(frames))


def embeddings(entries: Sequence[Entry | None], wanted: EmbeddingRequest, served: ServedRequest) -> Answer:
    """Return the response to an embedding request: a scripted or computed vector for each input string."""
    read, faults, model = served.read, served.faults, served.chat.model
    vectors = [
        vector_of(text, model, size) if entry is None else _scripted_vector(entry, size)
        for entry, text, size in zip(entries, wanted.texts, wanted.sizes, strict=True)
    ]
    tokens = read.text_tokens(wanted.texts)
    usage: dict[str, JSON] = {"usage": {"prompt_tokens": tokens, "total_tokens": tokens}}
    for fault in faults:
        if isinstance(fault, NullUsage | NoUsage):
            usage = {"usage": None} if isinstance(fault, NullUsage) else {}
    body = embeddings_body(served.wire.NAME, wanted, vectors, model, usage)
    answer = Whole(status=200, body=body, headers=ESTIMATED if read.estimated else ())
    return with_faults(answer, faults, served.wire)


def _scripted_vector(entry: Entry, size: int | None) -> tuple[float, ...]:
    answer = entry.reply.answer
    if not isinstance(answer, Vector):
        raise BadInput(f"reply {entry.position} is not an embedding, but the request asks for one")
    if size is not None and size != len(answer.values):
        raise BadInput(
            f"reply {entry.position} has {len(answer.values)} dimensions, but the request asks for {size}"
        )
    return answer.values


def token_count(read: ParsedRequest, wire: WireFormat) -> Whole:
    """Return the response to a token count request, in the provider's format."""
    tokens = read.prompt_tokens()
    body: dict[str, JSON] = {"input_tokens": tokens}
    if wire.NAME == "gemini":
        body = {"totalTokens": tokens}
    elif wire.NAME == "responses":
        body = {"object": "response.input_tokens", "input_tokens": tokens}
    return Whole(status=200, body=compact(body).encode(), headers=ESTIMATED if read.estimated else ())


def replacement(faults: tuple[Fault, ...], wire: WireFormat) -> Answer | None:
    """Return the response for a fault that replaces the reply, with other faults applied, or None."""
    for fault in faults:
        if isinstance(fault, HttpError):
            return with_faults(http_error(wire, fault.status, fault.retry_after), faults, wire)
        if isinstance(fault, NoAnswerAtAll):
            return Silence()
    return None


def with_faults(answer: Answer, faults: tuple[Fault, ...], wire: WireFormat) -> Answer:
    """Return `answer` with all faults applied in order."""
    for fault in faults:
        answer = with_fault(answer, fault, wire.NAME)
    return answer


def http_error(
    wire: WireFormat,
    status: int,
    retry_after: float | None = None,
    *,
    message: str = "",
    parameter: str | None = None,
    code: str | None = None,
    delay: float = 0.0,
) -> Whole:
    """Return an HTTP error in the format of `wire`; `retry_after` and `delay` are in seconds."""
    message_or_default = message or f"HTTP {status}, as scripted"
    # Seconds in this header are integers (RFC 9110, 10.2.3); the SDKs read fractions too.
    headers = () if retry_after is None else (("retry-after", f"{retry_after:g}"),)
    body = wire.error_body(status, message_or_default, parameter=parameter, code=code)
    return Whole(status=status, body=body, headers=headers, delay=delay)
