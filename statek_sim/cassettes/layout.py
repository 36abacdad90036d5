"""Bodies as a cassette shows them, and back: JSON laid out on lines, line ends of one kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from statek_sim.cassettes.jsontext import NotJson, Style, laid_out, parsed, style_of, written

JSON_STYLE: Final = "json"
"""The remark that says how a JSON body was written."""
NEWLINE: Final = "newline"
"""The remark that says how lines ended, when not with a line feed."""
_CRLF: Final = "crlf"


def shown(body: bytes) -> tuple[str | bytes, dict[str, str]]:
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
    """Return the bytes that `shown` was given; `ValueError` when the remarks do not fit the body."""
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
