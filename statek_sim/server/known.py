"""What a server remembers so that it need not work it out again. Bounded; nothing it forgets changes an answer.

Clients under test repeat themselves: the same request many times (load tests), or the same reply to many requests.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from statek_sim.metering.messages import completion_tokens, prompt_tokens
from statek_sim.metering.tokenizers import Tokenizer, tokenizer_for_model
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.wire.format import FormatName
from statek_sim.providers.wire.formats import FORMATS
from statek_sim.providers.wire.request import WireRequest

LARGEST_BODY: Final = 16_384
"""Bytes of the largest body, of a request or an answer, that is remembered."""

_MOST_REPLIES: Final = 4096
_parsed: Final = json.JSONDecoder().decode
_ID: Final = "@statek-reply-id@"


class ReadRequest:
    """A request body that was read: what it asks, and how many tokens its prompt has, counted when first needed."""

    __slots__ = ("_prompt", "asked", "turn")

    def __init__(self, asked: WireRequest) -> None:
        self.asked = asked
        self.turn = 1 + sum(message.get("role") == "assistant" for message in asked.messages)
        self._prompt: int | None = None

    def prompt_tokens(self) -> int:
        """Return the tokens of the prompt, counted with the model's tokenizer."""
        if self._prompt is None:
            asked = self.asked
            self._prompt = prompt_tokens(asked.messages, asked.tools, model_tokenizer(asked.model))
        return self._prompt

    def measured(self, request: ChatRequest, content: str) -> tuple[int, int]:
        """Return (prompt, completion) tokens as a provider with this model's tokenizer would report them."""
        return self.prompt_tokens(), completion_tokens(content, None, model_tokenizer(request.model))


@lru_cache(maxsize=256)
def model_tokenizer(model: str) -> Tokenizer:
    """Return the tokenizer that measures `model`."""
    return tokenizer_for_model(model).tokenizer


def read_request(wire: FormatName, path: str, body: bytes) -> ReadRequest:
    """Read a request body; `BadRequest` or `ValueError` for one that is wrong or no JSON."""
    return _remembered(wire, path, body) if len(body) <= LARGEST_BODY else _read(wire, path, body)


def _read(wire: FormatName, path: str, body: bytes) -> ReadRequest:
    return ReadRequest(FORMATS[wire].read_request(_parsed(body.decode()), path))


_remembered = lru_cache(maxsize=1024)(_read)


class PreparedBodies:
    """Bodies of answers that are the same but for their id, by whatever decides about the rest."""

    def __init__(self) -> None:
        self._halves: dict[tuple[object, ...], tuple[bytes, bytes]] = {}

    def body(self, key: tuple[object, ...], write: Callable[[str], bytes], reply_id: str) -> bytes:
        """Return `write(reply_id)`; `key` holds everything that the body depends on beside the id."""
        halves = self._halves.get(key)
        if halves is not None:
            return halves[0] + reply_id.encode() + halves[1]
        parts = write(_ID).split(_ID.encode())
        if len(parts) == 2 and len(parts[0]) + len(parts[1]) <= LARGEST_BODY:
            if len(self._halves) >= _MOST_REPLIES:
                self._halves.clear()
            self._halves[key] = parts[0], parts[1]
            return parts[0] + reply_id.encode() + parts[1]
        return write(reply_id)
