"""Converts a scripted reply to a provider's result: a raw body, or a failure.

The requesting agent's chat style determines the form of code (behaviour 6.2):

    MARKDOWN, MD_DIALOG   a ```python fence in the content CONSOLE, None         the raw content; fenced if the reply
    also has text, which would otherwise run as code DIRECT                one `python_cli` tool call
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Final, assert_never

from statek_sim.clock import EPOCH
from statek_sim.errors import BadInput, ProviderHTTPError, ProviderTimeout, UnmatchedRequest
from statek_sim.providers.http_provider import http_error_text
from statek_sim.providers.protocol import ChatRequest, ChatStyleName, RawReply
from statek_sim.providers.script import (
    Chat,
    Computed,
    HttpError,
    NoAnswer,
    RawBody,
    RawStream,
    Reply,
    ScriptedCall,
    UsageKind,
    Vector,
    as_reply,
)
from statek_sim.providers.wire.format import FAKE_URLS, FORMATS
from statek_sim.providers.wire.reply import NO_USAGE, ReportedUsage, StopReason, WireReply, WireToolCall

CHAT_STYLES: Final[tuple[ChatStyleName, ...]] = ("CONSOLE", "MARKDOWN", "MD_DIALOG", "DIRECT")

_EPOCH_SECONDS: Final = int(EPOCH.timestamp())

Measure = Callable[[ChatRequest, str], tuple[int, int]]
"""Returns a call's prompt and completion token counts, given the request and the reply's text.

The text is the visible thinking, the content, and each tool call's name and arguments, joined by newlines.
"""

Styles = Mapping[str, ChatStyleName | None]
"""Maps agent roles to chat styles; unlisted roles use the request's chat style."""


@dataclass(frozen=True, slots=True)
class Manner:
    """A provider's chat style per agent role, its default chat style (`other`), and its token counter."""

    styles: Styles
    other: ChatStyleName | None
    measure: Measure | None


def manner(styles: Styles | ChatStyleName | None, measure: Measure | None) -> Manner:
    """Return the `Manner` for `styles` (a single style, or one per role); raises `BadInput` for an unknown style."""
    by_role: Styles = styles if isinstance(styles, Mapping) else MappingProxyType({})
    other = None if isinstance(styles, Mapping) else styles
    for style in (*by_role.values(), other):
        if style is not None and style not in CHAT_STYLES:
            raise BadInput(f"expected a chat style ({', '.join(CHAT_STYLES)}) or None, got {style!r}")
    return Manner(by_role, other, measure)


def deliver(reply: Reply, request: ChatRequest, spoken: Manner) -> RawReply:
    """Return the raw response that `reply` describes for `request`, or raise the failure that it describes."""
    answer = reply.answer
    match answer:
        case Chat():
            written = wire_reply(reply, answer, request, spoken)
            return RawReply(FORMATS[request.wire].reply_body(written), reply.latency)
        case RawBody(body=body):
            return RawReply(body, reply.latency)
        case RawStream(body=stream, seconds=seconds):
            return RawReply(FORMATS[request.wire].join_stream(stream), reply.latency + seconds)
        case HttpError(status=status, retry_after=retry_after):
            raise ProviderHTTPError(
                http_error_text(status, _url(request)),
                status=status,
                latency=reply.latency,
                retry_after=retry_after,
            )
        case NoAnswer():
            raise ProviderTimeout("", latency=reply.latency)
        case Vector():
            raise BadInput("a job cannot use an embedding reply; only the fake server uses embeddings")
        case Computed():
            return deliver(computed_reply(reply, answer, request), request, spoken)
        case _:
            assert_never(answer)


def _url(request: ChatRequest) -> str:
    """Return the URL to which STATEK would send a request for a fake provider."""
    return FORMATS[request.wire].request_url(FAKE_URLS[request.wire], request.model)


def computed_reply(reply: Reply, answer: Computed, request: ChatRequest) -> Reply:
    """Call `answer`'s function and return its result as a reply.

    A returned `Reply` keeps its options, and its latency is added to `reply`'s. A string or bytes gets the options of
    `reply`. Raises `BadInput` for any other result.
    """
    result = answer.function(request)
    if not isinstance(result, Reply | str | bytes):
        raise BadInput(f"a callable must return a Reply, a string of code or bytes, got {result!r}")
    given = as_reply(result)
    if isinstance(given.answer, Computed):
        raise BadInput("a callable returned another callable; expected a reply")
    if not isinstance(result, Reply):
        return replace(reply, answer=given.answer)
    if given.condition is not None or given.job is not None or given.repeat != 1:
        raise BadInput("a reply returned by a callable cannot have a condition, job or repeat")
    return replace(given, latency=reply.latency + given.latency)


def wire_reply(
    reply: Reply, chat: Chat, request: ChatRequest, spoken: Manner, *, reply_id: str | None = None
) -> WireReply:
    """Return the format-independent answer of `reply` to `request`. The id defaults to job and turn, as in `main-2`.

    Raises `UnmatchedRequest` for log probabilities in Anthropic's format.
    """
    if chat.tokens and request.wire == "anthropic":
        raise UnmatchedRequest("Anthropic's format does not support log probabilities; remove logprobs(...)")
    style = spoken.styles.get(request.role, spoken.other or request.chat_style)
    content = _content(chat, style, reply.fence)
    calls = _wire_calls(reply, chat, style, request.turn)
    stop: StopReason | None = None
    if reply.truncated:
        content, calls = _cut(content, calls)
        stop = "length"
    return WireReply(
        id=f"{request.job_id}-{request.turn}" if reply_id is None else reply_id,
        model=request.model,
        created=_EPOCH_SECONDS + int(request.at + reply.latency),
        text=content,
        calls=calls,
        stop=stop,
        thinking=chat.thinking,
        refuses=chat.refuses,
        citations=chat.citations,
        tokens=chat.tokens,
        usage=usage_of(reply, request, content, calls, spoken.measure),
    )


def _content(chat: Chat, style: ChatStyleName | None, fence: bool | None) -> str | None:
    if chat.code is None or (style == "DIRECT" and fence is None):
        return chat.text
    if fence is None:
        fence = style in ("MARKDOWN", "MD_DIALOG") or chat.text is not None
    return _with_code(chat.text, chat.code, fence=fence)


@lru_cache(maxsize=4096)
def _with_code(text: str | None, code: str, *, fence: bool) -> str:
    block = "```python\n" + code.rstrip("\n") + "\n```" if fence else code
    return block if text is None else f"{text}\n\n{block}"


def _wire_calls(reply: Reply, chat: Chat, style: ChatStyleName | None, turn: int) -> tuple[WireToolCall, ...]:
    scripted = chat.calls
    if style == "DIRECT" and chat.code is not None and reply.fence is None:
        scripted = (*scripted, _python_call(chat.code))
    if not scripted and reply.malformed_arguments is None:
        return ()
    calls = tuple(_wire_call(call, turn, number) for number, call in enumerate(scripted, 1))
    if reply.malformed_arguments is None:
        return calls
    if not calls:
        raise BadInput("'malformed_arguments' requires a reply with a tool call")
    return (*calls[:-1], replace(calls[-1], arguments=reply.malformed_arguments))


def _wire_call(call: ScriptedCall, turn: int, number: int) -> WireToolCall:
    return WireToolCall(f"call-{turn}-{number}" if call.id is None else call.id, call.name, call.arguments)


@lru_cache(maxsize=4096)
def _python_call(code: str) -> ScriptedCall:
    return ScriptedCall("python_cli", {"code": code})


def _cut(content: str | None, calls: tuple[WireToolCall, ...]) -> tuple[str | None, tuple[WireToolCall, ...]]:
    """Return the content and calls, with the last call's arguments (or, without calls, the content) cut in half."""
    if calls:
        last = calls[-1]
        return content, (*calls[:-1], replace(last, arguments=last.arguments[: len(last.arguments) // 2]))
    return content and content[: len(content) // 2], calls


def usage_of(
    reply: Reply,
    request: ChatRequest,
    content: str | None,
    calls: tuple[WireToolCall, ...],
    measure: Measure | None,
) -> ReportedUsage | None:
    """Return the usage that `reply` reports for this content and these calls; None is sent as `null`."""
    usage = reply.usage
    if usage is UsageKind.ABSENT:
        return NO_USAGE
    match usage:
        case ReportedUsage():
            return usage
        case UsageKind.NULL:
            return None
        case UsageKind.MEASURED:
            if measure is None:
                raise BadInput("'measured' usage requires an LLM with a `measure` function")
            texts = [content or "", *(part for call in calls for part in (call.name, call.arguments))]
            if isinstance(reply.answer, Chat) and reply.answer.thinking:
                texts.insert(0, reply.answer.thinking)
            prompt, completion = measure(request, "\n".join(texts))
            return ReportedUsage(prompt=prompt, completion=completion)
        case _:
            assert_never(usage)
