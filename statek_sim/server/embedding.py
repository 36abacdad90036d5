"""Embedding requests for the OpenAI and Gemini APIs, and the vectors in the responses.

Unscripted vectors are derived from a hash of the text, so they are the same on every machine. Equal inputs get equal
vectors; different inputs get nearly orthogonal vectors. To test a search, script the vectors.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim.errors import BadRequest
from statek_sim.providers.wire.parameters import Refusal, refused_parameters
from statek_sim.providers.wire.reply import compact
from statek_sim.providers.wire.request import (
    FormatName,
    WireRequest,
    body_object,
    limit_of,
    member,
    number_or_none,
    objects,
    text_in,
)
from statek_sim.server.parsed_request import ParsedRequest, json_of
from statek_sim.server.refusals import wrong_parts
from statek_sim.usage.tokenizers import bare_model_name, tokenizer_for_model
from statek_sim.usage.vocabularies import VOCABULARIES, load_encoding
from statek_sim.values import JSON

Vector = tuple[float, ...]

_SIZES: Final[Mapping[str, int]] = {
    "text-embedding-3-large": 3072,
    "gemini-embedding-001": 3072,
    "text-embedding-004": 768,
    "embedding-001": 768,
}
_SIZE: Final = 1536
"""The default number of dimensions for unlisted models."""
_LARGEST: Final = 8192
"""The maximum number of dimensions that a request may ask for."""
_MOST_TEXTS: Final = 2048
_METHOD: Final = re.compile(r"(?:^|/)(?P<model>[^/:]+):(?P<method>embedContent|batchEmbedContents)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingRequest:
    """The strings to embed, and the number of dimensions per vector (None: the model's default).

    `packed` requests OpenAI's base64 encoding; `batch` requests a list of vectors from Gemini.
    """

    texts: tuple[str, ...]
    sizes: tuple[int | None, ...]
    packed: bool = False
    batch: bool = False


def read_embeddings(wire: FormatName, path: str, body: bytes) -> tuple[ParsedRequest, EmbeddingRequest]:
    """Parse an embedding request; raises `BadRequest` if it is invalid, or `ValueError` if it is not JSON.

    The parsed request contains one user message per input string, so that conditions and token counts apply to the
    input.
    """
    members = body_object(json_of(body))
    model, refused, wanted = _gemini(members, path) if wire == "gemini" else _openai(members)
    for number, text in enumerate(wanted.texts, 1):
        if not text and not refused:
            raise BadRequest(f"text {number} is empty; expected text to embed", parameter="input")
    messages = tuple({"role": "user", "content": text} for text in wanted.texts)
    return ParsedRequest(WireRequest(model=model, messages=messages), len(body), refused), wanted


def _openai(body: dict[str, JSON]) -> tuple[str, tuple[Refusal, ...], EmbeddingRequest]:
    model = member(body, "model", str, where="")
    texts = _texts(body.get("input"), model)
    sizes = (_size(body, "dimensions"),) * len(texts)
    packed = body.get("encoding_format") == "base64"
    return (
        model,
        refused_parameters("embeddings", body),
        EmbeddingRequest(texts=texts, sizes=sizes, packed=packed),
    )


def _texts(given: JSON, model: str) -> tuple[str, ...]:
    """Return the strings in `input`, which is a string, a list of tokens, or a list of strings or token lists."""
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list) or not 1 <= len(given) <= _MOST_TEXTS:
        shown = str(given)[:60]
        raise BadRequest(
            f"input: expected a string or a list of 1 to {_MOST_TEXTS} items, got {shown}", parameter="input"
        )
    listed = [given] if all(isinstance(token, int) for token in given) else given
    return tuple(text if isinstance(text, str) else _decoded(text, model) for text in listed)


def _decoded(tokens: JSON, model: str) -> str:
    """Decode tokens with the model's vocabulary; LangChain sends tokens instead of strings."""
    name = tokenizer_for_model(model).name
    name = name if name in VOCABULARIES else "cl100k_base"
    try:
        return load_encoding(name).decode(tokens)  # type: ignore[arg-type]  # anything else is refused below
    except (KeyError, OverflowError, TypeError, ValueError):
        shown = str(tokens)[:60]
        raise BadRequest(
            f"input: expected strings or lists of {name} tokens, got {shown}", parameter="input"
        ) from None


def _gemini(body: dict[str, JSON], path: str) -> tuple[str, tuple[Refusal, ...], EmbeddingRequest]:
    named = _METHOD.search(path)
    if named is None:
        raise BadRequest(f"expected a URL that ends in MODEL:embedContent, got {path!r}")
    batch = named["method"] == "batchEmbedContents"
    requests = objects(body.get("requests"), where="requests") if batch else [body]
    refused = list(refused_parameters("gemini_batch", body)) if batch else []
    texts: list[str] = []
    sizes: list[int | None] = []
    for number, request in enumerate(requests):
        where = f"requests[{number}]." if batch else ""
        refused += refused_parameters("gemini_embedding", request, within=where)
        config, content = request.get("embedContentConfig"), request.get("content")
        options = {**request, **config} if isinstance(config, dict) else request
        given = content.get("parts", []) if isinstance(content, dict) else []
        parts: list[JSON] = [*objects(given, where=f"{where}content.parts")]
        refused += wrong_parts(parts, f"{where}content.parts", f"{where}content")
        texts.append(text_in(parts))
        sizes.append(_size(options, "outputDimensionality"))
    wanted = EmbeddingRequest(texts=tuple(texts), sizes=tuple(sizes), batch=batch)
    return named["model"], tuple(refused), wanted


def _size(body: Mapping[str, JSON], key: str) -> int | None:
    size = limit_of(number_or_none(body, key), where=key)
    if size is not None and size > _LARGEST:
        raise BadRequest(f"{key}: expected at most {_LARGEST}, got {size}", parameter=key)
    return size


def joined(texts: Sequence[str]) -> str:
    """Join a request's input strings with newlines, so that recordings are matched by all of them."""
    return "\n".join(texts)


def vector_of(text: str, model: str, size: int | None) -> Vector:
    """Compute the unit vector for a string, with `size` dimensions (default: the model's)."""
    size = size or _SIZES.get(bare_model_name(model), _SIZE)
    drawn = hashlib.shake_128(text.encode("utf-8", "surrogatepass")).digest(size)
    # From -255 to 255 in steps of 2, so that no number is 0 and every vector has a length.
    numbers = [2 * byte - 255 for byte in drawn]
    length = math.sqrt(sum(number * number for number in numbers))
    return tuple(number / length for number in numbers)


def embeddings_body(
    wire: FormatName,
    wanted: EmbeddingRequest,
    vectors: Sequence[Vector],
    model: str,
    usage: Mapping[str, JSON],
) -> bytes:
    """Return the response body; only the OpenAI format contains `usage`."""
    if wire == "gemini":
        values: list[JSON] = [{"values": list(vector)} for vector in vectors]
        return compact({"embeddings": values} if wanted.batch else {"embedding": values[0]}).encode()
    data: list[JSON] = [
        {"object": "embedding", "index": index, "embedding": _written(vector, packed=wanted.packed)}
        for index, vector in enumerate(vectors)
    ]
    return compact({"object": "list", "data": data, "model": model, **usage}).encode()


def _written(vector: Vector, *, packed: bool) -> JSON:
    """Return a vector as a list of numbers or, if `packed`, as base64-encoded little-endian 32-bit floats."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode() if packed else list(vector)
