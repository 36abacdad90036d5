"""A text cut into the pieces that a model would stream: one per token, where tokens end between characters."""

from __future__ import annotations

import codecs
import functools
from collections.abc import Iterator
from typing import Final

from statek_sim.metering.tokenizers import PROXY_ENCODING, digestible, tokenizer_for_model
from statek_sim.metering.vocabulary import VOCABULARIES, load_encoding

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
