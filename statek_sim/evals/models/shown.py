"""What a weak model makes of its prompt: calls that it shows or its summary lists, and whether it was corrected."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from statek_sim.agent.context.units import NOTE_OPENING
from statek_sim.agent.replies.nudges import PREFIX
from statek_sim.evals.seen import ERROR, SeenCall, seen_in
from statek_sim.providers.wire.request import text_in
from statek_sim.values import JSON, Message

_CLEARED: Final = re.compile(r"\[cleared: a result of \d+ tokens\]")
_TYPED: Final = re.compile(r"\w*(?:Error|Exception): ")
_CALL: Final = re.compile(r"- ([\w.-]+)\(")
_GAVE: Final = ") -> "
_SHORTENED: Final = " [...] "
"""Stands in a line where the middle of a text was left out."""


def shown_calls(messages: Sequence[Message]) -> list[SeenCall]:
    """Return the calls of a prompt, those whose result was taken away without one; first those that a summary lists."""
    return [_as_read(call) for call in (*noted_calls(messages), *seen_in(messages))]


def _as_read(call: SeenCall) -> SeenCall:
    if call.result is None:
        return call
    if _CLEARED.fullmatch(call.result):
        return replace(call, result=None)
    typed = _TYPED.match(call.result)
    return call if typed is None else replace(call, result=None, error=call.result[typed.end() :])


def call_key(name: str, arguments: Mapping[str, JSON]) -> str:
    """Return a text that is equal for equal calls, whatever the order of their arguments."""
    return f"{name} {json.dumps(arguments, sort_keys=True, ensure_ascii=False)}"


def is_corrected(messages: Sequence[Message]) -> bool:
    """Return whether the last thing a prompt says is a correction of the model."""
    last = messages[-1] if messages else {}
    return last.get("role") == "user" and text_in(last.get("content")).startswith(PREFIX)


def noted_calls(messages: Sequence[Message]) -> Iterator[SeenCall]:
    """Yield the calls that the summaries of a prompt list.

    Of a shortened result nothing is known, of a shortened call not even that it was made.
    """
    for message in messages:
        text = text_in(message.get("content")) if message.get("role") in ("user", "system") else ""
        if text.startswith(NOTE_OPENING):
            yield from (call for line in text.splitlines()[1:] if (call := _noted_call(line)) is not None)


def _noted_call(line: str) -> SeenCall | None:
    opening = _CALL.match(line)
    if opening is None:
        return None
    try:
        arguments, end = json.JSONDecoder().raw_decode(line, opening.end())
    except ValueError:
        return None
    if not isinstance(arguments, dict) or not line.startswith(_GAVE, end) or _SHORTENED in line[:end]:
        return None
    return _with_result(SeenCall(name=opening[1], arguments=arguments), line[end + len(_GAVE) :])


def _with_result(call: SeenCall, gave: str) -> SeenCall:
    if gave.startswith(ERROR):
        return SeenCall(name=call.name, arguments=call.arguments, error=gave.removeprefix(ERROR))
    whole = gave if gave and _SHORTENED not in gave else None
    return SeenCall(name=call.name, arguments=call.arguments, result=whole)
