"""What the tools of servers are called where a model reads them: names that every provider takes."""

from __future__ import annotations

import hashlib
import re
from typing import Final

LONGEST: Final = 64
"""Characters of a tool's name that all providers take."""

_UNSENDABLE: Final = re.compile(r"[^A-Za-z0-9_-]")
_DIGITS: Final = 8


def server_tool_name(prefix: str, tool: str) -> str:
    """Return the name of a server's tool: `prefix__tool`, or the tool's own where the prefix is empty.

    MCP allows 128 characters, and dots; providers take 64 letters, digits, `_` and `-`. What they refuse becomes `_`,
    and a name that was changed or cut ends in 8 digits of its SHA-256, so that two names do not become one.
    """
    whole = f"{prefix}__{tool}" if prefix else tool
    fitting = _UNSENDABLE.sub("_", whole)
    if fitting == whole and len(whole) <= LONGEST:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:_DIGITS]
    return f"{fitting[: LONGEST - _DIGITS - 1]}_{digest}"
