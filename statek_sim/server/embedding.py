"""Embeddings as OpenAI and Gemini serve them: read the request, make the vectors, write the answer.

A vector that no script says is drawn from a hash of the text, the same on every machine. It means nothing: equal texts
have equal vectors, and all others are about at right angles. A search under test scripts its vectors.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal

from statek_sim.errors import BadRequest
from statek_sim.providers.wire.encoding import compact
from statek_sim.providers.wire.parameters import EMBEDDINGS, GEMINI_BATCH, GEMINI_EMBEDDING
from statek_sim.providers.wire.request import (
    FormatName,
    WireRequest,
    limit_of,
    member,
    number_or_none,
    objects,
    text_in,
)
from statek_sim.server.message_validation import wrong_parts
from statek_sim.server.parsed_request import LARGEST_BODY, ParsedRequest, json_of
from statek_sim.usage.tokenizers import VOCABULARIES, bare_model_name, load_encoding, tokenizer_for_model
from statek_sim.values import JSON

Vector = tuple[float, ...]

_SIZES: Final[Mapping[str, int]] = {
    "text-embedding-3-large": 3072,
    "text-embedding-3-small": 1536,
    "text-embedding-ada-002": 1536,
    "gemini-embedding-001": 3072,
    "text-embedding-004": 768,
    "embedding-001": 768,
}
_SIZE: Final = 1536
"""Numbers in a vector of a model that is not listed, unless the request says how many."""
_LARGEST: Final = 8192
"""Numbers in the longest vector of a model that is not listed."""
_ONE_SIZE: Final = frozenset({"text-embedding-ada-002", "embedding-001"})
"""Models that make vectors of one size, and refuse to be asked for another."""
_MOST_TEXTS: Final = 2048
# Gemini: "BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch".
_LARGEST_BATCH: Final = 100
_METHOD: Final = re.compile(r"(?:^|/)(?P<model>[^/:]+):(?P<method>embedContent|batchEmbedContents)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingRequest:
    """The texts whose vectors are wanted, and the numbers in each vector. `shape` is how the answer is written."""

    texts: tuple[str, ...]
    sizes: tuple[int | None, ...]
    shape: Literal["floats", "base64", "one", "batch"]


def read_embeddings(wire: FormatName, path: str, body: bytes) -> tuple[ParsedRequest, EmbeddingRequest]:
    """Read a request; `BadRequest` or `ValueError` for one that is wrong or no JSON.

    What is read has a user message per text, so that conditions and counts see the texts.
    """
    members = json_of(body)
    if not isinstance(members, dict):
        raise BadRequest(f"the body: expected an object, got {members!r}")
    request, wanted = _gemini(members, path) if wire == "gemini" else _openai(members)
    for number, text in enumerate(wanted.texts):
        if not text:
            raise BadRequest(f"text {number + 1} is empty: nothing to embed", parameter="input")
    messages = tuple({"role": "user", "content": text} for text in wanted.texts)
    return ParsedRequest(replace(request, messages=messages), len(body)), wanted


def _openai(body: dict[str, JSON]) -> tuple[WireRequest, EmbeddingRequest]:
    model = member(body, "model", str, where="")
    encoding = body.get("encoding_format") or "float"
    if encoding not in ("float", "base64"):
        raise BadRequest(
            f"encoding_format: expected float or base64, got {encoding!r}", parameter="encoding_format"
        )
    texts = _texts(body.get("input"), model)
    size = _size(number_or_none(body, "dimensions"), "dimensions", model)
    wanted = EmbeddingRequest(
        texts=texts, sizes=(size,) * len(texts), shape="base64" if encoding == "base64" else "floats"
    )
    unheeded, wrong = EMBEDDINGS.unheeded(body), EMBEDDINGS.wrong(body)
    return WireRequest(model=model, messages=(), unheeded=unheeded, wrong=wrong), wanted


def _texts(given: JSON, model: str) -> tuple[str, ...]:
    """Return the texts of `input`: a text, tokens, or a list of either."""
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list) or not given or len(given) > _MOST_TEXTS:
        raise BadRequest(
            f"input: expected a text or a list of 1 to {_MOST_TEXTS}, got {_short(given)}", parameter="input"
        )
    if all(isinstance(token, int) for token in given):
        return (_decoded(given, model),)
    return tuple(text if isinstance(text, str) else _decoded(text, model) for text in given)


def _decoded(tokens: JSON, model: str) -> str:
    """Return the text that tokens of the model's vocabulary say."""
    if not isinstance(tokens, list) or not all(isinstance(token, int) for token in tokens):
        raise BadRequest(f"input: expected texts or lists of tokens, got {_short(tokens)}", parameter="input")
    name = tokenizer_for_model(model).name
    name = name if name in VOCABULARIES else "cl100k_base"
    try:
        return load_encoding(name).decode([token for token in tokens if isinstance(token, int)])
    except (KeyError, OverflowError, ValueError):
        raise BadRequest(f"input: tokens that {name} does not have", parameter="input") from None


def _gemini(body: dict[str, JSON], path: str) -> tuple[WireRequest, EmbeddingRequest]:
    named = _METHOD.search(path)
    if named is None:
        raise BadRequest(f"the URL: expected to end in MODEL:embedContent, got {path!r}")
    single, model = named["method"] == "embedContent", named["model"]
    requests = [body] if single else objects(body.get("requests"), where="requests")
    if len(requests) > _LARGEST_BATCH:
        raise BadRequest(
            f"requests: expected at most {_LARGEST_BATCH}, got {len(requests)}", parameter="requests"
        )
    requested = [
        _one_of_gemini(request, model, "" if single else f"requests[{number}].")
        for number, request in enumerate(requests)
    ]
    around = () if single else GEMINI_BATCH.unheeded(body)
    refused = () if single else GEMINI_BATCH.wrong(body)
    read = WireRequest(
        model=model,
        messages=(),
        unheeded=(*around, *(name for one in requested for name in one.unheeded)),
        wrong=(*refused, *(why for one in requested for why in one.wrong)),
    )
    wanted = EmbeddingRequest(
        texts=tuple(one.text for one in requested),
        sizes=tuple(one.size for one in requested),
        shape="one" if single else "batch",
    )
    return read, wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class _OneOfGemini:
    """What one of Gemini's requests for an embedding asks, with what of it is not honoured or is wrong."""

    text: str
    size: int | None
    unheeded: tuple[str, ...]
    wrong: tuple[tuple[str, str], ...]


def _one_of_gemini(request: dict[str, JSON], model: str, where: str) -> _OneOfGemini:
    content, config = request.get("content"), request.get("embedContentConfig")
    if content is not None and not isinstance(content, dict):
        raise BadRequest(f"{where}content: expected an object, got {_short(content)}", parameter="content")
    if config is not None and not isinstance(config, dict):
        raise BadRequest(
            f"{where}embedContentConfig: expected an object, got {_short(config)}",
            parameter="embedContentConfig",
        )
    parts = objects((content or {}).get("parts", []), where=f"{where}content.parts")
    options = {key: value for key, value in request.items() if key != "embedContentConfig"} | (config or {})
    whys = wrong_parts(list(parts), f"{where}content.parts")
    return _OneOfGemini(
        text=text_in(list(parts)),
        size=_size(number_or_none(options, "outputDimensionality"), f"{where}outputDimensionality", model),
        unheeded=GEMINI_EMBEDDING.unheeded(options, within=where),
        wrong=(
            *GEMINI_EMBEDDING.wrong(options, within=where),
            *((f"{where}content", why) for why in whys),
        ),
    )


def _size(number: float | None, where: str, model: str) -> int | None:
    """Return how many numbers are wanted; `BadRequest` for more than the model's vectors have, as providers have it."""
    size = limit_of(number, where=where)
    if size is None:
        return None
    bare = bare_model_name(model)
    if bare in _ONE_SIZE:
        raise BadRequest(
            f"{where}: {model} makes vectors of {_SIZES[bare]} numbers and no others", parameter=where
        )
    most = _SIZES.get(bare, _LARGEST)
    if size > most:
        raise BadRequest(f"{where}: expected at most {most} for {model}, got {size}", parameter=where)
    return size


def _short(value: JSON) -> str:
    return f"{str(value)[:60]}"


def vector_of(text: str, model: str, size: int | None) -> Vector:
    """Return the vector of a text: `size` numbers, or as many as the model has, at length 1."""
    numbers = size or _SIZES.get(bare_model_name(model), _SIZE)
    return _remembered(text, numbers) if len(text) <= LARGEST_BODY else _computed(text, numbers)


def _computed(text: str, size: int) -> Vector:
    drawn = hashlib.shake_128(text.encode("utf-8", "surrogatepass")).digest(size)
    # From -255 to 255 in steps of 2, so that no number is 0 and every vector has a length.
    numbers = [2 * byte - 255 for byte in drawn]
    length = math.sqrt(sum(number * number for number in numbers))
    return tuple(number / length for number in numbers)


_remembered = lru_cache(maxsize=64)(_computed)


def embeddings_body(
    wanted: EmbeddingRequest, vectors: Iterable[Vector], model: str, tokens: int | None, *, usage: bool = True
) -> bytes:
    """Return the answer. `tokens` None is a usage of `null`, `usage` off leaves it out."""
    # Written vector by vector: json keeps every other thread waiting until all that it is given is written.
    match wanted.shape:
        case "one" | "batch" as shape:
            written = [compact({"values": list(vector)}) for vector in vectors]
            return f'{{"embedding":{written[0]}}}'.encode() if shape == "one" else _embeddings(written)
        case shape:
            listed = [
                compact(
                    {
                        "object": "embedding",
                        "index": index,
                        "embedding": _written(vector, packed=shape == "base64"),
                    }
                )
                for index, vector in enumerate(vectors)
            ]
    counts: JSON = None if tokens is None else {"prompt_tokens": tokens, "total_tokens": tokens}
    reported: dict[str, JSON] = {"usage": counts} if usage else {}
    rest = compact({"model": model, **reported})[1:]
    return f'{{"object":"list","data":[{",".join(listed)}],{rest}'.encode()


def _embeddings(written: Sequence[str]) -> bytes:
    return f'{{"embeddings":[{",".join(written)}]}}'.encode()


def _written(vector: Vector, *, packed: bool) -> JSON:
    """Return a vector as numbers, or as OpenAI packs it: little-endian 32 bit floats in base64."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode() if packed else list(vector)
