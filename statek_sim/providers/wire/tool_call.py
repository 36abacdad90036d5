"""Read one tool call of a reply, in OpenAI's shape or in Anthropic's: STATEK's client reads both with one function."""

from __future__ import annotations

import json
from typing import TypedDict

from statek_sim.errors import InvalidFormat
from statek_sim.providers.wire.reply import ToolCallRequest
from statek_sim.values import JSON


class _Function(TypedDict, total=False):
    name: JSON
    arguments: str


class WrittenCall(TypedDict, total=False):
    """A tool call as it should be in a body; nothing checks it before it is read."""

    id: JSON
    type: JSON
    function: _Function
    name: JSON
    input: JSON


def read_tool_call(call: WrittenCall) -> ToolCallRequest:
    """Read one tool call; a bad one is `InvalidFormat` with STATEK's text."""
    try:
        return _anthropic_call(call) if call.get("type") == "tool_use" else _openai_call(call)
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise InvalidFormat(f"Unable to parse tool call request: {error}") from error


def _openai_call(call: WrittenCall) -> ToolCallRequest:
    kind = call.get("type")
    if kind is not None and kind != "function":
        raise InvalidFormat(f"Unsupported tool call type: '{kind}'. Expected 'function' or 'tool_use'.")
    if "function" not in call:
        raise InvalidFormat("Missing 'function' key in tool call request.")
    function = call["function"]
    if "name" not in function:
        raise InvalidFormat("Missing 'name' in tool call function.")
    name = _tool_name(function["name"])
    try:
        arguments = json.loads(function.get("arguments", "{}"))
    except json.JSONDecodeError as error:
        raise InvalidFormat(f"Invalid JSON in 'arguments': {error}") from error
    if not isinstance(arguments, dict):
        raise InvalidFormat(f"'arguments' must decode to a JSON object, got {type(arguments).__name__}.")
    return ToolCallRequest(call.get("id", ""), name, arguments)


def _anthropic_call(call: WrittenCall) -> ToolCallRequest:
    if "name" not in call:
        raise InvalidFormat("Missing 'name' in Anthropic tool_use block.")
    name = _tool_name(call["name"])
    arguments = call.get("input", {})
    if not isinstance(arguments, dict):
        raise InvalidFormat(f"'input' must be a dict, got {type(arguments).__name__}.")
    return ToolCallRequest(call.get("id", ""), name, arguments)


def _tool_name(name: JSON) -> str:
    if not isinstance(name, str):
        raise InvalidFormat(f"'name' must be a string, got {type(name).__name__}.")
    return name
