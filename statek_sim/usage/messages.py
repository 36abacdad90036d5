"""Counts a request's bytes as STATEK does, and the tokens in a request and its answer, including the chat format.

STATEK counts `len(json.dumps(body).encode())` with Python's defaults (behaviour 5): non-ASCII characters are escaped,
and the separators are `", "` and `": "`. The harness limits this size, which differs from the bytes sent over HTTP. A
body consists of an envelope (everything except the messages), the messages, and their separators, so a new turn adds
the sizes of its messages. Tokens are counted in plain text, without JSON escapes; the chat format's tokens are added.

Providers do not publish how they render messages and tools into the prompt. The rules here are from OpenAI's cookbook,
"How to count tokens with tiktoken". They give the `prompt_tokens` that the API reported for the cookbook's examples:
124 for a conversation with o200k_base, 129 with cl100k_base, 101 with a tool.

- A message costs 3 tokens plus its role, its content and its name; a name costs 1 more.
- Priming the answer costs 3 tokens, once per request (`REPLY_PRIMING`).
- A tool call in an assistant message costs 3 tokens plus its function's name and its arguments. The cookbook has no
  rule for calls; they are counted like messages. Ids (`id`, `tool_call_id`) cost nothing, because they are not known to
  reach the model. For one question, one call and its result, users report 40 prompt tokens from the API, and this
  module counts 39.
- Tools: see `tools_tokens`.

For other model families, all of this is an approximation, indicated by the tokenizer label `proxy`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from json.encoder import encode_basestring_ascii
from typing import Final, NamedTuple, Self

from statek_sim.usage.tokenizers import Tokenizer
from statek_sim.values import JSON, Message, ToolSpec

TOKENS_PER_MESSAGE: Final = 3
TOKENS_PER_NAME: Final = 1
TOKENS_PER_TOOL_CALL: Final = 3
REPLY_PRIMING: Final = 3
"""The tokens that prime the answer at the end of the prompt, once per request."""

TOKENS_PER_FUNCTION: Final = 7
TOKENS_PER_PROPERTY_LIST: Final = 3
TOKENS_PER_PROPERTY: Final = 3
TOKENS_PER_ENUM: Final = -3
TOKENS_PER_ENUM_ITEM: Final = 3
TOKENS_PER_TOOL_LIST: Final = 12


def message_tokens(message: Message, tokenizer: Tokenizer) -> int:
    """Return the prompt tokens for a message with any role."""
    return format_tokens(message, tokenizer) + sum(map(tokenizer.count, message_texts(message)))


def message_texts(message: Message) -> Iterator[str]:
    """Yield the strings that `message_tokens` counts, without the role.

    A content part counts as its text; a part without text, such as an image, counts as its JSON.
    """
    content = message.get("content")
    if isinstance(content, list):
        yield from (model_text(_part_text(part)) for part in content)
    elif content is not None:
        yield model_text(content)
    name = message.get("name")
    if isinstance(name, str):
        yield name
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        for call in calls:
            yield from _call_texts(call)


def format_tokens(message: Message, tokenizer: Tokenizer) -> int:
    """Return the tokens that the chat format adds to the text of a message and its calls, including the role."""
    total = TOKENS_PER_MESSAGE + _text_tokens(message.get("role"), tokenizer)
    if isinstance(message.get("name"), str):
        total += TOKENS_PER_NAME
    calls = message.get("tool_calls")
    return total + (TOKENS_PER_TOOL_CALL * len(calls) if isinstance(calls, list) else 0)


def prompt_tokens(messages: Iterable[Message], tools: Sequence[ToolSpec], tokenizer: Tokenizer) -> int:
    """Return a request's prompt tokens: messages, tools and reply priming."""
    body = sum(message_tokens(message, tokenizer) for message in messages)
    return body + tools_tokens(tools, tokenizer) + REPLY_PRIMING


def completion_tokens(text: str | None, tool_calls: Sequence[JSON] | None, tokenizer: Tokenizer) -> int:
    """Return an answer's tokens: its text, and its tool calls in OpenAI's format.

    Hidden reasoning cannot be measured and is not included.
    """
    total = tokenizer.count(text) if text else 0
    return total + sum(tool_call_tokens(call, tokenizer) for call in tool_calls) if tool_calls else total


def tool_call_tokens(call: JSON, tokenizer: Tokenizer) -> int:
    """Return the tokens for a tool call `{"id", "type", "function": {"name", "arguments"}}`."""
    return TOKENS_PER_TOOL_CALL + sum(map(tokenizer.count, _call_texts(call)))


def tools_tokens(specs: Sequence[ToolSpec], tokenizer: Tokenizer) -> int:
    """Return the prompt tokens for a request's tools; 0 without tools.

    The rules are the cookbook's for gpt-4o. The list costs 12 tokens. Each function costs 7 tokens plus those of
    `name:description`. A function's properties, if any, cost 3 tokens, and each property costs 3 more plus those of
    `name:type:description`. An enum costs 3 tokens per value plus those of the values, minus 3. A description's final
    full stop does not count. Models before gpt-4o use 10 tokens per function instead of 7; this is not counted.
    """
    if not specs:
        return 0
    return TOKENS_PER_TOOL_LIST + sum(_function_tokens(spec, tokenizer) for spec in specs)


def _function_tokens(spec: ToolSpec, tokenizer: Tokenizer) -> int:
    """Return the tokens for a tool in the list."""
    function = _mapping(spec.get("function"))
    line = f"{model_text(function.get('name'))}:{_sentence(function.get('description'))}"
    total = TOKENS_PER_FUNCTION + tokenizer.count(line)
    properties = _mapping(_mapping(function.get("parameters")).get("properties"))
    if properties:
        total += TOKENS_PER_PROPERTY_LIST
        for name, schema in properties.items():
            total += _property_tokens(name, _mapping(schema), tokenizer)
    return total


def _property_tokens(name: str, schema: Mapping[str, JSON], tokenizer: Tokenizer) -> int:
    """Return the tokens for a tool parameter."""
    line = f"{name}:{model_text(schema.get('type'))}:{_sentence(schema.get('description'))}"
    total = TOKENS_PER_PROPERTY + tokenizer.count(line)
    items = schema.get("enum")
    if isinstance(items, list):
        total += TOKENS_PER_ENUM
        total += sum(TOKENS_PER_ENUM_ITEM + _text_tokens(item, tokenizer) for item in items)
    return total


def _part_text(part: JSON) -> JSON:
    """Return a content part's text, or the whole part if it has no text."""
    text = part.get("text") if isinstance(part, dict) else part
    return text if isinstance(text, str) else part


def _call_texts(call: JSON) -> Iterator[str]:
    """Yield a tool call's name and arguments, or the JSON of a call in another format."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        yield json.dumps(call, ensure_ascii=False)
    else:
        yield from (model_text(function.get("name")), model_text(function.get("arguments")))


def _text_tokens(value: JSON, tokenizer: Tokenizer) -> int:
    """Return the tokens in a value as text; 0 for None."""
    return 0 if value is None else tokenizer.count(model_text(value))


def model_text(value: JSON) -> str:
    """Return a string unchanged, an empty string for None, and any other value as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _sentence(value: JSON) -> str:
    """Return a description without its final full stop."""
    return model_text(value).removesuffix(".")


def _mapping(value: JSON) -> Mapping[str, JSON]:
    """Return `value` if it is a JSON object, else an empty object."""
    return value if isinstance(value, dict) else {}


_SEPARATOR: Final = len(", ")
_COLON: Final = len(": ")
_BRACES: Final = len("{}")
_NULL: Final = len("null")


def json_size(value: JSON) -> int:
    """Return the size of `json.dumps(value)` in bytes."""
    # `json.dumps` creates an encoder for each call, which takes more time than measuring a message.
    if type(value) is str:
        return len(encode_basestring_ascii(value))
    if type(value) is dict:
        return message_size(value)
    if type(value) is list:
        return sum(json_size(item) + _SEPARATOR for item in value) or _BRACES
    return _NULL if value is None else len(json.dumps(value))


def message_size(message: Message) -> int:
    """Return the size of `json.dumps(dict(message))` in bytes."""
    size = 0
    for key, value in message.items():
        text = len(encode_basestring_ascii(value)) if type(value) is str else json_size(value)
        size += len(encode_basestring_ascii(key)) + _COLON + text + _SEPARATOR
    # The two braces replace the separator that the last item lacks.
    return size or _BRACES


def envelope_size(model: str, tools: Sequence[ToolSpec] = (), temperature: float | None = None) -> int:
    """Return the size in bytes of a request body with `"messages": []`."""
    body: dict[str, JSON] = {"model": model, "messages": []}
    if tools:
        body["tools"] = [dict(spec) for spec in tools]
    if temperature is not None:
        body["temperature"] = temperature
    return len(json.dumps(body))


def body_size(envelope: int, messages_json: int, message_count: int) -> int:
    """Return a request body's size in bytes, given `envelope_size` and the messages' total bytes and number."""
    return envelope + messages_json + _SEPARATOR * max(message_count - 1, 0)


_ESCAPE: Final = len("\\uXXXX")


class Sizes(NamedTuple):
    r"""A message's sizes, or the totals for several messages.

    `json_bytes` are the bytes that STATEK counts, without separators between messages; `escape_bytes` is how much of
    that `\uXXXX` escapes add over UTF-8. `text_bytes` and `characters` measure the texts alone, in UTF-8 bytes and in
    characters. `frame_tokens` are the tokens that the chat format adds to the texts.
    """

    json_bytes: int = 0
    escape_bytes: int = 0
    text_bytes: int = 0
    characters: int = 0
    frame_tokens: int = 0

    def plus(self, other: Sizes) -> Sizes:
        """Add two sizes."""
        return Sizes(*(mine + its for mine, its in zip(self, other, strict=True)))


class ToolSizes(NamedTuple):
    """The sizes of a request's tool definitions; `json_bytes` includes the key and escapes. All are 0 without tools."""

    json_bytes: int = 0
    escape_bytes: int = 0
    characters: int = 0
    tokens: int = 0

    @classmethod
    def of(cls, tools: Sequence[ToolSpec], tokenizer: Tokenizer) -> Self:
        """Measure a request's tool definitions."""
        if not tools:
            return cls()
        # The non-ASCII characters are in the descriptions.
        specs: JSON = [dict(spec) for spec in tools]
        readable = json.dumps(specs, ensure_ascii=False)
        return cls(
            json_bytes=len(f', "tools": {json.dumps(specs)}'),
            escape_bytes=escape_bytes(readable),
            characters=len(readable),
            tokens=tools_tokens(tools, tokenizer),
        )


class ReplySizes(NamedTuple):
    """A reply's text size in UTF-8 bytes and in characters, and the chat format's tokens for its tool calls."""

    text_bytes: int
    characters: int
    frame_tokens: int

    @classmethod
    def of(cls, texts: Sequence[str]) -> Self:
        """Measure a reply; `texts` are its text, then each tool call's name and arguments."""
        calls = (len(texts) - 1) // 2
        return cls(sum(map(utf8_size, texts)), sum(map(len, texts)), TOKENS_PER_TOOL_CALL * calls)


def message_sizes(message: Message, tokenizer: Tokenizer) -> Sizes:
    """Measure a message in any format."""
    texts = tuple(message_texts(message))
    return Sizes(
        json_bytes=message_size(message),
        escape_bytes=escape_bytes(json.dumps(dict(message), ensure_ascii=False)),
        text_bytes=sum(map(utf8_size, texts)),
        characters=sum(map(len, texts)),
        frame_tokens=format_tokens(message, tokenizer),
    )


def escape_bytes(text: str) -> int:
    r"""Return how many bytes `\uXXXX` escapes add to a string over UTF-8; an emoji needs two escapes."""
    if text.isascii():
        return 0
    plain = len(text.encode("ascii", "ignore"))
    units = len(text.encode("utf-16-le", "surrogatepass")) // 2 - plain
    return _ESCAPE * units - (utf8_size(text) - plain)


def utf8_size(text: str) -> int:
    """Return the size of `text` in UTF-8 bytes; a lone surrogate counts as three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
