"""Calls of tools and what came of them, in turn: the conversations that providers refuse, in their words.

A client that shortens its history, or forgets a result, is told so by OpenAI, Anthropic and Google with status 400, and
a fake that answered all the same would be kinder than they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from statek_sim.providers.wire.format import FormatName
from statek_sim.values import JSON, Message

_WITHOUT_RESULT: Final[Mapping[FormatName, str]] = {
    "openai": "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: {ids}",
    "responses": "No tool output found for function call {ids}.",
    "anthropic": "`tool_use` ids were found without `tool_result` blocks immediately after: {ids}. Each `tool_use` "
    "block must have a corresponding `tool_result` block in the next message.",
    "gemini": "Please ensure that the number of function response parts is equal to the number of function call parts "
    "of the function call turn.",
}
_WITHOUT_CALL: Final[Mapping[FormatName, str]] = {
    "openai": "Invalid parameter: messages with role 'tool' must be a response to a preceding message with "
    "'tool_calls'; there is no call {ids}",
    "responses": "No tool call found for function call output with call_id {ids}.",
    "anthropic": "unexpected `tool_use_id` found in `tool_result` blocks: {ids}. Each `tool_result` block must have a "
    "corresponding `tool_use` block in the previous message.",
    "gemini": "Please ensure that function response turn comes immediately after a function call turn.",
}


def out_of_turn(messages: Sequence[Message], wire: FormatName) -> str | None:
    """Return why the provider of a format refuses a conversation, in OpenAI's shape; None when it does not."""
    open_calls: Counter[str] = Counter()
    for message in messages:
        if message.get("role") == "tool":
            answered = _key(message.get("tool_call_id"), wire)
            if not open_calls[answered]:
                return _WITHOUT_CALL[wire].format(ids=answered)
            open_calls[answered] -= 1
            continue
        if open_calls.total():
            return _WITHOUT_RESULT[wire].format(ids=_listed(open_calls))
        open_calls = Counter(_ids(message.get("tool_calls"), wire))
    # Google takes a turn of calls at the end.
    if open_calls.total() and wire != "gemini":
        return _WITHOUT_RESULT[wire].format(ids=_listed(open_calls))
    return None


def _ids(calls: JSON, wire: FormatName) -> Iterable[str]:
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict):
            yield _key(call.get("id"), wire)


def _key(name: JSON, wire: FormatName) -> str:
    """Return what a call and its result are matched by; Google counts them, and their ids may be left out."""
    return "" if wire == "gemini" else str(name)


def _listed(calls: Counter[str]) -> str:
    return ", ".join(name for name, times in calls.items() if times)
