"""What a prompt still shows of the calls that were made: read from its messages, in OpenAI's shape."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from statek_sim.providers.wire.request import text_in
from statek_sim.values import JSON, Message

ERROR: Final = "Error: "
"""What stands before the result of a call that failed or was refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCall:
    """A call as a prompt shows it: a `plan.Seen`."""

    name: str
    arguments: Mapping[str, JSON]
    result: str | None = None
    error: str | None = None


def seen_in(messages: Sequence[Message]) -> list[SeenCall]:
    """Return the calls with what came of them, in the order of the messages.

    A call whose result is not among the messages is shown without one; a result without its call is not shown.
    """
    seen: list[SeenCall] = []
    open_: dict[str, list[int]] = {}
    for message in messages:
        if message.get("role") == "assistant":
            # Ids are unique within a reply only: some models, and calls that were read from text, have the same in all.
            open_ = {}
            for call in _calls(message):
                open_.setdefault(str(call.get("id")), []).append(len(seen))
                seen.append(_seen(call))
        elif message.get("role") == "tool":
            waiting = open_.get(str(message.get("tool_call_id")))
            if waiting:
                at = waiting.pop(0)
                seen[at] = _answered(seen[at], text_in(message.get("content")))
    return seen


def _calls(message: Message) -> list[Any]:
    calls = message.get("tool_calls")
    return calls if isinstance(calls, list) else []


def _seen(call: Any) -> SeenCall:
    function = call.get("function") or {}
    name, written = str(function.get("name")), function.get("arguments")
    return (
        _read(name, written) if isinstance(written, str) else SeenCall(name=name, arguments=_object(written))
    )


# The same prompts are read on every turn, and in every arm.
@lru_cache(maxsize=4096)
def _read(name: str, written: str) -> SeenCall:
    """Return a call as it is written; its arguments are empty where they cannot be read."""
    try:
        return SeenCall(name=name, arguments=_object(json.loads(written)))
    except ValueError:
        return SeenCall(name=name, arguments={})


def _answered(call: SeenCall, text: str) -> SeenCall:
    failed = text.startswith(ERROR)
    if failed:
        return SeenCall(name=call.name, arguments=call.arguments, error=text.removeprefix(ERROR))
    return SeenCall(name=call.name, arguments=call.arguments, result=text)


def _object(found: object) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}
