"""Requests as they are read, with the tokens of their prompts, and bodies of answers that differ in their id alone.

Clients under test repeat themselves: the same request many times (load tests), or the same reply to many requests. So
small requests and bodies are remembered; that is bounded, and nothing that is forgotten changes an answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Final

from statek_sim.errors import BadRequest
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.wire import gemini
from statek_sim.providers.wire.format import FORMATS
from statek_sim.providers.wire.request import FormatName, WireRequest, text_in
from statek_sim.server.message_validation import wrong_contents
from statek_sim.server.refusals import Refusal, refusals
from statek_sim.usage.messages import (
    REPLY_PRIMING,
    completion_tokens,
    format_tokens,
    message_texts,
    model_text,
    prompt_tokens,
)
from statek_sim.usage.tokenizers import Tokenizer, tokenizer_for_model
from statek_sim.values import JSON, Message, ToolSpec

LARGEST_BODY: Final = 16_384
"""Bytes of the largest body, of a request or an answer, that is remembered."""

LARGEST_COUNTED: Final = 262_144
"""Bytes of the largest request whose tokens are counted; those of a larger one are estimated from samples of it."""

IMAGE_TOKENS: Final = 85
"""What a part of a message that is no text counts as: an image in OpenAI's low detail. Its size is not looked at."""

_SAMPLES: Final = 64
_SAMPLE_SIZE: Final = 1024
_DEEPEST: Final = 200
_MOST_REPLIES: Final = 4096
_MOST_WRONG: Final = 100
"""Wrong parts of one request that are told apart: some may be taken without heed, and a body may have millions."""


def _no_json(constant: str) -> JSON:
    raise ValueError(f"{constant} is no JSON")


_parsed: Final = json.JSONDecoder(parse_constant=_no_json).decode
_ID: Final = "@statek-reply-id@"


class ParsedRequest:
    """A request body that was read: what it asks, and how many tokens its prompt has, counted when first needed.

    `estimated`: the body is so large that its tokens are estimated, from samples that are the same every time.
    `refused`: what the provider would refuse in it.
    """

    __slots__ = ("_prompt", "asked", "estimated", "refused", "size", "turn")

    def __init__(self, request: WireRequest, size: int = 0, refused: Sequence[Refusal] = ()) -> None:
        self.asked = request
        self.refused = refused
        self.size = size
        self.estimated = size > LARGEST_COUNTED
        self.turn = 1 + sum(message.get("role") == "assistant" for message in request.messages)
        self._prompt: int | None = None

    def prompt_tokens(self) -> int:
        """Return the tokens of the prompt, counted or estimated with the model's tokenizer."""
        if self._prompt is None:
            request, tokenizer = self.asked, model_tokenizer(self.asked.model)
            messages, images = _texts_alone(request.messages)
            count = _estimated if self.estimated else prompt_tokens
            self._prompt = count(messages, request.tools, tokenizer) + IMAGE_TOKENS * images
        return self._prompt

    def text_tokens(self, texts: Sequence[str]) -> int:
        """Return the tokens of some texts; of a large request they are estimated from samples of all together."""
        tokenizer = model_tokenizer(self.asked.model)
        return _sampled(texts, tokenizer) if self.estimated else sum(map(tokenizer.count, texts))

    def measured(self, request: ChatRequest, content: str) -> tuple[int, int]:
        """Return (prompt, completion) tokens as a provider with this model's tokenizer would report them."""
        return self.prompt_tokens(), completion_tokens(content, None, model_tokenizer(request.model))


@lru_cache(maxsize=256)
def model_tokenizer(model: str) -> Tokenizer:
    """Return the tokenizer that measures `model`."""
    return tokenizer_for_model(model).tokenizer


def read_request(wire: FormatName, path: str, body: bytes) -> ParsedRequest:
    """Read a request body; `BadRequest` or `ValueError` for one that is wrong or no JSON."""
    return _remembered(wire, path, body) if len(body) <= LARGEST_BODY else _read(wire, path, body)


def _read(wire: FormatName, path: str, body: bytes) -> ParsedRequest:
    given = json_of(body)
    if wire == "gemini":
        given = gemini.documented(given)
    request = FORMATS[wire].read_request(given, path)
    wrong = tuple(islice(wrong_contents(wire, given), _MOST_WRONG))
    if wrong:
        request = replace(request, wrong=(*request.wrong, *wrong))
    # Here and not in the format: STATEK sends such requests, and its scenarios go on after them.
    if request.previous is None and not _conversation(wire, request.messages, given):
        where = _MESSAGES.get(wire, "messages")
        raise BadRequest(f"{where}: expected one message at least, with something in it", parameter=where)
    refused = tuple(islice(refusals(wire, given, request.model), _MOST_WRONG))
    return ParsedRequest(request, len(body), refused)


_MESSAGES: Final[dict[FormatName, str]] = {"gemini": "contents", "responses": "input"}


def _conversation(wire: FormatName, messages: Sequence[Message], given: JSON) -> object:
    """Return what of a request a provider calls its messages: where it has the prompt elsewhere, without that."""
    if wire == "responses":
        return not isinstance(given, dict) or given.get("input") != []
    beside = wire in ("anthropic", "gemini") and messages and messages[0].get("role") == "system"
    return messages[1:] if beside else messages


def json_of(body: bytes) -> JSON:
    """Return what a body says; `ValueError` for one that is no JSON, or deeper than any request is."""
    try:
        value: JSON = _parsed(body.decode())
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if _opened(body) > _DEEPEST:
        _check_depth(value)
    return value


def _opened(body: bytes) -> int:
    return body.count(b"[") + body.count(b"{")


_TOO_DEEP: Final = f"the body is nested more than {_DEEPEST} deep"


def _check_depth(value: JSON) -> None:
    """Refuse what code that goes down a value with its own calls could not take, in any version of Python."""
    level: list[JSON] = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (
                outer.values() if isinstance(outer, dict) else outer if isinstance(outer, list) else ()
            )
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise ValueError(_TOO_DEEP)


def _texts_alone(messages: Sequence[Message]) -> tuple[Sequence[Message], int]:
    """Return the messages with their texts for contents, and how many parts of them are no text."""
    for message in messages:
        if type(message.get("content")) is list:
            break
    else:
        return messages, 0
    images = 0
    written: list[Message] = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            images += sum(not isinstance(_text(part), str) for part in content)
            written.append({**message, "content": text_in(content)})
        else:
            written.append(message)
    return written, images


def _text(part: JSON) -> JSON:
    return part.get("text") if isinstance(part, dict) else part


def _estimated(messages: Sequence[Message], tools: Sequence[ToolSpec], tokenizer: Tokenizer) -> int:
    """Return about what `prompt_tokens` does: the frames counted, the texts and tools sampled."""
    texts = [text for message in messages for text in message_texts(message)]
    texts += [model_text(dict(tool)) for tool in tools]
    frames = sum(format_tokens(message, tokenizer) for message in messages)
    return frames + _sampled(texts, tokenizer) + REPLY_PRIMING


def _sampled(texts: Sequence[str], tokenizer: Tokenizer) -> int:
    """Return about how many tokens the texts have, from pieces of them at even distances."""
    whole = "\n".join(texts)
    if len(whole) <= _SAMPLES * _SAMPLE_SIZE:
        return tokenizer.count(whole)
    step = (len(whole) - _SAMPLE_SIZE) // (_SAMPLES - 1)
    found = sum(tokenizer.count(whole[at * step : at * step + _SAMPLE_SIZE]) for at in range(_SAMPLES))
    return found * len(whole) // (_SAMPLES * _SAMPLE_SIZE)


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
