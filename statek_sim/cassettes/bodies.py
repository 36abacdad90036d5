"""Bodies as text: decoded for searching, as canonical JSON for comparison, and formatted for the file.

Providers send JSON on one line. It is formatted in files, so that they are readable and a diff shows the changed line;
the stored `Style` restores the exact bytes.
"""

from __future__ import annotations

import importlib
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Final

from statek_sim.cassettes.exchange import Headers, media_type
from statek_sim.values import JSON

LARGEST: Final = 256 * 1024 * 1024
"""Maximum size of a decompressed body, in bytes."""

_CONTROLS: Final = bytes((*range(0x09), *range(0x0E, 0x1B), *range(0x1C, 0x20)))
"""ASCII control characters that do not occur in text (all except line breaks, tabs and ESC)."""
_PART_TYPE: Final = re.compile(rb"\r?\ncontent-type:[ \t]*([\w.+/-]+)", re.IGNORECASE)
_PARTS: Final = "multipart/"


class Undecodable(ValueError):
    """Raised for a body that cannot be decoded and therefore cannot be checked for secrets."""


def as_text(body: bytes) -> str | None:
    """Return a body as text, with surrogates for invalid UTF-8, or None for a body that is not text."""
    return (
        None if len(body.translate(None, _CONTROLS)) < len(body) else body.decode("utf-8", "surrogateescape")
    )


def is_allowed(body: bytes, headers: Headers, allowed: Iterable[str]) -> bool:
    """Return whether the media type of a body, or of all parts of a multipart body, matches a pattern in `allowed`."""
    kind = media_type(headers)
    kinds = [kind]
    if kind.startswith(_PARTS):
        kinds = [found.decode("ascii").lower() for found in _PART_TYPE.findall(body)] or [kind]
    names = [name.lower() for name in allowed]
    return all(any(fnmatchcase(kind, name) for name in names) for kind in kinds)


def opened(body: bytes, encoding: str) -> bytes:
    """Return a body decoded from content encodings such as `gzip` or `deflate, gzip`; raises `Undecodable`."""
    for name in reversed([part.strip().lower() for part in encoding.split(",")]):
        if name not in ("", "identity") and body:
            try:
                body = _opened(body, name)
            except Undecodable:
                # Some clients decode a body but keep the header.
                if as_text(body) is None:
                    raise
    return body


def _opened(body: bytes, name: str) -> bytes:
    try:
        if name in ("gzip", "x-gzip"):
            return _inflated(body, zlib.MAX_WBITS | 16)
        if name == "deflate":
            return _inflated(body, zlib.MAX_WBITS if body[0] & 0x0F == 8 else -zlib.MAX_WBITS)
        if name == "br":
            return bytes(_package("brotli", "brotlicffi").decompress(body))
        if name == "zstd":
            return _of_zstd(body)
    except ImportError:
        raise Undecodable(f"content encoding {name!r} requires a package that is not installed") from None
    except Exception as error:  # noqa: BLE001  # each package has errors of its own
        raise Undecodable(
            f"the header specifies content encoding {name!r}, but the body is invalid: {error}"
        ) from None
    raise Undecodable(f"unknown content encoding {name!r}")


def _of_zstd(body: bytes) -> bytes:
    opener = _package("compression.zstd", "backports.zstd", "zstandard").ZstdDecompressor()
    opener = opener.decompressobj() if hasattr(opener, "decompressobj") else opener
    content: bytes = opener.decompress(body)
    if not opener.eof or opener.unused_data:
        raise Undecodable("the data is not one complete frame")
    return content


def _inflated(body: bytes, bits: int) -> bytes:
    inflater = zlib.decompressobj(bits)
    content = inflater.decompress(body, LARGEST)
    if inflater.unconsumed_tail:
        raise Undecodable(f"the decoded body is larger than {LARGEST} bytes")
    if not inflater.eof or inflater.unused_data:
        raise Undecodable("unexpected data after the end" if inflater.eof else "the data is truncated")
    return content


def _package(*names: str) -> Any:
    """Return the first of these optional packages that is installed; raises `ImportError` if none is installed."""
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ImportError(names[0])


class Style(StrEnum):
    """How JSON is written: with or without spaces, and with or without escapes for non-ASCII characters."""

    COMPACT = "compact"
    COMPACT_ASCII = "compact-ascii"
    SPACED = "spaced"
    SPACED_ASCII = "spaced-ascii"


JSON_STYLE: Final = "json"
"""The key under which a file stores a JSON body's style."""
NEWLINE: Final = "newline"
"""The key under which a file stores line endings other than a line feed."""
_CRLF: Final = "crlf"

_COMPACT: Final = (",", ":")
_SPACED: Final = (", ", ": ")

# Characters that are line ends in YAML, or invisible; they are escaped as in JSON.
_AWKWARD: Final = {
    code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)
}


class NotJson(ValueError):
    """Raised for a string that is not JSON, or is nested too deeply for Python's parser."""


def parsed(text: str | bytes) -> JSON:
    """Parse JSON; raises `NotJson` for any other text."""
    try:
        value: JSON = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from None
    return value


def canonical(value: JSON) -> str:
    """Return a value as canonical JSON: ASCII, without spaces, with sorted keys."""
    return json.dumps(value, sort_keys=True, separators=_COMPACT)


def written(value: JSON, style: Style) -> str:
    """Return a value as JSON in this style, keeping the order of keys."""
    separators = _COMPACT if style in (Style.COMPACT, Style.COMPACT_ASCII) else _SPACED
    ascii_only = style in (Style.COMPACT_ASCII, Style.SPACED_ASCII)
    return json.dumps(value, separators=separators, ensure_ascii=ascii_only)


def style_of(text: str) -> Style | None:
    """Return the style in which `written` reproduces `text` exactly, or None."""
    try:
        value = parsed(text)
        return next((style for style in Style if written(value, style) == text), None)
    except (NotJson, RecursionError):
        return None


def laid_out(value: JSON) -> str:
    """Return indented JSON, with escapes only for characters that YAML could change."""
    text = json.dumps(value, indent=2, ensure_ascii=False).translate(_AWKWARD)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=2)
    return text


def body_layout(body: bytes) -> tuple[str | bytes, dict[str, str]]:
    """Return a body formatted for a file, and the data that `original` needs to restore it.

    A body that is not UTF-8 is returned unchanged.
    """
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
    """Restore the bytes that `body_layout` formatted; raises `ValueError` if `remarks` do not match the body."""
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
