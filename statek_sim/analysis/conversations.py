"""Recorded traffic as conversations: which requests belong together, and what each call added to what is counted.

A cassette is a list of requests. A request goes on with a conversation when it begins with all messages of that
conversation's last request; otherwise it begins a new one. Nothing else tells jobs apart in a recording, so a job that
rewrites its history counts as two. A call that failed counts nothing, as in STATEK; the same request again is its
retry.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path
from typing import Final

from statek_sim.cassettes.bodies import NotJson, canonical, parsed
from statek_sim.cassettes.document import read_decoded
from statek_sim.cassettes.exchange import Exchange
from statek_sim.cassettes.store import cassette_files
from statek_sim.errors import BadInput, BadRequest, InvalidFormat
from statek_sim.harness.usage_basis import UsageBasis
from statek_sim.providers.wire.format import WireFormat, format_at
from statek_sim.providers.wire.reply import MALFORMED, ParsedReply
from statek_sim.providers.wire.request import WireRequest
from statek_sim.usage.messages import (
    REPLY_PRIMING,
    completion_tokens,
    json_size,
    message_tokens,
    tools_tokens,
)
from statek_sim.usage.tokenizers import TokenizerRegistry, tokenizer_for_model
from statek_sim.usage.totals import approx_tokens
from statek_sim.values import JSON

_REFUSED: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One answered call: bytes as STATEK meters them, tokens as measured, and as reported (None: not reported)."""

    line: int
    sent: int
    received: int
    measured: int
    reported: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Answered calls that belong together, in order. `name` is the cassette's, with `#2` for its second one."""

    name: str
    calls: tuple[RecordedCall, ...]

    def estimates(self) -> list[int]:
        """Return STATEK's estimate after each call: all bytes so far, divided by four once."""
        totals = accumulate(call.sent + call.received for call in self.calls)
        return [approx_tokens(total, 0) for total in totals]

    def usage(self, basis: UsageBasis) -> list[int] | None:
        """Return the usage on a basis after each call; None when a call was not reported."""
        match basis:
            case UsageBasis.BYTES:
                return self.estimates()
            case UsageBasis.MEASURED:
                return list(accumulate(call.measured for call in self.calls))
            case UsageBasis.REPORTED:
                tokens = [call.reported for call in self.calls if call.reported is not None]
                return list(accumulate(tokens)) if len(tokens) == len(self.calls) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What a folder of cassettes holds. `failed`: chat requests without a readable answer; `others`: no chat at all."""

    cassettes: int
    conversations: tuple[Conversation, ...]
    failed: int
    others: int


def traffic_under(path: Path, tokenizers: TokenizerRegistry | None = None) -> Traffic:
    """Return the conversations of a cassette, or of a folder of them; `BadInput` when there is none to read."""
    files = cassette_files(path)
    traffic = traffic_of({_name(file, path): read_decoded(file) for file in files}, tokenizers)
    if not traffic.conversations:
        raise BadInput(f"{path}: no answered chat request in {len(files)} cassettes")
    return traffic


def traffic_of(
    cassettes: Mapping[str, Iterable[Exchange]], tokenizers: TokenizerRegistry | None = None
) -> Traffic:
    """Return the conversations of cassettes by name; none goes on from one cassette to another."""
    found = [_Cassette(name, tokenizers) for name in cassettes]
    for cassette, exchanges in zip(found, cassettes.values(), strict=True):
        for exchange in exchanges:
            cassette.take(exchange)
    return Traffic(
        cassettes=len(found),
        conversations=tuple(conversation for cassette in found for conversation in cassette.conversations()),
        failed=sum(cassette.failed for cassette in found),
        others=sum(cassette.others for cassette in found),
    )


def _name(file: Path, root: Path) -> str:
    return (file.name if file == root else file.relative_to(root).as_posix()).removesuffix(file.suffix)


@dataclass(slots=True)
class _Open:
    """A conversation while it is read; `measured` is the size of all messages so far by the tokenizer `label`."""

    calls: list[RecordedCall] = field(default_factory=list)
    unanswered: bool = True
    label: str = ""
    messages: int = 0
    measured: int = 0


@dataclass(slots=True)
class _Cassette:
    """Sorts the requests of one cassette. `_tips`: conversations by the messages of their last request."""

    name: str
    tokenizers: TokenizerRegistry | None
    failed: int = 0
    others: int = 0
    _all: list[_Open] = field(default_factory=list)
    _tips: dict[str, list[_Open]] = field(default_factory=dict)

    def take(self, exchange: Exchange) -> None:
        """Take the next exchange in."""
        format_ = format_at(exchange.request.uri)
        body = _json(exchange.request.body)
        request = None if format_ is None else _asked(format_, body, exchange.request.uri)
        if format_ is None or request is None:
            self.others += 1
            return
        conversation = self._conversation(_prefixes(format_, request))
        reply = _reply(format_, exchange)
        conversation.unanswered = reply is None
        prompt = self._prompt(conversation, request)
        if reply is None:
            self.failed += 1
            return
        answer, received = reply
        conversation.calls.append(
            RecordedCall(
                line=exchange.line,
                sent=json_size(body),
                received=received,
                measured=prompt + self._completion(request, answer),
                reported=_reported(answer),
            )
        )

    def conversations(self) -> Iterator[Conversation]:
        """Yield the answered conversations, in the order in which they began."""
        answered = [talk for talk in self._all if talk.calls]
        for number, talk in enumerate(answered, start=1):
            name = self.name if len(answered) == 1 else f"{self.name}#{number}"
            yield Conversation(name=name, calls=tuple(talk.calls))

    def _conversation(self, prefixes: Sequence[str]) -> _Open:
        """Return the conversation that a request goes on with, or a new one; the request is its tip now."""
        found = self._retried(prefixes[-1]) or self._continued(prefixes[:-1]) or self._new()
        self._tips.setdefault(prefixes[-1], []).append(found)
        return found

    def _retried(self, whole: str) -> _Open | None:
        open_ = self._tips.get(whole, [])
        failed = next((talk for talk in open_ if talk.unanswered), None)
        if failed is not None:
            open_.remove(failed)
        return failed

    def _continued(self, shorter: Sequence[str]) -> _Open | None:
        """Return the conversation with the longest last request that this one begins with; the oldest of equal ones."""
        for prefix in reversed(shorter):
            open_ = self._tips.get(prefix)
            if open_:
                return open_.pop(0)
        return None

    def _new(self) -> _Open:
        made = _Open()
        self._all.append(made)
        return made

    def _prompt(self, conversation: _Open, request: WireRequest) -> int:
        """Return the prompt's tokens; messages that the conversation had before are not measured again."""
        model = tokenizer_for_model(request.model, self.tokenizers)
        if model.label != conversation.label or len(request.messages) < conversation.messages:
            conversation.label, conversation.messages, conversation.measured = model.label, 0, 0
        new = request.messages[conversation.messages :]
        conversation.measured += sum(message_tokens(message, model.tokenizer) for message in new)
        conversation.messages = len(request.messages)
        return conversation.measured + tools_tokens(request.tools, model.tokenizer) + REPLY_PRIMING

    def _completion(self, request: WireRequest, answer: ParsedReply) -> int:
        tokenizer = tokenizer_for_model(request.model, self.tokenizers).tokenizer
        calls: list[JSON] = [
            {"function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)}}
            for call in answer.tool_calls
        ]
        return completion_tokens(answer.text, calls, tokenizer)


def _json(body: bytes) -> JSON:
    try:
        return parsed(body)
    except NotJson:
        return None


def _asked(format_: WireFormat, body: JSON, uri: str) -> WireRequest | None:
    """Return what a request says; None when it is no request of this format."""
    try:
        request = format_.read_request(body, uri)
    except BadRequest:
        return None
    return request if request.messages else None


def _prefixes(format_: WireFormat, request: WireRequest) -> list[str]:
    """Return what stands for the first message, the first two, and so on to all of them."""
    found, before = [], format_.NAME.encode()
    for message in request.messages:
        before = blake2b(before + canonical(dict(message)).encode(), digest_size=16).digest()
        found.append(before.hex())
    return found


def _reply(format_: WireFormat, exchange: Exchange) -> tuple[ParsedReply, int] | None:
    """Return the answer and its bytes; of a stream those it would have had in one piece. None when it is none."""
    response = exchange.response
    if response.status >= _REFUSED:
        return None
    try:
        body = format_.join_stream(response.body) if response.is_stream else response.body
        return format_.read_reply(body), len(body)
    except (InvalidFormat, *MALFORMED):
        return None


def _reported(answer: ParsedReply) -> int | None:
    usage = answer.usage
    if not usage.present or usage.prompt is None or usage.completion is None:
        return None
    return usage.prompt + usage.completion
