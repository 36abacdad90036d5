"""A conversation with its running size.

STATEK sends the whole history with every request, so measuring every request would take quadratic time. Instead, each
message is measured once, when it is appended.
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import overload

from statek_sim.usage.messages import (
    message_size,
    message_tokens,
)
from statek_sim.usage.tokenizers import ModelTokenizer
from statek_sim.values import Message


class MessageMeter:
    """Measures messages in bytes and, with one tokenizer, in tokens."""

    __slots__ = ("model_tokenizer",)

    def __init__(self, model_tokenizer: ModelTokenizer) -> None:
        self.model_tokenizer = model_tokenizer

    def measure(self, message: Message) -> tuple[int, int]:
        """Return a message's JSON size in bytes and its prompt tokens."""
        return message_size(message), message_tokens(message, self.model_tokenizer.tokenizer)


@functools.lru_cache(maxsize=8)
def shared_meter(model_tokenizer: ModelTokenizer) -> MessageMeter:
    """Return a tokenizer's meter, which all runs in this process share."""
    return MessageMeter(model_tokenizer)


class MessageView(Sequence[Message]):
    """An immutable view of a conversation's first messages, created in constant time."""

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
    """An append-only list of messages with its running size; do not change a message after appending it."""

    __slots__ = ("_json_sums", "_messages", "_token_sums", "meter")

    def __init__(self, meter: MessageMeter, messages: Iterable[Message] = ()) -> None:
        self.meter = meter
        self._messages: list[Message] = []
        # Sums up to and including each message, so that the size of any prefix is available.
        self._json_sums = array("q")
        self._token_sums = array("q")
        for message in messages:
            self.append(message)

    def append(self, message: Message) -> None:
        """Measure a message and append it."""
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
        """The total JSON size of all messages in bytes, without separators (see `messages.body_size`)."""
        return self._json_sums[-1] if self._messages else 0

    @property
    def tokens(self) -> int:
        """The prompt tokens of all messages, without tools and reply priming."""
        return self._token_sums[-1] if self._messages else 0

    def view(self, n: int | None = None) -> MessageView:
        """Return an immutable view of the first `n` messages, by default all messages."""
        return MessageView(self._messages, len(self._messages) if n is None else self._checked(n))

    def truncated(self, n: int) -> MeteredConversation:
        """Return an independent conversation with the first `n` messages, without remeasuring them."""
        self._checked(n)
        fork = MeteredConversation(self.meter)
        fork._messages = self._messages[:n]
        fork._json_sums = self._json_sums[:n]
        fork._token_sums = self._token_sums[:n]
        return fork

    def with_meter(self, meter: MessageMeter) -> MeteredConversation:
        """Return a conversation with the same messages, measured with another tokenizer."""
        return MeteredConversation(meter, self._messages)

    def _checked(self, n: int) -> int:
        """Return `n`; raises `IndexError` unless the conversation has at least `n` messages."""
        if not 0 <= n <= len(self._messages):
            raise IndexError(f"the first {n} messages, expected 0 to {len(self._messages)}")
        return n
