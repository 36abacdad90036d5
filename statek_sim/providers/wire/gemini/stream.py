"""A streamed generateContent (`streamGenerateContent?alt=sse`): each event is a part of the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from statek_sim.providers.wire import sse
from statek_sim.providers.wire.compact import compact
from statek_sim.providers.wire.format import Split
from statek_sim.providers.wire.gemini.server import function_call, response
from statek_sim.providers.wire.reply import NO_USAGE, WireReply
from statek_sim.values import JSON


def reply_stream(reply: WireReply, split: Split, *, usage: bool = True) -> Iterator[bytes]:
    """Yield the text piece by piece, then each call whole; the last event has the reason and the usage."""
    parts: list[JSON] = [{"text": piece} for piece in (split(reply.text) if reply.text else ())]
    parts.extend(map(function_call, reply.calls))
    told = reply if usage else replace(reply, usage=NO_USAGE)
    for part in parts[:-1]:
        yield sse.event(compact(response(told, [part], last=False)))
    yield sse.event(compact(response(told, parts[-1:], last=True)))


def join_stream(stream: bytes) -> bytes:
    """Return the response that the events add up to, texts in a row joined; of several candidates the first.

    `ValueError` for an event that is not JSON.
    """
    answer: dict[str, Any] = {}
    candidate: dict[str, Any] = {}
    parts: list[dict[str, Any]] = []
    for data in sse.events(stream):
        piece = json.loads(data)
        for found in (piece.get("candidates") or ())[:1]:
            for part in (found.get("content") or {}).get("parts") or ():
                _add(part, parts)
            candidate.update(found)
        answer.update(piece)
    if candidate:
        content = {**(candidate.get("content") or {"role": "model"}), "parts": parts}
        answer["candidates"] = [{**candidate, "content": content}]
    return compact(answer).encode()


def _add(part: dict[str, Any], parts: list[dict[str, Any]]) -> None:
    if parts and set(part) == {"text"} == set(parts[-1]):
        parts[-1] = {"text": parts[-1]["text"] + part["text"]}
    else:
        parts.append(part)
