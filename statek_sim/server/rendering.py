"""From a scripted reply to an HTTP answer: which bytes, when, in which format, cut where the request demands it.

What no provider would answer to such a request (text where a tool call is required, two calls where one is allowed,
no JSON where JSON was demanded) is an error of the script: `raw(...)` sends it all the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple, assert_never

from statek_sim.errors import BadInput, UnmatchedRequest
from statek_sim.providers.delivery import Manner, computed_reply, usage_of, wire_reply
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
    Vector,
)
from statek_sim.providers.scripted import Entry
from statek_sim.providers.wire.encoding import compact
from statek_sim.providers.wire.format import WireFormat
from statek_sim.providers.wire.reply import NO_USAGE, ReportedUsage, WireReply, WireToolCall
from statek_sim.providers.wire.request import NO_DEMANDS, Demands
from statek_sim.server.embedding import EmbeddingRequest, embeddings_body, vector_of
from statek_sim.server.exchange import ESTIMATED, Answer, Frame, Later, Silence, Streamed, Whole
from statek_sim.server.fault import Fault, HttpError, NoAnswerAtAll, NoUsage, NullUsage, with_fault
from statek_sim.server.offered_calls import check_offered
from statek_sim.server.parsed_request import ParsedRequest, PreparedBodies
from statek_sim.usage.tokenizers import token_pieces
from statek_sim.values import JSON

_MOST_VECTORS: Final = 16
_MOST_EMBEDDED: Final = 65_536
"""Texts and characters whose vectors are made at once: some 30 ms of work. Those of more hold no other client up."""


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


class ServedRequest(NamedTuple):
    """One request of a play: its `number` from 1, its `name` in messages, what it asks, and what strikes it."""

    number: int
    name: str
    chat: ChatRequest
    read: ParsedRequest
    wire: WireFormat
    faults: tuple[Fault, ...] = ()


class Renderer:
    """Renders replies for one script: in the manner of `spoken`, at `pacing`."""

    def __init__(self, spoken: Manner, pacing: Pacing) -> None:
        self._spoken = spoken
        self._pacing = pacing
        self._prepared = PreparedBodies()

    def render(self, entries: Sequence[Entry], served: ServedRequest) -> Answer:
        """Return the answer that `entries` are to a request, with its faults.

        There is an entry per choice that is asked for; one that is no message answers alone. `ScriptError` for a reply
        that contradicts what the request demands.
        """
        entry = entries[0]
        reply = entry.reply
        for one in entries:
            check_offered(one, served.read.asked.tools)
        plain = not served.faults and not served.read.asked.stream and len(entries) == 1
        if plain and isinstance(reply.answer, Chat):
            body = self._body(entry, reply.answer, served)
            delay = self._pacing.real(reply.latency)
            return Whole(status=200, body=body, headers=_usage_headers(served.read, reply), delay=delay)
        return with_faults(self._answer(entries, served), served.faults, served.wire)

    def _body(self, entry: Entry, chat: Chat, served: ServedRequest) -> bytes:
        reply, request, params = entry.reply, served.chat, served.read.asked

        def write(reply_id: str) -> bytes:
            return served.wire.reply_body(self._message(entry, reply, chat, served, reply_id))

        if params.echo is not None:
            return write(str(served.number))
        key = (
            entry.key,
            entry.position,
            request.role,
            request.model,
            request.turn,
            int(request.at + reply.latency),
            served.wire.NAME,
            None if params.demands is NO_DEMANDS else params.demands,
            params.thinks,
            served.read.prompt_tokens() if reply.usage is UsageKind.MEASURED else None,
        )
        return self._prepared.body(key, write, str(served.number))

    def _message(
        self, entry: Entry, reply: Reply, chat: Chat, served: ServedRequest, reply_id: str
    ) -> WireReply:
        """Return what a reply says, in the form that the request demands."""
        request, read = served.chat, served.read
        manner = replace(self._spoken, measure=read.measured)
        answer = wire_reply(reply, chat, request, manner, reply_id=reply_id)
        params = read.asked
        formed = within_demands(answer, params.demands, model=request.model, name=f"reply {entry.position}")
        if formed is not answer and reply.usage is UsageKind.MEASURED:
            usage = usage_of(reply, request, formed.text, formed.calls, read.measured)
            formed = replace(formed, usage=usage)
        if params.echo is None and not params.thinks:
            return formed
        return replace(formed, echo=params.echo, thinks=params.thinks)

    def _answer(self, entries: Sequence[Entry], served: ServedRequest) -> Answer:
        given = [_resolved(entry.reply, served.chat) for entry in entries]
        reply = given[0]
        delay = self._pacing.real(max(reply.latency for reply in given))
        match reply.answer:
            case Chat():
                message = _reporting(self._choices(entries, given, served), served.faults)
                headers = _usage_headers(served.read, reply)
                if served.read.asked.stream:
                    return Streamed(frames=tuple(self._frames(message, served, delay)), headers=headers)
                body = served.wire.reply_body(message)
                return Whole(status=200, body=body, headers=headers, delay=delay)
            case HttpFault(status=status, retry_after=retry_after):
                return http_error(served.wire, status, retry_after, delay=delay)
            case RawBody(body=body):
                return Whole(status=200, body=body, delay=delay)
            case RawStream() as recorded:
                return self._recorded(recorded, served, delay)
            case NoAnswer():
                return Silence()
            case Vector():
                raise BadInput(f"reply {entries[0].position} is an embedding, and a reply is asked for")
            case Computed():
                raise BadInput("a callable answered with another callable, expected an answer")
            case other:
                assert_never(other)

    def _choices(self, entries: Sequence[Entry], given: Sequence[Reply], served: ServedRequest) -> WireReply:
        choices: list[WireReply] = []
        for entry, reply in zip(entries, given, strict=True):
            if not isinstance(reply.answer, Chat):
                raise BadInput(
                    f"reply {entry.position} is no message, and the request wants {len(entries)} choices"
                )
            choices.append(self._message(entry, reply, reply.answer, served, str(served.number)))
        return choices[0] if len(choices) == 1 else together(choices)

    def _frames(self, message: WireReply, served: ServedRequest, delay: float) -> Iterator[Frame]:
        params = served.read.asked
        split = partial(token_pieces, model=params.model)
        for event in served.wire.reply_stream(message, split, usage=params.stream_usage):
            yield Frame(delay, event)
            delay = self._pacing.real(self._pacing.token_seconds)

    def _recorded(self, recorded: RawStream, served: ServedRequest, delay: float) -> Answer:
        real = self._pacing.real
        if not served.read.asked.stream:
            body = served.wire.join_stream(recorded.body)
            return Whole(status=200, body=body, delay=delay + real(recorded.seconds))
        first, *rest = recorded.pieces or ((0.0, b""),)
        frames = (
            Frame(delay + real(first[0]), first[1]),
            *(Frame(real(seconds), piece) for seconds, piece in rest),
        )
        return Streamed(frames=frames)


def _resolved(reply: Reply, request: ChatRequest) -> Reply:
    """Return a reply with its callable served."""
    return computed_reply(reply, reply.answer, request) if isinstance(reply.answer, Computed) else reply


def _usage_headers(read: ParsedRequest, reply: Reply) -> tuple[tuple[str, str], ...]:
    return ESTIMATED if read.estimated and reply.usage is UsageKind.MEASURED else ()


def embeddings(
    entries: Sequence[Entry | None], wanted: EmbeddingRequest, served: ServedRequest
) -> Whole | Later:
    """Return the vectors that are asked for: what the script says of each text, or what is computed from it.

    Many are for later, unless a fault has to strike them.
    """
    read, faults, model = served.read, served.faults, served.chat.model
    scripted = [
        None if entry is None else _scripted_vector(entry, size)
        for entry, size in zip(entries, wanted.sizes, strict=True)
    ]
    null = any(isinstance(fault, NullUsage) for fault in faults)
    tokens = None if null else read.text_tokens(wanted.texts)
    reported = not any(isinstance(fault, NoUsage) for fault in faults)
    headers = ESTIMATED if read.estimated else ()

    def made() -> Whole:
        vectors = (
            vector_of(text, model, size) if vector is None else vector
            for vector, text, size in zip(scripted, wanted.texts, wanted.sizes, strict=True)
        )
        body = embeddings_body(wanted, vectors, model, tokens, usage=reported)
        return Whole(status=200, body=body, headers=headers)

    few = len(scripted) <= _MOST_VECTORS and sum(map(len, wanted.texts)) <= _MOST_EMBEDDED
    return made() if few or faults else Later(made)


def _scripted_vector(entry: Entry, size: int | None) -> tuple[float, ...]:
    answer = entry.reply.answer
    if not isinstance(answer, Vector):
        raise BadInput(f"reply {entry.position} is no embedding, and one is asked for")
    if size is not None and size != len(answer.values):
        raise BadInput(
            f"reply {entry.position} is an embedding of {len(answer.values)} numbers, the request wants {size}"
        )
    return answer.values


def token_count(read: ParsedRequest, wire: WireFormat) -> Whole:
    """Return how many tokens a request has, as the provider words it."""
    tokens = read.prompt_tokens()
    body: dict[str, JSON] = {"input_tokens": tokens}
    if wire.NAME == "gemini":
        body = {"totalTokens": tokens}
    elif wire.NAME == "responses":
        body = {"object": "response.input_tokens", "input_tokens": tokens}
    return Whole(status=200, body=compact(body).encode(), headers=ESTIMATED if read.estimated else ())


def replacement(faults: tuple[Fault, ...], wire: WireFormat) -> Answer | None:
    """Return the answer of a fault that takes the place of the script's, with the others in it."""
    for fault in faults:
        if isinstance(fault, HttpError):
            return with_faults(http_error(wire, fault.status, fault.retry_after), faults, wire)
        if isinstance(fault, NoAnswerAtAll):
            return Silence()
    return None


def with_faults(answer: Answer, faults: tuple[Fault, ...], wire: WireFormat) -> Answer:
    """Return `answer` with all the faults in it."""
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
    """Return an error as the provider of `wire` words it."""
    message_or_default = message or f"HTTP {status}, as the script says"
    # Seconds in this header are whole numbers (RFC 9110, 10.2.3); the SDKs read fractions too.
    headers = () if retry_after is None else (("retry-after", f"{retry_after:g}"),)
    body = wire.error_body(status, message_or_default, parameter=parameter, code=code)
    return Whole(status=status, body=body, headers=headers, delay=delay)


def _reporting(reply: WireReply, faults: tuple[Fault, ...]) -> WireReply:
    for fault in faults:
        if isinstance(fault, NullUsage):
            reply = replace(reply, usage=None)
        elif isinstance(fault, NoUsage):
            reply = replace(reply, usage=NO_USAGE)
    return reply


def within_demands(reply: WireReply, demands: Demands, *, model: str, name: str) -> WireReply:
    """Return what the demands leave of `reply`, which is called `name`; `UnmatchedRequest` when they contradict it."""
    if demands is NO_DEMANDS:
        return reply
    _check_calls(reply, demands, name)
    reply = _stopped(reply, demands.stop)
    reply = _limited(reply, demands.max_tokens, model)
    if demands.json_object and reply.reason == "stop" and reply.stop_sequence is None:
        _check_json(reply.text or "", name)
    return reply


def _check_calls(reply: WireReply, demands: Demands, name: str) -> None:
    called = [call.name for call in reply.calls]
    if demands.calls == "must" and not called:
        raise _contradiction(name, "calls no tool", "the request demands a call (tool_choice)")
    if demands.calls == "must not" and called:
        raise _contradiction(name, f"calls {called[0]!r}", "the request forbids calls (tool_choice)")
    if demands.one_call and len(called) > 1:
        raise _contradiction(name, f"calls {len(called)} tools", "the request allows one call at a time")
    for called_name in called if demands.call_names else ():
        if called_name not in demands.call_names:
            allowed = ", ".join(demands.call_names)
            raise _contradiction(
                name, f"calls {called_name!r}", f"the request allows {allowed} (tool_choice)"
            )


def _check_json(text: str, name: str) -> None:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise _contradiction(name, "is no JSON object", "the request demands one")


def _contradiction(name: str, text: str, demanded: str) -> UnmatchedRequest:
    return UnmatchedRequest(
        f"{name} {text}, but {demanded}; no provider answers so: change the reply, or send it with raw(...)"
    )


def _stopped(reply: WireReply, stops: Sequence[str]) -> WireReply:
    """End the text before the first of the texts that end it; calls would have come after."""
    text = reply.text or ""
    found = [(at, stop) for stop in stops if (at := text.find(stop)) >= 0]
    if not found:
        return reply
    at, stop = min(found)
    return replace(reply, text=text[:at], calls=(), stop="stop", stop_sequence=stop)


def _limited(reply: WireReply, limit: int | None, model: str) -> WireReply:
    """End the reply after so many tokens: of its text, then of names and arguments of its calls."""
    if limit is None or _at_most(reply) <= limit:
        return reply
    left = limit
    text = reply.text
    if text:
        pieces = token_pieces(text, model)
        if len(pieces) > left:
            return replace(reply, text="".join(pieces[:left]), calls=(), stop="length")
        left -= len(pieces)
    calls: list[WireToolCall] = []
    for call in reply.calls:
        left -= len(token_pieces(call.name, model))
        pieces = token_pieces(call.arguments, model)
        if len(pieces) > left:
            calls += [replace(call, arguments="".join(pieces[:left]))] if left > 0 else []
            return replace(reply, calls=tuple(calls), stop="length")
        calls.append(call)
        left -= len(pieces)
    return reply


def _at_most(reply: WireReply) -> int:
    """Return a number of tokens that the reply cannot have more of: each is at least a byte."""
    texts = (reply.text or "", *(part for call in reply.calls for part in (call.name, call.arguments)))
    return sum(len(text) if text.isascii() else 4 * len(text) for text in texts)


def together(replies: Sequence[WireReply]) -> WireReply:
    """Return one answer with several choices; its usage has one prompt, and the completions of all."""
    first, *others = replies
    usage = first.usage
    if usage is not None and usage.present:
        counts = [
            reply.usage.completion if isinstance(reply.usage, ReportedUsage) else 0 for reply in replies
        ]
        if usage.completion is not None:
            usage = replace(usage, completion=sum(count or 0 for count in counts))
    return replace(first, usage=usage, others=tuple(others))
