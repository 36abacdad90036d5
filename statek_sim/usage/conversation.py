"""A conversation that knows its own size: each message is measured once, when it is appended.

STATEK sends the whole history again with every request, so measuring each request afresh would make a long
job quadratic. Here a turn costs what its new messages cost.
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from json.encoder import encode_basestring_ascii
from typing import Final, overload

from statek_sim.usage.messages import (
    TOKENS_PER_MESSAGE,
    TOKENS_PER_TOOL_CALL,
    json_size,
    message_size,
    message_tokens,
)
from statek_sim.usage.tokenizers import SHORT_TEXT, ModelTokenizer
from statek_sim.values import JSON, Message

_EMPTY_ID: Final = len('""')
_PLAIN_FRAME: Final = message_size({"role": "", "content": ""}) - 2 * _EMPTY_ID
"""Bytes of a plain message around its two texts."""

_RESULT_FRAME: Final = message_size({"role": "", "content": "", "tool_call_id": ""}) - 3 * _EMPTY_ID
"""The same of a tool's result without its id."""

_CALL_FRAME: Final = (
    message_size(
        {
            "role": "",
            "content": "",
            "tool_calls": [{"id": "", "type": "function", "function": {"name": "", "arguments": ""}}],
        }
    )
    - 5 * _EMPTY_ID
)
"""The same of a message with one tool call without its id."""

_NULL: Final = len("null")

_CACHED: Final = 16_384
"""Messages of each shape that a meter remembers."""


class MessageMeter:
    """Measures messages with one tokenizer; share one among all jobs, which send the same messages.

    The three shapes that STATEK sends (role and content; a tool's result; one tool call) are remembered by
    their texts. Ids differ from job to job: they are left out of what is remembered, and added to it.
    """

    __slots__ = ("_call", "_plain", "_result", "model_tokenizer")

    def __init__(self, model_tokenizer: ModelTokenizer) -> None:
        self.model_tokenizer = model_tokenizer
        self._plain = functools.lru_cache(_CACHED)(self._measure_plain)
        self._result = functools.lru_cache(_CACHED)(self._measure_result)
        self._call = functools.lru_cache(_CACHED)(self._measure_call)

    def measure(self, message: Message) -> tuple[int, int]:
        """Return the message's JSON size in bytes and its prompt tokens."""
        role, content = message.get("role"), message.get("content")
        if type(role) is str and (content is None or (type(content) is str and len(content) <= SHORT_TEXT)):
            if len(message) == 2 and content is not None:
                return self._plain(role, content)
            if len(message) == 3:
                return self._measure_linked(message, role, content)
        return self._measure(message)

    def _measure_linked(self, message: Message, role: str, content: str | None) -> tuple[int, int]:
        """Measure a message of three keys; the usual third one links a tool call and its result."""
        if "content" in message:
            result_id = message.get("tool_call_id")
            if type(result_id) is str:
                size, tokens = self._result(role, content)
                return size + json_size(result_id), tokens
            call = _single_call(message.get("tool_calls"))
            if call is not None:
                call_id, name, arguments = call
                size, tokens = self._call(role, content, name, arguments)
                return size + json_size(call_id), tokens
        return self._measure(message)

    def _measure_plain(self, role: str, content: str) -> tuple[int, int]:
        """Measure `{"role": role, "content": content}`; the order of the keys does not matter.

        The same as `_measure`, without the detours for other shapes: nearly all messages are of this one.
        """
        count = self.model_tokenizer.tokenizer.count
        size = _PLAIN_FRAME + len(encode_basestring_ascii(role)) + len(encode_basestring_ascii(content))
        return size, TOKENS_PER_MESSAGE + count(role) + count(content)

    def _measure_result(self, role: str, content: str | None) -> tuple[int, int]:
        """Measure a tool's result without its id."""
        size, tokens = self._said(role, content)
        return size + _RESULT_FRAME, tokens

    def _measure_call(self, role: str, content: str | None, name: str, arguments: str) -> tuple[int, int]:
        """Measure a message with one tool call without its id."""
        count = self.model_tokenizer.tokenizer.count
        size, tokens = self._said(role, content)
        size += _CALL_FRAME + len(encode_basestring_ascii(name)) + len(encode_basestring_ascii(arguments))
        return size, tokens + TOKENS_PER_TOOL_CALL + count(name) + count(arguments)

    def _said(self, role: str, content: str | None) -> tuple[int, int]:
        """Measure what every message has: who says what, without the frame around it."""
        count = self.model_tokenizer.tokenizer.count
        size = len(encode_basestring_ascii(role))
        if content is None:
            return size + _NULL, TOKENS_PER_MESSAGE + count(role)
        return size + len(encode_basestring_ascii(content)), TOKENS_PER_MESSAGE + count(role) + count(content)

    def _measure(self, message: Message) -> tuple[int, int]:
        """Measure a message of any shape."""
        return message_size(message), message_tokens(message, self.model_tokenizer.tokenizer)


@functools.lru_cache(maxsize=8)
def shared_meter(model_tokenizer: ModelTokenizer) -> MessageMeter:
    """Return the meter of a tokenizer, the same for all runs of this process: many say the same."""
    return MessageMeter(model_tokenizer)


def _single_call(calls: JSON) -> tuple[str, str, str] | None:
    """Return id, name and arguments when `calls` is one plain call with short arguments, else None."""
    if type(calls) is not list or len(calls) != 1:
        return None
    call = calls[0]
    if type(call) is not dict or len(call) != 3 or call.get("type") != "function":
        return None
    call_id, function = call.get("id"), call.get("function")
    if type(call_id) is not str or type(function) is not dict or len(function) != 2:
        return None
    name, arguments = function.get("name"), function.get("arguments")
    if type(name) is not str or type(arguments) is not str or len(arguments) > SHORT_TEXT:
        return None
    return call_id, name, arguments


class MessageView(Sequence[Message]):
    """The first messages of a conversation, unchanged by what is appended to it later; made in O(1)."""

    __slots__ = ("_length", "_messages")

    def __init__(self, messages: list[Message], length: int) -> None:
        self._messages = messages
        self._length = length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._length)
            if step == 1:
                return tuple(self._messages[start:stop])
            return tuple(self._messages[at] for at in range(start, stop, step))
        at = index + self._length if index < 0 else index
        if not 0 <= at < self._length:
            raise IndexError(f"message {index}, expected one of {self._length}")
        return self._messages[at]

    def __iter__(self) -> Iterator[Message]:
        return islice(self._messages, self._length)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (MessageView, list, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(mine == its for mine, its in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # messages are mappings

    def __repr__(self) -> str:
        return repr(list(self))


class MeteredConversation:
    """An append-only list of messages with its running size.

    An appended message belongs to the conversation: whoever appended it must not change it any more.
    """

    __slots__ = ("_json_sums", "_messages", "_token_sums", "meter")

    def __init__(self, meter: MessageMeter, messages: Iterable[Message] = ()) -> None:
        self.meter = meter
        self._messages: list[Message] = []
        # Sums up to and including each message, so that any beginning has its size at hand.
        self._json_sums = array("q")
        self._token_sums = array("q")
        for message in messages:
            self.append(message)

    def append(self, message: Message) -> None:
        """Add a message at the end, measured."""
        size, tokens = self.meter.measure(message)
        if self._messages:
            size += self._json_sums[-1]
            tokens += self._token_sums[-1]
        self._messages.append(message)
        self._json_sums.append(size)
        self._token_sums.append(tokens)

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def messages_json(self) -> int:
        """The JSON sizes of all messages added up, in bytes, without separators: see `sizes.body_size`."""
        return self._json_sums[-1] if self._messages else 0

    @property
    def tokens(self) -> int:
        """The prompt tokens of all messages added up, without tools and the reply's priming."""
        return self._token_sums[-1] if self._messages else 0

    def view(self, n: int | None = None) -> MessageView:
        """Return the first `n` messages, all by default, as a sequence that never changes."""
        return MessageView(self._messages, len(self._messages) if n is None else self._checked(n))

    def truncated(self, n: int) -> MeteredConversation:
        """Return a conversation of the first `n` messages, measured already, that goes its own way."""
        self._checked(n)
        fork = MeteredConversation(self.meter)
        fork._messages = self._messages[:n]
        fork._json_sums = self._json_sums[:n]
        fork._token_sums = self._token_sums[:n]
        return fork

    def with_meter(self, meter: MessageMeter) -> MeteredConversation:
        """Return the same messages measured with another tokenizer, for a job that changes its model."""
        return MeteredConversation(meter, self._messages)

    def _checked(self, n: int) -> int:
        """Return `n` when the conversation has so many messages; `IndexError` otherwise."""
        if not 0 <= n <= len(self._messages):
            raise IndexError(f"the first {n} messages, expected 0 to {len(self._messages)}")
        return n
