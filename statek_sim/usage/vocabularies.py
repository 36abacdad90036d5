"""OpenAI's two vocabularies, which are included in the package, and tokenization with these vocabularies.

The vocabularies are included because tiktoken would download them (openai/tiktoken#369). tiktoken takes 0.25 s to
initialize, too long for a test that counts a few words. So `AsciiEncoder` tokenizes a process's first short ASCII
texts, and tiktoken tokenizes all others; both give the same tokens.

tiktoken's cache and encoding registry are not used, because tiktoken deletes cached files that it does not recognize,
and an additional encoding breaks it for the whole environment.
"""

from __future__ import annotations

import codecs
import functools
import re
import struct
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Final

from statek_sim.errors import BadInput

if TYPE_CHECKING:
    import tiktoken


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """A vocabulary included in the package.

    `sha256` is the digest of the original `NAME.tiktoken` file, as pinned by tiktoken; `pattern` and `special_tokens`
    come from `tiktoken_ext.openai_public`. `ascii_pattern` is an equivalent for ASCII texts, written for `re`.
    """

    name: str
    sha256: str
    pattern: str
    ascii_pattern: str
    special_tokens: Mapping[str, int]


_CL100K_PATTERN: Final = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"""
    r"""|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
)
_CL100K_ASCII: Final = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\nA-Za-z0-9]?+[A-Za-z]++|[0-9]{1,3}+| ?[^\sA-Za-z0-9]++[\r\n]*+"
    r"|\s++\Z|\s*[\r\n]|\s+(?!\S)|\s"
)

_O200K_PATTERN: Final = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_O200K_ASCII: Final = (
    r"[^\r\nA-Za-z0-9]?[A-Z]*[a-z]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\nA-Za-z0-9]?[A-Z]+[a-z]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[0-9]{1,3}| ?[^\sA-Za-z0-9]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

VOCABULARIES: Final[Mapping[str, Vocabulary]] = {
    "cl100k_base": Vocabulary(
        name="cl100k_base",
        sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        pattern=_CL100K_PATTERN,
        ascii_pattern=_CL100K_ASCII,
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
        ascii_pattern=_O200K_ASCII,
        special_tokens={"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
    ),
}
"""The vendored vocabularies, keyed by tiktoken's names."""

_COUNTS: Final = struct.Struct("<255I")
_RANK_BYTES: Final = 4


class TokenTable:
    """The tokens in a `vocab/NAME.tokens` file with their ranks, found by binary search.

    The file starts with 255 counts, for tokens of 1, 2, ... 255 bytes. For each of these lengths, it then contains the
    tokens in byte order and their ranks in the same order. Counts and ranks are little-endian 32-bit numbers. The files
    are written by `tools/build_vocab.py`.
    """

    def __init__(self, packed: bytes) -> None:
        self._packed = packed
        self._found: dict[int, tuple[int, int]] = {}
        start = _COUNTS.size
        for length, count in enumerate(_COUNTS.unpack_from(packed), start=1):
            if count:
                self._found[length] = (start, count)
                start += count * (length + _RANK_BYTES)

    def rank(self, token: bytes) -> int | None:
        """Return a token's rank, or None if the bytes are not a token."""
        length, packed = len(token), self._packed
        start, count = self._found.get(length, (0, 0))
        place = bisect_left(
            range(count),
            token,
            key=lambda place: packed[start + place * length : start + (place + 1) * length],
        )
        at = start + place * length
        if place == count or packed[at : at + length] != token:
            return None
        at = start + count * length + place * _RANK_BYTES
        return int.from_bytes(packed[at : at + _RANK_BYTES], "little")

    def ranks(self) -> dict[bytes, int]:
        """Return all tokens with their ranks."""
        every: dict[bytes, int] = {}
        for length, (start, count) in self._found.items():
            end = start + count * length
            tokens = (self._packed[at : at + length] for at in range(start, end, length))
            every.update(zip(tokens, struct.unpack_from(f"<{count}I", self._packed, end), strict=True))
        return every


@functools.cache
def load_table(name: str) -> TokenTable:
    """Return the tokens in vocabulary `name`; raises `BadInput` if it is unknown."""
    if name not in VOCABULARIES:
        raise BadInput(f"unknown vocabulary {name!r}; expected one of {', '.join(VOCABULARIES)}")
    return TokenTable((resources.files("statek_sim.usage") / "vocab" / f"{name}.tokens").read_bytes())


@functools.cache
def load_encoding(name: str) -> tiktoken.Encoding:
    """Return tiktoken's encoding for vocabulary `name`, built once per process (0.25 s).

    It is named `statek_sim/NAME` to distinguish it from the encoding in tiktoken's registry.
    """
    import tiktoken  # noqa: PLC0415  # where the texts of a process need it

    ranks = load_table(name).ranks()
    vocabulary = VOCABULARIES[name]
    return tiktoken.Encoding(
        name=f"statek_sim/{name}",
        pat_str=vocabulary.pattern,
        mergeable_ranks=ranks,
        special_tokens=dict(vocabulary.special_tokens),
    )


OWN_CHARACTERS: Final = 200_000
"""The maximum number of characters per process for `AsciiEncoder`; beyond it, initializing tiktoken is faster."""

LONGEST_OWN_TEXT: Final = 20_000
LONGEST_OWN_WORD: Final = 250
"""The maximum length of a string, and of a word in it, for `AsciiEncoder`.

The time grows with the square of a word's length.
"""


class AsciiEncoder:
    """Tokenizes short ASCII strings in the same way as tiktoken, but without tiktoken's initialization."""

    def __init__(self, name: str) -> None:
        self._left = OWN_CHARACTERS
        self._rank = functools.lru_cache(maxsize=65_536)(load_table(name).rank)
        self._tokens = functools.lru_cache(maxsize=16_384)(self._tokens_of_word)
        self._words = re.compile(VOCABULARIES[name].ascii_pattern, re.ASCII).findall

    def tokens(self, text: str) -> list[str] | None:
        """Return a string's tokens, or None for a string that tiktoken must tokenize."""
        if len(text) > min(self._left, LONGEST_OWN_TEXT) or not text.isascii():
            return None
        words = self._words(text)
        if max(map(len, words), default=0) > LONGEST_OWN_WORD:
            return None
        self._left -= len(text)
        return [token for word in words for token in self._tokens(word)]

    def _tokens_of_word(self, word: str) -> tuple[str, ...]:
        """Tokenize a word by repeatedly joining the neighbours with the lowest joint rank, until no pair has a rank."""
        if self._rank(word.encode()) is not None:
            return (word,)
        tokens = list(word)
        while joined := [
            (rank, place)
            for place in range(len(tokens) - 1)
            if (rank := self._rank((tokens[place] + tokens[place + 1]).encode())) is not None
        ]:
            _, place = min(joined)
            tokens[place : place + 2] = [tokens[place] + tokens[place + 1]]
        return tuple(tokens)


_ascii_encoder = functools.cache(AsciiEncoder)


LONGEST_SPACE: Final = 100_000
"""The longest run of white space passed to tiktoken; near 1,000,000 characters, its regular expression overflows."""

_SPACE: Final = re.compile(r"\s+")


def count_tokens(name: str, text: str) -> int:
    """Return the number of tokens in any string, using vocabulary `name`."""
    tokens = _ascii_encoder(name).tokens(text)
    if tokens is not None:
        return len(tokens)
    # encode_ordinary: `encode` raises for a text that contains "<|endoftext|>".
    encode = load_encoding(name).encode_ordinary
    return sum(len(encode(piece)) for piece in digestible(text))


def token_texts(name: str, text: str) -> Iterator[str]:
    """Yield each token's text; a character that spans several tokens is yielded with the last one."""
    tokens = _ascii_encoder(name).tokens(text)
    if tokens is not None:
        yield from tokens
        return
    encoding = load_encoding(name)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for part in digestible(text):
        for token in encoding.encode_ordinary(part):
            piece = decoder.decode(encoding.decode_single_token_bytes(token))
            if piece:
                yield piece


def digestible(text: str) -> Iterator[str]:
    """Yield `text` in pieces, usually one, with no run of white space longer than `LONGEST_SPACE`."""
    start = 0
    if len(text) > LONGEST_SPACE:
        for space in _SPACE.finditer(text):
            for cut in range(space.start() + LONGEST_SPACE, space.end(), LONGEST_SPACE):
                yield text[start:cut]
                start = cut
    yield text[start:]
