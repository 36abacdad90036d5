"""The calls that a prompt still shows or its summary lists, read from its messages in OpenAI's shape."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from statek_sim.agent.context.history import NOTE_OPENING
from statek_sim.agent.replies.nudges import PREFIX
from statek_sim.providers.wire.request import text_in
from statek_sim.values import JSON, Message

ERROR: Final = "Error: "
"""What stands before the result of a call that failed or was refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCall:
    """A call as a prompt shows it. `result` None without an error: the call is shown, what it gave is not."""

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
    """Return whether the last thing a prompt says is a correction of the model.

    That is a nudge of engine agent, or whatever another harness tells the model as the user after its reply.
    """
    last = messages[-1] if messages else {}
    if last.get("role") != "user":
        return False
    after_reply = len(messages) > 1 and messages[-2].get("role") == "assistant"
    return after_reply or text_in(last.get("content")).startswith(PREFIX)


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
