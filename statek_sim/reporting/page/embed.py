r"""JSON inside HTML: text that no browser can take for anything but data, and that reads back as the same values.

Everything outside ASCII and every `<`, `>` and `&` is written as `\uXXXX`. So no text can end its element or begin a
comment, a lone surrogate can be written at all, and what is invisible or changes the reading direction is not in the
file. The data is not compressed: every machine writes the same bytes, whatever compressor it has, and the file can
be searched.
"""

from __future__ import annotations

import json
import re
from typing import Final

from statek_sim.values import JSON

_MARKUP: Final = re.compile("[<>&\x7f]")
_encode: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def embedded(value: JSON) -> str:
    """Return `value` as JSON for the inside of a `script` element; ValueError for numbers that JSON does not have."""
    return _MARKUP.sub(_escape, _encode(value))


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
