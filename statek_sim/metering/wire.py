"""Bytes of a request as STATEK meters them.

STATEK counts `len(json.dumps(body).encode())` with Python's defaults (behaviour 5): non-ASCII
characters escaped, `", "` and `": "` as separators. That is not what goes over the wire, and it is what the
harness limits. The result is ASCII, so its length in characters is its length in bytes.

The size is additive: a body is an envelope (everything but the messages) plus the messages and their
separators. So a conversation keeps one running sum, and a turn costs what its new messages cost, however long
the conversation.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from json.encoder import encode_basestring_ascii
from typing import Final

from statek_sim.values import JSON, Message, ToolSpec

_SEPARATOR: Final = len(", ")
_COLON: Final = len(": ")
_BRACES: Final = len("{}")
_NULL: Final = len("null")


def json_size(value: JSON) -> int:
    """Return the bytes of `json.dumps(value)`."""
    # Exact types, and no `json.dumps` for the containers: it sets up an encoder for each call, which
    # costs more than measuring a message.
    if type(value) is str:
        return len(encode_basestring_ascii(value))
    if type(value) is dict:
        return message_size(value)
    if type(value) is list:
        return sum(json_size(item) + _SEPARATOR for item in value) or _BRACES
    return _NULL if value is None else len(json.dumps(value))


def message_size(message: Message) -> int:
    """Return the bytes of `json.dumps(message)`, whatever kind of mapping it is."""
    size = 0
    for key, value in message.items():
        text = len(encode_basestring_ascii(value)) if type(value) is str else json_size(value)
        size += len(encode_basestring_ascii(key)) + _COLON + text + _SEPARATOR
    # The two braces take the place of the separator that the last item does not have.
    return size or _BRACES


def envelope_size(model: str, tools: Sequence[ToolSpec] = (), temperature: float | None = None) -> int:
    """Return the bytes of a request body that has no messages: `"messages": []` is there, and empty.

    The same for all turns with this model, these tools and this temperature: compute it once.
    """
    body: dict[str, JSON] = {"model": model, "messages": []}
    if tools:
        body["tools"] = [dict(spec) for spec in tools]
    if temperature is not None:
        body["temperature"] = temperature
    return len(json.dumps(body))


def body_size(envelope: int, messages_json: int, message_count: int) -> int:
    """Return the bytes of a request body: `envelope_size`, and messages of `messages_json` bytes in total."""
    return envelope + messages_json + _SEPARATOR * max(message_count - 1, 0)
