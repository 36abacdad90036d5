"""What a summary still says of calls that are no longer in the prompt: its lines, read as a model reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from statek_sim.agent.context.units import NOTE_OPENING
from statek_sim.evals.seen import ERROR, SeenCall
from statek_sim.providers.wire.request import text_in
from statek_sim.values import Message

_CALL: Final = re.compile(r"- ([\w.-]+)\(")
_GAVE: Final = ") -> "
_SHORTENED: Final = " [...] "
"""Stands in a line where the middle of a text was left out."""


def noted_calls(messages: Sequence[Message]) -> Iterator[SeenCall]:
    """Yield the calls that the summaries of a prompt list.

    Of a shortened result nothing is known, of a shortened call not even that it was made.
    """
    for message in messages:
        text = text_in(message.get("content")) if message.get("role") in ("user", "system") else ""
        if text.startswith(NOTE_OPENING):
            yield from (call for line in text.splitlines()[1:] if (call := _call(line)) is not None)


def _call(line: str) -> SeenCall | None:
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
