"""A run's history and requests. Each message's tokens are counted only once, when it is added."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from statek_sim.agent.effects import WrittenCall
from statek_sim.agent.replies.model_reply import ModelReply
from statek_sim.agent.spec import AgentSpec
from statek_sim.agent.tools.registry import Offer
from statek_sim.providers.protocol import ChatRequest, RawReply
from statek_sim.providers.wire.format import FAKE_URLS, FORMATS
from statek_sim.providers.wire.request import PLAIN, ClientOptions, WireRequest
from statek_sim.usage.conversation import MessageMeter, MeteredConversation, shared_meter
from statek_sim.usage.messages import (
    REPLY_PRIMING,
    TOKENS_PER_TOOL_CALL,
    body_size,
    envelope_size,
    tools_tokens,
)
from statek_sim.usage.token_usage import TurnUsage
from statek_sim.usage.tokenizers import ModelTokenizer, TokenizerRegistry, tokenizer_for_model
from statek_sim.values import JSON, Message, ToolSpec, in_common


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """Everything in a request except the messages: the offered tools, their token count, and the size in bytes."""

    tools: tuple[ToolSpec, ...]
    size: int
    tools_tokens: int


class Envelopes:
    """Measurements shared by runs: one meter per tokenizer, and one envelope per set of tools."""

    def __init__(self, tokenizers: TokenizerRegistry | None = None, options: ClientOptions = PLAIN) -> None:
        self._tokenizers = tokenizers
        self.options = options
        self._meters: dict[str, MessageMeter] = {}
        self._made: dict[tuple[str, float | None, int], tuple[Offer | None, Envelope]] = {}

    def meter(self, model: str) -> MessageMeter:
        """Return a model's meter; models with the same tokenizer share one."""
        tokenizer = tokenizer_for_model(model, self._tokenizers)
        meter = self._meters.get(tokenizer.label)
        if meter is None:
            meter = self._meters[tokenizer.label] = shared_meter(tokenizer)
        return meter

    def envelope(self, spec: AgentSpec, offer: Offer | None) -> Envelope:
        """Return the envelope for an agent's requests with these offered tools; None means that no tools are sent."""
        key = (spec.model, spec.temperature, id(offer))
        made = self._made.get(key)
        if made is None:
            tools = () if offer is None else offer.specs
            tokenizer = self.meter(spec.model).model_tokenizer.tokenizer
            envelope = Envelope(
                tools=tools,
                size=envelope_size(spec.model, tools, spec.temperature),
                tools_tokens=tools_tokens(tools, tokenizer),
            )
            # Keep a reference to the offer, so that its `id()` is not reused.
            made = self._made[key] = (offer, envelope)
        return made[1]


class PrefixShare:
    """Counts the prompt tokens that a prefix cache would hit: leading tokens shared with the previous request.

    Providers put tools before the messages, so a request with different tools shares nothing.
    """

    __slots__ = ("hit", "total")

    def __init__(self) -> None:
        self.hit = 0
        self.total = 0

    @property
    def share(self) -> float | None:
        """The fraction of prompt tokens that a prefix cache would hit, from 0 to 1; None if there were no requests."""
        return self.hit / self.total if self.total else None


class Conversation:
    """A run's messages, starting with the system block, and the requests made from them."""

    def __init__(self, envelopes: Envelopes, spec: AgentSpec) -> None:
        self._envelopes = envelopes
        self._spec = spec
        self._meter = envelopes.meter(spec.model)
        self._metered = MeteredConversation(self._meter)
        self._envelope = envelopes.envelope(spec, None)
        self._sent_with: Envelope | None = None
        self._kept = 0
        self._kept_tokens = 0
        self._new_past = False
        self._interrupted = False
        self._alone = False
        self.sent: Sequence[Message] = ()
        self.prefix = PrefixShare()
        block = spec.layers.block()
        if block:
            self._metered.append({"role": "system", "content": block})

    # -- contents ----------------------------------------------------------------------------------------------

    @property
    def messages(self) -> Sequence[Message]:
        """All messages so far; the returned value does not change when messages are appended later."""
        return self._metered.view()

    @property
    def prompt_tokens(self) -> int:
        """The number of tokens in the next request's prompt: messages, tools, and the tokens that open the reply."""
        return self._metered.tokens + self._envelope.tools_tokens + REPLY_PRIMING

    def tokens_of(self, count: int) -> int:
        """Return the number of tokens in the first `count` messages."""
        return self._metered.truncated(count).tokens

    def add(self, message: Message) -> None:
        """Append a message."""
        self._metered.append(message)

    def said(self, reply: ModelReply, calls: Sequence[WrittenCall], text: str) -> None:
        """Append a message from the model with these calls; do nothing if there is neither text nor a call.

        Providers reject assistant messages with neither text nor calls.
        """
        if not text.strip() and not calls:
            return
        message: dict[str, JSON] = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in calls
            ]
        if reply.native and tuple(calls) == reply.calls:
            # A model's signed thinking is sent back only with the unchanged turn.
            message.update(reply.native)
        self._metered.append(message)

    def replace(self, messages: Sequence[Message]) -> None:
        """Replace all messages."""
        self._metered = MeteredConversation(self._meter, messages)
        self._new_past = True

    def saved(self) -> dict[str, object]:
        """Return the messages and the details of the last request, as values that a checkpoint can store."""
        messages = self._metered.view()
        same = len(self.sent) <= len(messages) and in_common(self.sent, messages) == len(self.sent)
        return {
            "messages": list(messages),
            "sent": len(self.sent) if same else list(self.sent),
            "same_tools": self._sent_with is self._envelope,
            "kept": self._kept,
            "kept_tokens": self._kept_tokens,
            "new_past": self._new_past,
            "interrupted": self._interrupted,
            "alone": self._alone,
            "hit": self.prefix.hit,
            "total": self.prefix.total,
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Restore state returned by `saved`; the last request's tools must already be offered."""
        self._metered = MeteredConversation(self._meter, saved["messages"])
        sent = saved["sent"]
        self.sent = self._metered.view(sent) if isinstance(sent, int) else sent
        self._sent_with = self._envelope if saved["same_tools"] else None
        self._kept, self._kept_tokens = saved["kept"], saved["kept_tokens"]
        self._new_past, self._interrupted = saved["new_past"], saved["interrupted"]
        self._alone = saved["alone"]
        self.prefix.hit, self.prefix.total = saved["hit"], saved["total"]

    def offer(self, offer: Offer | None) -> None:
        """Send these tools with all further requests; None means no tools."""
        self._envelope = self._envelopes.envelope(self._spec, offer)

    # -- requests ----------------------------------------------------------------------------------------------

    def request(self, job: str, *, turn: int, attempt: int, at: float) -> ChatRequest:
        """Return the next request."""
        messages, size = self._as_sent()
        if attempt == 1:
            self._note(messages)
        spec = self._spec
        return ChatRequest(
            job_id=job,
            role=spec.role,
            turn=turn,
            attempt=attempt,
            at=at,
            model=spec.model,
            messages=messages,
            tools=self._envelope.tools,
            temperature=spec.temperature,
            bytes_sent=size,
            provider=spec.provider,
            wire=spec.wire,
            options=self._envelopes.options,
            ends_by="text",
        )

    @property
    def kept(self) -> int:
        """The number of leading messages that the last request shares with the job's previous request."""
        return 0 if self._alone else self._kept

    def interrupted(self) -> None:
        """Record that a request outside the conversation was sent, such as one for a summary."""
        self._interrupted = True

    def _as_sent(self) -> tuple[Sequence[Message], int]:
        """Return the messages as the provider receives them, and the body's size in bytes as STATEK counts it.

        In formats other than OpenAI's, single messages have no size, so every body is built and measured.
        """
        metered, envelope, spec = self._metered, self._envelope, self._spec
        messages = metered.view()
        if spec.wire == "openai":
            return messages, body_size(envelope.size, metered.messages_json, len(metered))
        wire = FORMATS[spec.wire]
        wire_request = WireRequest(
            model=spec.model, messages=messages[:], tools=envelope.tools, temperature=spec.temperature
        )
        body = wire.request_body(wire_request, self._envelopes.options)
        url = wire.request_url(FAKE_URLS[spec.wire], spec.model)
        return wire.read_request(body, url).messages, len(json.dumps(body))

    def _note(self, messages: Sequence[Message]) -> None:
        """Count the messages and tokens that a request shares with the previous one."""
        metered = self._metered
        self._alone, self._interrupted = self._interrupted, False
        if self._new_past or self._spec.wire != "openai":
            self._kept = in_common(self.sent, messages)
            self._kept_tokens = metered.truncated(min(self._kept, len(metered))).tokens
        else:
            self._kept = len(self.sent)
        if self._envelope is self._sent_with and self._kept:
            self.prefix.hit += self._kept_tokens + self._envelope.tools_tokens
        self.prefix.total += metered.tokens + self._envelope.tools_tokens
        self._sent_with, self.sent, self._new_past = self._envelope, messages, False
        self._kept_tokens = metered.tokens

    def metered(self, request: ChatRequest, raw: RawReply, reply: ModelReply) -> TurnUsage:
        """Return an answered request's usage, measured in three ways: bytes, tokenizer, and the provider's report."""
        return turn_usage(request, raw, reply, self.prompt_tokens, self._meter.model_tokenizer)


def turn_usage(
    request: ChatRequest, raw: RawReply, reply: ModelReply, prompt_tokens: int, tokenizer: ModelTokenizer
) -> TurnUsage:
    """Return the usage for a request and its answer; the caller measures `prompt_tokens`."""
    count = tokenizer.tokenizer.count
    completion = count(reply.text) if reply.text else 0
    for call in reply.calls:
        completion += TOKENS_PER_TOOL_CALL + count(call.name) + count(call.arguments)
    usage = reply.usage
    present = usage.present and usage.prompt is not None
    return TurnUsage(
        request.bytes_sent,
        len(raw.body),
        prompt_tokens,
        completion,
        usage.prompt if present else None,
        usage.completion if present else None,
        usage.cached if present else None,
        usage.cost,
        tokenizer.label,
    )
