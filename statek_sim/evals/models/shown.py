"""What a weak model makes of its prompt: the calls that it shows, and whether it ends with a correction."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from statek_sim.agent.replies.nudges import PREFIX
from statek_sim.evals.models.noted import noted_calls
from statek_sim.evals.seen import SeenCall, seen_in
from statek_sim.providers.wire.request import text_in
from statek_sim.values import JSON, Message

_CLEARED: Final = re.compile(r"\[cleared: a result of \d+ tokens\]")
_TYPED: Final = re.compile(r"\w*(?:Error|Exception): ")


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
