"""Bodies as texts: decoded for searching, canonical JSON for comparing, laid out for the file.

A provider sends JSON on one line. In a file it is laid out, so that people can read it and a diff shows the line
that changed; the `Style` it had says how to get the very same bytes back.
"""

from __future__ import annotations

import codecs
import importlib
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Final

from statek_sim.cassettes.exchange import Headers, header, media_type
from statek_sim.values import JSON

LARGEST: Final = 256 * 1024 * 1024
"""Bytes that a compressed body may have when it is opened."""

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CHARSET: Final = re.compile(r"charset=\"?([\w.:-]+)", re.IGNORECASE)
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_CONTROL_BYTES: Final = bytes((*range(0x09), *range(0x0E, 0x1B), *range(0x1C, 0x20)))
_PART_TYPE: Final = re.compile(rb"\r?\ncontent-type:[ \t]*([\w.+/-]+)", re.IGNORECASE)
_PARTS: Final = "multipart/"
_ZSTD_STEP: Final = 256
"""Bytes of a compressed body that are opened at once; a block of 128 KiB takes four of them at least."""


class Undecodable(ValueError):
    """A body cannot be read, so that nobody can say what secrets are in it."""


class TooLarge(Undecodable):
    """A compressed body has more in it than is opened."""


@dataclass(frozen=True, slots=True)
class Text:
    """A body as text, and how it becomes bytes again. `binary` when it is none and each byte is a character."""

    text: str
    codec: str
    mark: bytes = b""
    binary: bool = False

    def encoded(self, text: str) -> bytes:
        """Return a changed text as the body it would have been."""
        return self.mark + text.encode(self.codec, "surrogateescape" if self.codec == "utf-8" else "strict")


def as_text(body: bytes, headers: Headers = ()) -> Text:
    """Return a body as text; what is none comes as bytes that are characters, and says so."""
    for mark, codec in _MARKS:
        if body.startswith(mark):
            rest = body[len(mark) :]
            return _plain(rest, mark) or _with(rest, codec, mark) or _bytes(body)
    if (plain := _plain(body)) is not None:
        return plain
    charset = _CHARSET.search(header(headers, "content-type") or "")
    for codec in (*(_known(charset[1]) if charset else ()), *_guessed(body), "utf-8"):
        found = _with(body, codec)
        if found is not None:
            return found
    text = body.decode("utf-8", "surrogateescape")
    # A text that was cut within a character, or in a set of characters that nobody told.
    return _bytes(body) if _CONTROLS.search(text) else Text(text, "utf-8")


def is_allowed(body: bytes, headers: Headers, allowed: Iterable[str]) -> bool:
    """Whether a body that is no text may be recorded: all that it is, or has as parts, is named."""
    kind = media_type(headers)
    kinds = [kind]
    if kind.startswith(_PARTS):
        kinds = [found.decode("ascii").lower() for found in _PART_TYPE.findall(body)] or [kind]
    names = [name.lower() for name in allowed]
    return all(any(fnmatchcase(kind, name) for name in names) for kind in kinds)


def opened(body: bytes, encoding: str, most: int = LARGEST) -> bytes:
    """Return a body without its content encodings, such as `gzip` or `deflate, gzip`; `Undecodable` if impossible.

    `TooLarge` when that is more than `most` bytes.
    """
    for name in reversed([part.strip().lower() for part in encoding.split(",")]):
        if name not in ("", "identity") and body:
            try:
                body = _opened(body, name, most)
            except TooLarge:
                raise
            except Undecodable:
                # Some clients have undone it, and leave the header.
                if as_text(body).binary:
                    raise
    return body


def _opened(body: bytes, name: str, most: int) -> bytes:
    try:
        if name in ("gzip", "x-gzip"):
            return _inflated(body, zlib.MAX_WBITS | 16, most)
        if name == "deflate":
            return _inflated(body, zlib.MAX_WBITS if body[0] & 0x0F == 8 else -zlib.MAX_WBITS, most)
        if name == "br":
            return bytes(_package("brotli", "brotlicffi").decompress(body))
        if name == "zstd":
            return _of_zstd(body, most)
    except TooLarge:
        raise
    except ImportError:
        raise Undecodable(f"content encoding {name!r} needs a package that is not installed") from None
    except Exception as error:  # noqa: BLE001  # each package has errors of its own
        raise Undecodable(f"the body is not the {name!r} that its header says: {error}") from None
    raise Undecodable(f"content encoding {name!r} is not known here")


def _of_zstd(body: bytes, most: int) -> bytes:
    package = _package("compression.zstd", "backports.zstd", "zstandard")
    pieces: list[bytes] = []
    size = at = 0
    while at < len(body):
        frame = package.ZstdDecompressor()
        # The package zstandard has an object for each frame, whose output cannot be bounded but by its input.
        frame = frame.decompressobj() if hasattr(frame, "decompressobj") else frame
        while not frame.eof:
            if at >= len(body):
                raise Undecodable("it ends too early")
            pieces.append(frame.decompress(body[at : at + _ZSTD_STEP]))
            at += _ZSTD_STEP
            size += len(pieces[-1])
            if size > most:
                raise TooLarge(f"more than {most} bytes")
        at = min(at, len(body)) - len(frame.unused_data)
    return b"".join(pieces)


def _inflated(body: bytes, bits: int, most: int) -> bytes:
    pieces, size = [], 0
    while body:
        inflater = zlib.decompressobj(bits)
        piece = inflater.decompress(body, most - size + 1)
        size += len(piece)
        if size > most:
            raise TooLarge(f"more than {most} bytes")
        if not inflater.eof:
            raise Undecodable("it ends too early")
        pieces.append(piece)
        # A gzip file may have several members.
        body = inflater.unused_data if bits > zlib.MAX_WBITS else b""
    return b"".join(pieces)


def _package(*names: str) -> Any:
    """Return the first package that is there; optional, and needed while recording and scanning only."""
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ImportError(names[0])


def _plain(body: bytes, mark: bytes = b"") -> Text | None:
    """Return a body that is printable ASCII, whatever it says that it is: in UTF-16 a secret has zeros in it."""
    return (
        Text(body.decode("ascii"), "utf-8", mark)
        if body.isascii() and len(body.translate(None, _CONTROL_BYTES)) == len(body)
        else None
    )


def _with(body: bytes, codec: str, mark: bytes = b"") -> Text | None:
    try:
        text = body.decode(codec)
    except (UnicodeDecodeError, LookupError):
        return None
    if _CONTROLS.search(text) or (codec != "utf-8" and text.encode(codec, "replace") != body):
        return None
    return Text(text, codec, mark)


def _bytes(body: bytes) -> Text:
    # Every byte is a character of Latin-1, so that a key between binary data is found too.
    return Text(body.decode("latin-1"), "latin-1", binary=True)


def _known(charset: str) -> tuple[str, ...]:
    try:
        name = codecs.lookup(charset).name
    except LookupError:
        return ()
    return (f"{name}-le", f"{name}-be") if name in ("utf-16", "utf-32") else (name,)


def _guessed(body: bytes) -> tuple[str, ...]:
    """Return what a body without a mark may be: mostly ASCII in UTF-16 has a zero in every second place."""
    head = body[:400]
    if len(body) % 2 or head.count(0) * 3 < len(head):
        return ()
    return ("utf-16-le",) if head[1::2].count(0) > head[::2].count(0) else ("utf-16-be",)


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
