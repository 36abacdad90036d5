"""The arguments of a call as JSON, from how a trace writes them: `place='a', n=3`.

A trace has the arguments of a tool-calling agent's calls as names with the Python literals of JSON's values. Who reads
spans expects JSON.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any, Final

_TEXT: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_PLAIN: Final = re.compile(r"[^\s,'\"\[\]{}()=]+")


def as_json(written: str) -> str | None:
    """Return the arguments of a call as a JSON object; None for what has none.

    That is what is not written as a trace writes them, and numbers that JSON does not have: `inf` and `nan`.
    """
    found: dict[str, Any] = {}
    at = 0
    while at < len(written):
        # A name may have an equals sign of its own: it ends where a value follows.
        equals = written.find("=", at + 1)
        end = None
        while equals >= 0 and end is None:
            end = _end_of_value(written, equals + 1)
            if end is not None and end < len(written) and not written.startswith(", ", end):
                end = None
            if end is None:
                equals = written.find("=", equals + 1)
        if end is None:
            return None
        try:
            found[written[at:equals]] = ast.literal_eval(written[equals + 1 : end])
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return None
        at = end + 2
    try:
        return json.dumps(found, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return None


def _end_of_value(written: str, at: int) -> int | None:
    """Return where the literal that begins at `at` ends, None where none does."""
    depth = 0
    while at < len(written):
        character = written[at]
        if character in "'\"":
            text = _TEXT.match(written, at)
            if text is None:
                return None
            at = text.end()
        elif character in "[{":
            depth += 1
            at += 1
        elif character in "]}":
            depth -= 1
            at += 1
        elif depth and character in ", :":
            at += 1
        elif plain := _PLAIN.match(written, at):
            at = plain.end() - (depth and plain[0].endswith(":"))
        else:
            return None
        if depth <= 0:
            return at if depth == 0 else None
    return None
