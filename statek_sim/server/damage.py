"""What faults do to an answer that was good: pure functions on bodies and frames."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from statek_sim.providers.wire import sse
from statek_sim.providers.wire.compact import compact
from statek_sim.providers.wire.format import FormatName
from statek_sim.server.exchange import Answer, Frame, Silence, Streamed, Whole
from statek_sim.server.fault import (
    EmptyChoices,
    Fault,
    Malformed,
    Reset,
    SlowFirstByte,
    SlowTokens,
    Truncated,
    WrongContentType,
)

_CHOICES: Final[Mapping[FormatName, str]] = {
    "openai": "choices",
    "anthropic": "content",
    "gemini": "candidates",
}


def damaged(answer: Answer, fault: Fault, wire: FormatName) -> Answer:
    """Return `answer` with `fault` in it; a fault that is not about the bytes of an answer changes nothing."""
    if isinstance(answer, Silence) or (isinstance(answer, Streamed) and not answer.frames):
        return answer
    match fault:
        case WrongContentType(content_type=content_type):
            return _typed(answer, content_type)
        case SlowFirstByte(seconds=seconds):
            return _later(answer, seconds)
        case SlowTokens(seconds=seconds):
            return _slower(answer, seconds)
        case Reset(after=after):
            return _cut_off(answer, after)
        case Truncated():
            return _truncated(answer)
        case Malformed():
            return _malformed(answer)
        case EmptyChoices():
            return _emptied(answer, wire)
        case _:
            return answer


def _typed(answer: Whole | Streamed, content_type: str) -> Whole | Streamed:
    return replace(answer, content_type=content_type)


def _later(answer: Whole | Streamed, seconds: float) -> Whole | Streamed:
    if isinstance(answer, Whole):
        return replace(answer, delay=answer.delay + seconds)
    first, *rest = answer.frames
    return replace(answer, frames=(Frame(first.delay + seconds, first.data), *rest))


def _slower(answer: Whole | Streamed, seconds: float) -> Whole | Streamed:
    if isinstance(answer, Whole):
        return answer
    first, *rest = answer.frames
    return replace(answer, frames=(first, *(Frame(frame.delay + seconds, frame.data) for frame in rest)))


def _cut_off(answer: Whole | Streamed, after: int) -> Streamed:
    if isinstance(answer, Streamed):
        return replace(answer, frames=answer.frames[:after], reset=True)
    half = answer.body[: len(answer.body) // 2]
    return Streamed(
        frames=(Frame(answer.delay, half),),
        status=answer.status,
        content_type=answer.content_type,
        headers=answer.headers,
        reset=True,
    )


def _truncated(answer: Whole | Streamed) -> Whole | Streamed:
    if isinstance(answer, Whole):
        return replace(answer, body=answer.body[: len(answer.body) // 2])
    *kept, last = answer.frames[: len(answer.frames) // 2 + 1]
    return replace(answer, frames=(*kept, Frame(last.delay, last.data[: len(last.data) // 2])))


def _malformed(answer: Whole | Streamed) -> Whole | Streamed:
    if isinstance(answer, Whole):
        return replace(answer, body=_misclosed(answer.body))
    frames = list(answer.frames)
    middle = (len(frames) - 1) // 2
    frames[middle] = Frame(frames[middle].delay, _misclosed(frames[middle].data))
    return replace(answer, frames=tuple(frames))


def _misclosed(data: bytes) -> bytes:
    """Close the outermost object with a bracket."""
    before, brace, after = data.rpartition(b"}")
    return before + b"]" + after if brace else data + b"]"


def _emptied(answer: Whole | Streamed, wire: FormatName) -> Whole | Streamed:
    key = _CHOICES[wire]
    if isinstance(answer, Whole):
        return replace(answer, body=_without_choices(answer.body.decode(), key))
    frames = [
        Frame(frame.delay, emptied)
        for frame in answer.frames
        if (emptied := _event_without_choices(frame.data, key)) is not None
    ]
    return replace(answer, frames=tuple(frames))


def _event_without_choices(data: bytes, key: str) -> bytes | None:
    """Return an event without its choices, or None for Anthropic's events that are about nothing else."""
    (text,) = sse.events(data)
    if not text.startswith("{"):
        return data
    event = json.loads(text)
    if str(event.get("type", "")).startswith("content_block"):
        return None
    return data.replace(text.encode(), _without_choices(text, key)) if key in event else data


def _without_choices(text: str, key: str) -> bytes:
    body = json.loads(text)
    return compact({**body, key: []} if isinstance(body, dict) else body).encode()
