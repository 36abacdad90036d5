"""Bytes of a request as STATEK meters them, and tokens of a request and its answer, chat format included.

STATEK counts `len(json.dumps(body).encode())` with Python's defaults (behaviour 5): non-ASCII characters escaped, `",
"` and `": "` as separators. That differs from the bytes on the wire, but the harness limits it. The size is additive: a
body is an envelope (everything but the messages) plus the messages and their separators, so a turn adds only its new
messages, regardless of the length of the conversation. A tokenizer reads texts; the escapes of their non-ASCII
characters and the JSON around them are only on the wire, and the model sees a chat format instead.

Providers render messages and tools into the prompt in a form they do not publish. The rules here are from OpenAI's
cookbook, "How to count tokens with tiktoken", which agree with the `prompt_tokens` that the API reported for its
examples: 124 for a conversation with o200k_base, 129 with cl100k_base, 101 with a tool.

- A message costs 3 tokens plus its role, its content and its name; a name costs 1 more.
- The answer is primed with 3 tokens, once per request (`REPLY_PRIMING`).
- A tool call in an assistant message costs 3 tokens plus its function's name and its arguments. The cookbook
  gives no rule; a call is rendered as an addressed message, so it counts like one. Ids (`id`,
  `tool_call_id`) cost nothing: they pair calls with results on the wire and are not known to reach the model.
  For one question, one call and its result users report 40 prompt tokens from the API; this counts 39.
- Tools: see `tools_tokens`.

For models of other families, all of this is an approximation, which the label `proxy` of the tokenizer shows.
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
"""Tokens that open the answer; part of every prompt, once."""

TOKENS_PER_FUNCTION: Final = 7
TOKENS_PER_PROPERTY_LIST: Final = 3
TOKENS_PER_PROPERTY: Final = 3
TOKENS_PER_ENUM: Final = -3
TOKENS_PER_ENUM_ITEM: Final = 3
TOKENS_PER_TOOL_LIST: Final = 12


def message_tokens(message: Message, tokenizer: Tokenizer) -> int:
    """Return the prompt tokens of one message of any role."""
    count = tokenizer.count
    total = TOKENS_PER_MESSAGE + _text_tokens(message.get("role"), tokenizer)
    content = message.get("content")
    total += count(content) if isinstance(content, str) else _content_tokens(content, tokenizer)
    name = message.get("name")
    if isinstance(name, str):
        total += TOKENS_PER_NAME + count(name)
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        total += sum(tool_call_tokens(call, tokenizer) for call in calls)
    return total


def message_texts(message: Message) -> Iterator[str]:
    """Yield the texts of a message counted by `message_tokens`, except its role."""
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
    """Return the tokens that `message_tokens` adds to the message's texts: the frame of a message and of its calls."""
    total = TOKENS_PER_MESSAGE + _text_tokens(message.get("role"), tokenizer)
    if isinstance(message.get("name"), str):
        total += TOKENS_PER_NAME
    calls = message.get("tool_calls")
    return total + (TOKENS_PER_TOOL_CALL * len(calls) if isinstance(calls, list) else 0)


def prompt_tokens(messages: Iterable[Message], tools: Sequence[ToolSpec], tokenizer: Tokenizer) -> int:
    """Return the prompt tokens of a whole request: messages, tools and the reply's priming."""
    body = sum(message_tokens(message, tokenizer) for message in messages)
    return body + tools_tokens(tools, tokenizer) + REPLY_PRIMING


def completion_tokens(text: str | None, tool_calls: Sequence[JSON] | None, tokenizer: Tokenizer) -> int:
    """Return the tokens of an answer: its text, and its tool calls in the OpenAI wire shape.

    Hidden reasoning cannot be measured and is not included.
    """
    total = tokenizer.count(text) if text else 0
    return total + sum(tool_call_tokens(call, tokenizer) for call in tool_calls) if tool_calls else total


def tool_call_tokens(call: JSON, tokenizer: Tokenizer) -> int:
    """Return the tokens of one tool call `{"id", "type", "function": {"name", "arguments"}}`."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return TOKENS_PER_TOOL_CALL + tokenizer.count(json.dumps(call, ensure_ascii=False))
    name, arguments = function.get("name"), function.get("arguments")
    return TOKENS_PER_TOOL_CALL + _text_tokens(name, tokenizer) + _text_tokens(arguments, tokenizer)


def tools_tokens(specs: Sequence[ToolSpec], tokenizer: Tokenizer) -> int:
    """Return the prompt tokens of a request's tools; 0 without any.

    The cookbook's fit for gpt-4o: each function is 7 tokens and `name:description`; its properties, if it has
    any, are 3 tokens and, each, 3 tokens and `name:type:description`; an enum is its values and 3 tokens
    each, less 3; the list as a whole is 12. One final full stop is dropped from a description. Models before
    gpt-4o take 10 per function instead of 7, a difference this count leaves out.
    """
    if not specs:
        return 0
    return TOKENS_PER_TOOL_LIST + sum(_function_tokens(spec, tokenizer) for spec in specs)


def _function_tokens(spec: ToolSpec, tokenizer: Tokenizer) -> int:
    """Return the tokens of one tool, without the constant part of the list."""
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
    """Return the tokens of one parameter of a tool."""
    line = f"{name}:{model_text(schema.get('type'))}:{_sentence(schema.get('description'))}"
    total = TOKENS_PER_PROPERTY + tokenizer.count(line)
    items = schema.get("enum")
    if isinstance(items, list):
        total += TOKENS_PER_ENUM
        total += sum(TOKENS_PER_ENUM_ITEM + _text_tokens(item, tokenizer) for item in items)
    return total


def _content_tokens(content: JSON, tokenizer: Tokenizer) -> int:
    """Return the tokens of a content that is not a string: None, or a list of parts.

    Only the text counts of a text part. Any other part counts as its JSON, for lack of a better measure for images and
    files.
    """
    if not isinstance(content, list):
        return _text_tokens(content, tokenizer)
    return sum(_text_tokens(_part_text(part), tokenizer) for part in content)


def _part_text(part: JSON) -> JSON:
    """Return the text of a content part; a part without a text is returned whole."""
    text = part.get("text") if isinstance(part, dict) else part
    return text if isinstance(text, str) else part


def _call_texts(call: JSON) -> Iterator[str]:
    """Yield the texts of a tool call: its name and arguments; a call of another shape is its JSON."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        yield json.dumps(call, ensure_ascii=False)
    else:
        yield from (model_text(function.get("name")), model_text(function.get("arguments")))


def _text_tokens(value: JSON, tokenizer: Tokenizer) -> int:
    """Return the tokens of a value as the model would read it; 0 for None."""
    return 0 if value is None else tokenizer.count(model_text(value))


def model_text(value: JSON) -> str:
    """Return a string unchanged, None as an empty text, anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _sentence(value: JSON) -> str:
    """Return a description without its final full stop."""
    return model_text(value).removesuffix(".")


def _mapping(value: JSON) -> Mapping[str, JSON]:
    """Return `value` if it is an object, else an empty one: a script may send tools of any shape."""
    return value if isinstance(value, dict) else {}


_SEPARATOR: Final = len(", ")
_COLON: Final = len(": ")
_BRACES: Final = len("{}")
_NULL: Final = len("null")


def json_size(value: JSON) -> int:
    """Return the bytes of `json.dumps(value)`."""
    # Exact types, and no `json.dumps` for containers: it creates an encoder for each call, which costs more than
    # measuring a message.
    if type(value) is str:
        return len(encode_basestring_ascii(value))
    if type(value) is dict:
        return message_size(value)
    if type(value) is list:
        return sum(json_size(item) + _SEPARATOR for item in value) or _BRACES
    return _NULL if value is None else len(json.dumps(value))


def message_size(message: Message) -> int:
    """Return the bytes of `json.dumps(message)`, for any kind of mapping."""
    size = 0
    for key, value in message.items():
        text = len(encode_basestring_ascii(value)) if type(value) is str else json_size(value)
        size += len(encode_basestring_ascii(key)) + _COLON + text + _SEPARATOR
    # The two braces replace the separator that the last item lacks.
    return size or _BRACES


def envelope_size(model: str, tools: Sequence[ToolSpec] = (), temperature: float | None = None) -> int:
    """Return the bytes of a request body without messages: `"messages": []` is included.

    It is equal for all turns with this model, these tools and this temperature.
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
    r"""The sizes of one message, or the sum of several.

    `json_bytes` as STATEK meters them, without separators between messages; `escape_bytes` of them are the excess of
    `\uXXXX` over UTF-8. `text_bytes` are the texts in UTF-8, `characters` the same texts in characters, `frame_tokens`
    the chat format's addition to the texts' tokens.
    """

    json_bytes: int = 0
    escape_bytes: int = 0
    text_bytes: int = 0
    characters: int = 0
    frame_tokens: int = 0

    def plus(self, other: Sizes) -> Sizes:
        """Return the sum."""
        return Sizes(*(mine + its for mine, its in zip(self, other, strict=True)))


class ToolSizes(NamedTuple):
    """The tool definitions of one request: `json_bytes` include their key and escapes; all 0 without tools."""

    json_bytes: int = 0
    escape_bytes: int = 0
    characters: int = 0
    tokens: int = 0

    @classmethod
    def of(cls, tools: Sequence[ToolSpec], tokenizer: Tokenizer) -> Self:
        """Measure a request's tool definitions."""
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
    """The sizes of a reply: its texts in UTF-8 and in characters, and the chat format's addition for tool calls."""

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
    r"""Return the excess bytes of `\uXXXX` escapes over UTF-8; one escape per UTF-16 unit, two for an emoji."""
    if text.isascii():
        return 0
    plain = len(text.encode("ascii", "ignore"))
    units = len(text.encode("utf-16-le", "surrogatepass")) // 2 - plain
    return _ESCAPE * units - (utf8_size(text) - plain)


def utf8_size(text: str) -> int:
    """Return the bytes of `text` in UTF-8; a lone surrogate, which UTF-8 cannot encode, counts three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
