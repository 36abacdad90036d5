"""JSON text as providers write it: compact, UTF-8."""

from __future__ import annotations

import json
from json.encoder import encode_basestring, encode_basestring_ascii

from statek_sim.values import JSON


def compact(value: JSON) -> str:
    """Return `value` without spaces; escaped to ASCII where UTF-8 has no form for it (lone surrogates)."""
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return plain if _is_utf8(plain) else json.dumps(value, separators=(",", ":"))


def quoted(text: str) -> str:
    """Return `text` as a JSON string: `compact`, without an encoder of its own for each text."""
    return encode_basestring(text) if _is_utf8(text) else encode_basestring_ascii(text)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
