"""Bodies: one canonical text of JSON for comparing, one readable text for the file, and the way back.

A provider sends JSON on one line. In a file it is laid out, so that people can read it and a diff shows the line
that changed; the `Style` it had says how to get the very same bytes back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from statek_sim.values import JSON


class Style(StrEnum):
    """How a JSON text was written: with or without spaces, with or without escapes for what is not ASCII."""

    COMPACT = "compact"
    COMPACT_ASCII = "compact-ascii"
    SPACED = "spaced"
    SPACED_ASCII = "spaced-ascii"


JSON_STYLE: Final = "json"
"""The remark that says how a JSON body was written."""
NEWLINE: Final = "newline"
"""The remark that says how lines ended, when not with a line feed."""
_CRLF: Final = "crlf"

_COMPACT: Final = (",", ":")
_SPACED: Final = (", ", ": ")

# These end a line for YAML, or do not show: JSON's escapes keep them readable.
_AWKWARD: Final = {
    code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)
}


class NotJson(ValueError):
    """The text is not JSON, or more than Python's reader takes."""


def parsed(text: str | bytes) -> JSON:
    """Return the value of a JSON text; `NotJson` for anything else."""
    try:
        value: JSON = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from None
    return value


def canonical(value: JSON) -> str:
    """Return the one text of a value: ASCII, no spaces, keys in order."""
    return json.dumps(value, sort_keys=True, separators=_COMPACT)


def written(value: JSON, style: Style) -> str:
    """Return the text of a value in a style, keys as they come."""
    separators = _COMPACT if style in (Style.COMPACT, Style.COMPACT_ASCII) else _SPACED
    ascii_only = style in (Style.COMPACT_ASCII, Style.SPACED_ASCII)
    return json.dumps(value, separators=separators, ensure_ascii=ascii_only)


def style_of(text: str) -> Style | None:
    """Return the style that gives `text` back to the letter, or None when none does."""
    try:
        value = parsed(text)
        return next((style for style in Style if written(value, style) == text), None)
    except (NotJson, RecursionError):
        return None


def laid_out(value: JSON) -> str:
    """Return a text for people: two spaces per level, characters as they are unless YAML could change them."""
    text = json.dumps(value, indent=2, ensure_ascii=False).translate(_AWKWARD)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=2)
    return text


def body_layout(body: bytes) -> tuple[str | bytes, dict[str, str]]:
    """Return a body for people, and the remarks that `original` needs; what is not UTF-8 stays bytes."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return body, {}
    style = style_of(text) if text.startswith(("{", "[")) else None
    if style is not None:
        lines = laid_out(parsed(text))
        return (lines, {JSON_STYLE: style.value}) if "\n" in lines else (text, {})
    if 0 < text.count("\r\n") == text.count("\n") == text.count("\r"):
        return text.replace("\r\n", "\n"), {NEWLINE: _CRLF}
    return text, {}


def original(body: str | bytes, remarks: Mapping[str, object]) -> bytes:
    """Return the bytes that `body_layout` was given; `ValueError` when the remarks do not fit the body."""
    if isinstance(body, bytes):
        return body
    style = remarks.get(JSON_STYLE)
    if style is not None:
        try:
            return written(parsed(body), Style(str(style))).encode("utf-8", "surrogatepass")
        except NotJson as error:
            raise ValueError(f"expected JSON because `{JSON_STYLE}` is {style!r}: {error}") from None
    newline = remarks.get(NEWLINE)
    if newline not in (None, _CRLF):
        raise ValueError(f"`{NEWLINE}`: expected {_CRLF!r}, got {newline!r}")
    return (body.replace("\n", "\r\n") if newline else body).encode("utf-8", "surrogatepass")
