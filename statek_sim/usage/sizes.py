"""Bytes of a request as STATEK meters them, and what a call is made of: bytes and tokens that add up.

STATEK counts `len(json.dumps(body).encode())` with Python's defaults (behaviour 5): non-ASCII
characters escaped, `", "` and `": "` as separators. That is not what goes over the wire, and it is what the
harness limits. The result is ASCII, so its length in characters is its length in bytes.

The size is additive: a body is an envelope (everything but the messages) plus the messages and their
separators. So a conversation keeps one running sum, and a turn costs what its new messages cost, however long
the conversation.

A message's JSON holds its texts, the escapes of their non-ASCII characters, and the frame around them. Texts are
what a tokenizer reads; everything else is there for the wire, and the model sees a frame of its own instead.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from json.encoder import encode_basestring_ascii
from typing import Final, NamedTuple, Self

from statek_sim.usage.messages import TOKENS_PER_TOOL_CALL, format_tokens, message_texts, tools_tokens
from statek_sim.usage.tokenizers import Tokenizer
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


_ESCAPE: Final = len("\\uXXXX")


class Sizes(NamedTuple):
    r"""A message, or several added up.

    `json_bytes` as STATEK meters them, separators between messages left out; `escape_bytes` of them are what
    `\uXXXX` takes beyond UTF-8. `text_bytes` are the texts in UTF-8, `characters` the same texts in characters,
    `frame_tokens` what the chat format adds to the texts' tokens.
    """

    json_bytes: int = 0
    escape_bytes: int = 0
    text_bytes: int = 0
    characters: int = 0
    frame_tokens: int = 0

    def plus(self, other: Sizes) -> Sizes:
        """Return both together."""
        return Sizes(*(mine + its for mine, its in zip(self, other, strict=True)))


class ToolSizes(NamedTuple):
    """The tool definitions of one request: `json_bytes` with their key, escapes among them; all 0 without tools."""

    json_bytes: int = 0
    escape_bytes: int = 0
    characters: int = 0
    tokens: int = 0

    @classmethod
    def of(cls, tools: Sequence[ToolSpec], tokenizer: Tokenizer) -> Self:
        """Measure the definitions that a request offers."""
        if not tools:
            return cls()
        # One dump of the whole list: its non-ASCII characters are in the descriptions.
        specs: JSON = [dict(spec) for spec in tools]
        readable = json.dumps(specs, ensure_ascii=False)
        return cls(
            json_bytes=len(f', "tools": {json.dumps(specs)}'),
            escape_bytes=escape_bytes(readable),
            characters=len(readable),
            tokens=tools_tokens(tools, tokenizer),
        )


class ReplySizes(NamedTuple):
    """What a model wrote: its texts in UTF-8 and in characters, and what the chat format adds for tool calls."""

    text_bytes: int
    characters: int
    frame_tokens: int

    @classmethod
    def of(cls, texts: Sequence[str]) -> Self:
        """Measure a reply: its text, then name and arguments of each tool call."""
        calls = (len(texts) - 1) // 2
        return cls(sum(map(utf8_size, texts)), sum(map(len, texts)), TOKENS_PER_TOOL_CALL * calls)


def message_sizes(message: Message, tokenizer: Tokenizer) -> Sizes:
    """Measure one message of any shape."""
    texts = tuple(message_texts(message))
    return Sizes(
        json_bytes=message_size(message),
        escape_bytes=escape_bytes(json.dumps(dict(message), ensure_ascii=False)),
        text_bytes=sum(map(utf8_size, texts)),
        characters=sum(map(len, texts)),
        frame_tokens=format_tokens(message, tokenizer),
    )


def escape_bytes(text: str) -> int:
    r"""Return the bytes that `\uXXXX` escapes take beyond UTF-8; one escape per UTF-16 unit, two for an emoji."""
    if text.isascii():
        return 0
    plain = len(text.encode("ascii", "ignore"))
    units = len(text.encode("utf-16-le", "surrogatepass")) // 2 - plain
    return _ESCAPE * units - (utf8_size(text) - plain)


def utf8_size(text: str) -> int:
    """Return the bytes of `text` in UTF-8; a lone surrogate, which has no form there, takes three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
