"""A streamed generateContent (`streamGenerateContent?alt=sse`): each event is a part of the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from statek_sim.providers.wire import sse
from statek_sim.providers.wire.compact import compact
from statek_sim.providers.wire.format import Split
from statek_sim.providers.wire.gemini.server import candidate, function_call, response
from statek_sim.providers.wire.reply import NO_USAGE, WireReply
from statek_sim.values import JSON


def reply_stream(reply: WireReply, split: Split, *, usage: bool = True) -> Iterator[bytes]:
    """Yield the text piece by piece, then each call whole; the last event has the reason and the usage."""
    shown = reply if usage else replace(reply, usage=NO_USAGE)
    for index, choice in enumerate((reply, *reply.others)):
        parts: list[JSON] = [{"text": piece} for piece in (split(choice.text) if choice.text else ())]
        parts.extend(map(function_call, choice.calls))
        for part in parts[:-1]:
            yield sse.event(
                compact(response(shown, [candidate(choice, [part], index, last=False)], last=False))
            )
        ending = candidate(choice, parts[-1:], index, last=True)
        yield sse.event(compact(response(shown, [ending], last=index == len(reply.others))))


def join_stream(stream: bytes) -> bytes:
    """Return the response that the events add up to, texts in a row joined.

    `ValueError` for an event that is not JSON.
    """
    answer: dict[str, Any] = {}
    candidates: dict[int, dict[str, Any]] = {}
    parts: dict[int, list[dict[str, Any]]] = {}
    for data in sse.events(stream):
        piece = json.loads(data)
        for found in piece.get("candidates") or ():
            index = found.get("index", 0)
            for part in (found.get("content") or {}).get("parts") or ():
                _add(part, parts.setdefault(index, []))
            candidates.setdefault(index, {}).update(found)
        answer.update(piece)
    if candidates:
        answer["candidates"] = [
            {
                **whole,
                "content": {**(whole.get("content") or {"role": "model"}), "parts": parts.get(index, [])},
            }
            for index, whole in sorted(candidates.items())
        ]
    return compact(answer).encode()


def _add(part: dict[str, Any], parts: list[dict[str, Any]]) -> None:
    if parts and set(part) == {"text"} == set(parts[-1]):
        parts[-1] = {"text": parts[-1]["text"] + part["text"]}
    else:
        parts.append(part)
