"""The two OpenAI vocabularies this package carries, loaded without a network.

tiktoken downloads its vocabularies at first use (openai/tiktoken#369). Here they travel in the package, as
`vocab/NAME.xz`: an xz stream of one length byte and the token's bytes, token after token, in rank order.
Ranks are contiguous from 0, so the position is the rank. `tools/build_vocab.py` writes these files.

Neither tiktoken's cache nor its registry of encodings is touched: tiktoken deletes cached files that it does
not recognise, and a second encoding under a name of its own breaks it for the whole environment.
"""

from __future__ import annotations

import base64
import functools
import lzma
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Final

import tiktoken

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


def pack_tokens(tokens: Iterable[bytes]) -> bytes:
    """Return `tokens`, given in rank order, each behind its length byte. No token may exceed 255 bytes."""
    return b"".join(bytes((len(token),)) + token for token in tokens)


def unpack_tokens(packed: bytes) -> list[bytes]:
    """Return the tokens of a `pack_tokens` result in rank order."""
    tokens: list[bytes] = []
    start, end = 0, len(packed)
    while start < end:
        stop = start + 1 + packed[start]
        tokens.append(packed[start + 1 : stop])
        start = stop
    return tokens


def tiktoken_file(tokens: Iterable[bytes]) -> bytes:
    """Return the `.tiktoken` file of `tokens`: one line of base64, a space and the rank for each."""
    return b"".join(b"%b %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens))


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
