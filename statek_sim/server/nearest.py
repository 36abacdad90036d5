"""What to tell a client, and the test behind it, when the script has no reply for a request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rapidfuzz import fuzz

from statek_sim.cassettes.redaction import sent_with
from statek_sim.cassettes.safe_text import ends_without_secrets
from statek_sim.providers.condition import Condition, TextMatch, text_accepts
from statek_sim.providers.mismatch import PendingReply, conversation_tail, shorten
from statek_sim.providers.protocol import ChatRequest

_COMPARED: Final = 4096
"""Characters of two texts that are compared."""


def exhausted(question: str, request: ChatRequest, script: str, total: int) -> str:
    """Say that the script is used up. `asked` names the request."""
    replies = "1 reply" if total == 1 else f"{total} replies"
    return "\n".join(
        (
            f"{question} wants one more reply, but {script} has {replies}, all used",
            *conversation_tail(request.messages, _plain(request)),
            f"add a reply to {script}, or let one answer .forever()",
        )
    )


def unmatched(question: str, request: ChatRequest, script: str, pending: Sequence[PendingReply]) -> str:
    """Say which reply of `pending` comes nearest to the request and what in it does not fit."""
    nearest = min(
        pending, key=lambda entry: (len(list(_differences(entry, request))), -_likeness(entry, request))
    )
    plain = _plain(request)
    return "\n".join(
        (
            f"{question} fits none of the {len(pending)} replies left in {script}",
            *conversation_tail(request.messages, plain),
            f"nearest is {nearest}",
            *(f"  {line}" for line in _differences(nearest, request, plain)),
            "change what it waits for, or add a reply for this request",
        )
    )


def _plain(request: ChatRequest) -> Callable[[str], str]:
    """Return what takes the secrets out of a text of the request, before the text loses its middle."""
    sent = sent_with("", tuple(request.headers.items()))
    return lambda text: ends_without_secrets(text, sent)


def _differences(
    entry: PendingReply, request: ChatRequest, plain: Callable[[str], str] = str
) -> Iterator[str]:
    """Yield what `entry` waits for and the request is not; `plain` makes of a text what may be shown of it."""
    reply, condition = entry.reply, entry.reply.condition
    if reply.job is not None and reply.job != request.job_id:
        yield f"job: expected {reply.job!r}, got {request.job_id!r}"
    if condition is None:
        return
    yield from _texts(condition, request, plain)
    if condition.turn is not None and condition.turn != request.turn:
        yield f"turn: expected {condition.turn}, got {request.turn}"
    if condition.attempt is not None and condition.attempt != request.attempt:
        yield f"attempt: expected {condition.attempt}, got {request.attempt}"
    if condition.at is not None and request.at < condition.at:
        yield f"virtual second: expected at least {condition.at:g}, got {request.at:g}"


def _texts(condition: Condition, request: ChatRequest, plain: Callable[[str], str]) -> Iterator[str]:
    subjects: list[tuple[str, TextMatch | None, str | None]] = [
        ("last message", condition.last_message, request.last_message),
        ("tool result", condition.tool_result, request.last_tool_result),
        ("model", condition.model, request.model),
        *((f"header {name!r}", match, request.headers.get(name)) for name, match in condition.headers),
    ]
    for subject, match, text in subjects:
        if match is not None and (text is None or not text_accepts(match, text)):
            got = "nothing" if text is None else repr(shorten(plain(text), 200))
            yield f"{subject}: expected {match}, got {got}"


def _likeness(entry: PendingReply, request: ChatRequest) -> float:
    """Return 0-100: how alike the text that is waited for and the last message are."""
    condition = entry.reply.condition
    match = None if condition is None else condition.last_message
    if match is None:
        return 0.0
    wanted = match.equals or match.contains or match.matches or ""
    return round(fuzz.ratio(wanted[:_COMPARED], request.last_message[:_COMPARED]), 6)
