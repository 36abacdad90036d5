"""What faults do to an answer that was good: pure functions on bodies and frames."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from statek_sim.providers.wire import encoding
from statek_sim.providers.wire.encoding import compact
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
from statek_sim.values import JSON

_CHOICES: Final[Mapping[FormatName, tuple[str, ...]]] = {
    "openai": ("choices", "data"),
    "responses": ("output",),
    "anthropic": ("content",),
    "gemini": ("candidates", "embeddings"),
}
_ABOUT_CONTENT: Final = (
    "content_block",
    "response.output",
    "response.content_part",
    "response.function_call",
)
"""How the types of the events begin that are about nothing else."""


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
    keys = _CHOICES[wire]
    if isinstance(answer, Whole):
        return replace(answer, body=_without_choices(answer.body.decode(), keys))
    frames = [
        Frame(frame.delay, emptied)
        for frame in answer.frames
        if (emptied := _event_without_choices(frame.data, keys)) is not None
    ]
    return replace(answer, frames=tuple(frames))


def _event_without_choices(data: bytes, keys: tuple[str, ...]) -> bytes | None:
    """Return an event without its choices, or None for one that is about nothing else."""
    events = list(encoding.events(data))
    if len(events) != 1 or not events[0].startswith("{"):
        return data
    text = events[0]
    event = json.loads(text)
    if str(event.get("type", "")).startswith(_ABOUT_CONTENT):
        return None
    response = event.get("response", event)
    named = isinstance(response, dict) and any(key in response for key in keys)
    return data.replace(text.encode(), _without_choices(text, keys)) if named else data


def _without_choices(text: str, keys: tuple[str, ...]) -> bytes:
    """Empty the choices of an answer, or those of the answer that an event has with it; no JSON stays what it is."""
    try:
        body = json.loads(text)
    except ValueError:
        return text.encode()
    if isinstance(body, dict):
        response = body.get("response")
        body = (
            {**body, "response": _emptied_of(response, keys)}
            if isinstance(response, dict)
            else _emptied_of(body, keys)
        )
    return compact(body).encode()


def _emptied_of(body: dict[str, JSON], keys: tuple[str, ...]) -> dict[str, JSON]:
    return {**body, **{key: [] for key in keys if key in body}}
