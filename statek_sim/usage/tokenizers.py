"""Which tokenizer measures which model, and how a text is cut into the pieces that a model would stream.

The choice follows `tiktoken.encoding_for_model`: an exact name first, then the first matching prefix. A model
that tiktoken does not know, or knows with a vocabulary not carried here, is measured with o200k_base and
labelled as a proxy, so that no output passes an estimate off as that model's own count.

The two OpenAI vocabularies travel in the package and need no network (openai/tiktoken#369), as `vocab/NAME.xz`: an xz
stream of one length byte and the token's bytes, token after token, in rank order. Ranks are contiguous from 0, so the
position is the rank. `tools/build_vocab.py` writes these files. Neither tiktoken's cache nor its registry of encodings
is touched: tiktoken deletes cached files that it does not recognise, and a second encoding under a name of its own
breaks it for the whole environment.
"""

from __future__ import annotations

import codecs
import functools
import lzma
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Final, Protocol

import tiktoken
from tiktoken.model import MODEL_PREFIX_TO_ENCODING, MODEL_TO_ENCODING

from statek_sim.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """One vendored vocabulary.

    `sha256` is the digest of the original `NAME.tiktoken` file, the one that tiktoken pins; `pattern` and
    `special_tokens` are those of `tiktoken_ext.openai_public`.
    """

    name: str
    sha256: str
    pattern: str
    special_tokens: Mapping[str, int]


_CL100K_PATTERN: Final = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"""
    r"""|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
)

_O200K_PATTERN: Final = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

VOCABULARIES: Final[Mapping[str, Vocabulary]] = {
    "cl100k_base": Vocabulary(
        name="cl100k_base",
        sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        pattern=_CL100K_PATTERN,
        special_tokens={
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
    "o200k_base": Vocabulary(
        name="o200k_base",
        sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        pattern=_O200K_PATTERN,
        special_tokens={"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
    ),
}
"""The vendored vocabularies by tiktoken's name for them."""


def unpack_tokens(packed: bytes) -> list[bytes]:
    """Return the tokens of a vocabulary's file in rank order."""
    tokens: list[bytes] = []
    start, end = 0, len(packed)
    while start < end:
        stop = start + 1 + packed[start]
        tokens.append(packed[start + 1 : stop])
        start = stop
    return tokens


def load_tokens(name: str) -> list[bytes]:
    """Return the vendored tokens of vocabulary `name` in rank order; `BadInput` when there is none."""
    if name not in VOCABULARIES:
        raise BadInput(f"no vocabulary named {name!r}, expected one of {', '.join(VOCABULARIES)}")
    file = resources.files("statek_sim.usage") / "vocab" / f"{name}.xz"
    return unpack_tokens(lzma.decompress(file.read_bytes()))


@functools.cache
def load_encoding(name: str) -> tiktoken.Encoding:
    """Return the encoding of vocabulary `name`, built once per process (0.1 to 0.3 s).

    It is named `statek_sim/NAME`, so that nobody takes it for the one in tiktoken's registry.
    """
    tokens = load_tokens(name)
    vocabulary = VOCABULARIES[name]
    return tiktoken.Encoding(
        name=f"statek_sim/{name}",
        pat_str=vocabulary.pattern,
        mergeable_ranks={token: rank for rank, token in enumerate(tokens)},
        special_tokens=dict(vocabulary.special_tokens),
    )


PROXY_ENCODING: Final = "o200k_base"
"""What measures a model whose own tokenizer is not known."""

SHORT_TEXT: Final = 4_096
"""Up to this many characters a text's count is worth many cache entries."""

LONGEST_CACHED_TEXT: Final = 1_048_576
"""Characters beyond which a text is counted each time, so that the caches stay small."""

LONGEST_SPACE: Final = 100_000
"""Characters of white space that go to tiktoken at once; near 1,000,000 its regular expression overflows."""

_SPACE: Final = re.compile(r"\s+")


class Tokenizer(Protocol):
    """Counts the tokens of a text. A pure function: counts are cached by text."""

    def count(self, text: str) -> int:
        """Return the number of tokens in `text`; any string at all is valid input."""


class CachedTokenizer:
    """A tokenizer that remembers the counts of recent texts; jobs send the same ones over and over."""

    __slots__ = ("_count_long", "_count_short", "_count_uncached")

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count_uncached = count
        self._count_short = functools.lru_cache(maxsize=16_384)(count)
        self._count_long = functools.lru_cache(maxsize=128)(count)

    def count(self, text: str) -> int:
        """Return the number of tokens in `text`."""
        size = len(text)
        if size <= SHORT_TEXT:
            return self._count_short(text)
        return self._count_long(text) if size <= LONGEST_CACHED_TEXT else self._count_uncached(text)


@dataclass(frozen=True, slots=True)
class ModelTokenizer:
    """The tokenizer that measures a model; `proxy` says that it is not the model's own."""

    name: str
    proxy: bool
    tokenizer: Tokenizer

    @property
    def label(self) -> str:
        """What every report prints beside a measured number."""
        return f"{self.name} (proxy)" if self.proxy else self.name


class TokenizerRegistry:
    """A user's own tokenizers, asked before tiktoken's tables. Pass it to `tokenizer_for_model`."""

    def __init__(self) -> None:
        self._by_name: dict[str, ModelTokenizer] = {}

    def register_tokenizer(
        self, model_or_prefix: str, name: str, tokenizer: Tokenizer, *, proxy: bool = False
    ) -> None:
        """Measure `model_or_prefix`, and every model that starts with it, with `tokenizer`, labelled `name`.

        Counts are cached by text. `BadInput` when the name is empty or taken.
        """
        if not model_or_prefix or not name:
            raise BadInput(f"tokenizer {name!r} for model {model_or_prefix!r}: expected two names")
        if model_or_prefix in self._by_name:
            taken = self._by_name[model_or_prefix].name
            raise BadInput(f"tokenizer {name!r}: {model_or_prefix!r} is already measured with {taken!r}")
        self._by_name[model_or_prefix] = ModelTokenizer(name, proxy, CachedTokenizer(tokenizer.count))

    def find(self, model: str) -> ModelTokenizer | None:
        """Return the tokenizer registered for `model`, else for its longest registered prefix, else None."""
        prefixes = [prefix for prefix in self._by_name if model.startswith(prefix)]
        return self._by_name[max(prefixes, key=len)] if prefixes else None


def tokenizer_for_model(model: str, registry: TokenizerRegistry | None = None) -> ModelTokenizer:
    """Return the tokenizer for a STATEK model string: `model`, `family/model` or `provider/family/model`.

    A vocabulary is loaded at the first count, not here. `registry` is asked for the whole string, then for
    the model's own name.
    """
    name = bare_model_name(model)
    if registry is not None:
        own = registry.find(model) or registry.find(name)
        if own is not None:
            return own
    encoding = encoding_name(name)
    if encoding is not None and encoding in VOCABULARIES:
        return ModelTokenizer(encoding, proxy=False, tokenizer=_vendored(encoding))
    return ModelTokenizer(PROXY_ENCODING, proxy=True, tokenizer=_vendored(PROXY_ENCODING))


@functools.lru_cache
def bare_model_name(model: str) -> str:
    """Return `model` without provider, family and trailing options such as `/rl=60` (behaviour 11)."""
    parts = [part for part in model.split("/") if part and "=" not in part]
    return parts[-1] if parts else model


def encoding_name(model: str) -> str | None:
    """Return tiktoken's encoding for a bare model name, or None when it knows none."""
    exact = MODEL_TO_ENCODING.get(model)
    if exact is not None:
        return exact
    for prefix, encoding in MODEL_PREFIX_TO_ENCODING.items():
        if model.startswith(prefix):
            return encoding
    return None


@functools.cache
def _vendored(encoding: str) -> CachedTokenizer:
    """Return the process's one tokenizer for a vendored vocabulary, so that all jobs share its cache."""

    def count(text: str) -> int:
        # encode_ordinary: to `encode`, a text that contains "<|endoftext|>" is an error.
        encode = load_encoding(encoding).encode_ordinary
        if len(text) <= LONGEST_SPACE:
            return len(encode(text))
        return sum(len(encode(piece)) for piece in digestible(text))

    return CachedTokenizer(count)


def digestible(text: str) -> Iterator[str]:
    """Yield `text` in pieces without white space longer than `LONGEST_SPACE`; nearly always in one piece."""
    start = 0
    if len(text) > LONGEST_SPACE:
        for space in _SPACE.finditer(text):
            for cut in range(space.start() + LONGEST_SPACE, space.end(), LONGEST_SPACE):
                yield text[start:cut]
                start = cut
    yield text[start:]


LONGEST_REMEMBERED: Final = 4096
"""Characters of a text whose pieces are remembered."""


def token_pieces(text: str, model: str) -> tuple[str, ...]:
    """Return `text` token by token; joined the pieces are the text again.

    A character that takes several tokens comes whole with the last of them. Tokens are those of the model's own
    vocabulary where it is vendored, else of the proxy's. Text that no token can say (lone surrogates) stays whole.
    """
    return _remembered(text, model) if len(text) <= LONGEST_REMEMBERED else _cut(text, model)


def _cut(text: str, model: str) -> tuple[str, ...]:
    name = tokenizer_for_model(model).name
    pieces = tuple(_pieces(text, name if name in VOCABULARIES else PROXY_ENCODING))
    return pieces if "".join(pieces) == text else (text,)


_remembered = functools.lru_cache(maxsize=1024)(_cut)


def _pieces(text: str, encoding_name: str) -> Iterator[str]:
    encoding = load_encoding(encoding_name)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for part in digestible(text):
        for token in encoding.encode_ordinary(part):
            piece = decoder.decode(encoding.decode_single_token_bytes(token))
            if piece:
                yield piece
