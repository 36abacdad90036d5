"""Parsed requests and their prompt token counts.

Small requests are cached, because load tests repeat them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final

from statek_sim.errors import BadRequest
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.wire import gemini
from statek_sim.providers.wire.format import FORMATS
from statek_sim.providers.wire.parameters import Refusal
from statek_sim.providers.wire.request import FormatName, WireRequest, text_in
from statek_sim.server.refusals import out_of_turn, refusals
from statek_sim.usage.messages import completion_tokens, message_texts, model_text, prompt_tokens
from statek_sim.usage.tokenizers import Tokenizer, tokenizer_for_model
from statek_sim.values import JSON, Message

LARGEST_COUNTED: Final = 262_144
"""The maximum size, in bytes, for counting tokens; in larger requests, 4 characters are taken as one token."""

IMAGE_TOKENS: Final = 85
"""The tokens per non-text message part, as OpenAI counts a low-detail image."""

_LARGEST_REMEMBERED: Final = 16_384
_DEEPEST: Final = 200
_MOST_REFUSALS: Final = 100
"""The maximum number of refusals evaluated per request."""


def _no_json(constant: str) -> JSON:
    raise ValueError(f"{constant} is not JSON")


_parsed: Final = json.JSONDecoder(parse_constant=_no_json).decode


class ParsedRequest:
    """The content of a request body (`request`), the turn, and the prompt token count, which is computed on first use.

    `estimated` is whether the body is too large for its tokens to be counted. `refused` are the provider's reasons for
    rejecting the request.
    """

    __slots__ = ("_prompt", "estimated", "refused", "request", "turn")

    def __init__(self, request: WireRequest, size: int = 0, refused: Iterable[Refusal] = ()) -> None:
        self.request = request
        self.refused = tuple(islice(refused, _MOST_REFUSALS))
        self.estimated = size > LARGEST_COUNTED
        self.turn = 1 + sum(message.get("role") == "assistant" for message in request.messages)
        self._prompt: int | None = None

    def prompt_tokens(self) -> int:
        """Return the prompt's token count, exact or estimated, using the model's tokenizer."""
        if self._prompt is None:
            request = self.request
            messages, images = _texts_alone(request.messages)
            if self.estimated:
                texts = [text for message in messages for text in message_texts(message)]
                texts += [model_text(dict(tool)) for tool in request.tools]
                self._prompt = self.text_tokens(texts)
            else:
                self._prompt = prompt_tokens(messages, request.tools, model_tokenizer(request.model))
            self._prompt += IMAGE_TOKENS * images
        return self._prompt

    def text_tokens(self, texts: Sequence[str]) -> int:
        """Return the total token count for the strings `texts`, exact or estimated, using the model's tokenizer."""
        if self.estimated:
            return sum(map(len, texts)) // 4
        return sum(map(model_tokenizer(self.request.model).count, texts))

    def measured(self, request: ChatRequest, content: str) -> tuple[int, int]:
        """Return the token counts for the prompt and the completion `content`, using the model's tokenizer."""
        return self.prompt_tokens(), completion_tokens(content, None, model_tokenizer(request.model))


@lru_cache(maxsize=256)
def model_tokenizer(model: str) -> Tokenizer:
    """Return the tokenizer used to count tokens for `model`."""
    return tokenizer_for_model(model).tokenizer


def read_request(wire: FormatName, path: str, body: bytes) -> ParsedRequest:
    """Parse a request body; raises `BadRequest` if it is invalid, or `ValueError` if it is not JSON."""
    return (_remembered if len(body) <= _LARGEST_REMEMBERED else _read)(wire, path, body)


def _read(wire: FormatName, path: str, body: bytes) -> ParsedRequest:
    given = json_of(body)
    if wire == "gemini":
        given = gemini.documented(given)
    request = FORMATS[wire].read_request(given, path)
    refused = [*request.refused, *islice(refusals(wire, given, request.model), _MOST_REFUSALS)]
    if request.previous is None:
        # Checked here and not in the format, because STATEK sends such requests.
        if not _conversation(wire, request.messages, given):
            where = _MESSAGES.get(wire, "messages")
            raise BadRequest(f"{where}: expected at least one non-empty message", parameter=where)
        refused += out_of_turn(request.messages, wire)
    return ParsedRequest(request, len(body), refused)


_remembered: Final = lru_cache(maxsize=1024)(_read)

_MESSAGES: Final[dict[FormatName, str]] = {"gemini": "contents", "responses": "input"}


def _conversation(wire: FormatName, messages: Sequence[Message], given: JSON) -> object:
    """Return a request's messages, without a separate system prompt; falsy if there are none."""
    if wire == "responses":
        return not isinstance(given, dict) or given.get("input") != []
    beside = wire in ("anthropic", "gemini") and messages and messages[0].get("role") == "system"
    return messages[1:] if beside else messages


def json_of(body: bytes) -> JSON:
    """Parse a JSON body; raises `ValueError` if it is not JSON or is nested more than 200 levels deep."""
    try:
        value: JSON = _parsed(body.decode())
    except RecursionError:
        value = None
    else:
        if body.count(b"[") + body.count(b"{") <= _DEEPEST or _is_shallow(value, _DEEPEST):
            return value
    raise ValueError(f"the body is nested more than {_DEEPEST} levels deep")


def _is_shallow(value: JSON, left: int) -> bool:
    """Return whether a value has at most `left` levels."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return left > 0 and all(_is_shallow(one, left - 1) for one in inner if isinstance(one, dict | list))


def _texts_alone(messages: Sequence[Message]) -> tuple[Sequence[Message], int]:
    """Return the messages with text parts only, and the number of other parts."""
    images = 0
    written: list[Message] = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            images += sum(not text_in([part]) for part in content)
            written.append({**message, "content": text_in(content)})
        else:
            written.append(message)
    return written, images
