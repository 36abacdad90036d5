"""A text as somebody reads it who undoes an encoding, and for each of its characters where it stands in the source.

Secrets are looked for in views: of a body, of the texts in its JSON, of the pieces of a stream put together, without
escapes, percent signs, HTML's references or Base64. What is found in any of them is replaced in the one source, so
that no rule has to know how a secret was written.
"""

from __future__ import annotations

import html
import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final, Self
from urllib.parse import unquote_to_bytes

Range = tuple[int, int]
"""A start and an end in the source."""
Places = tuple[Sequence[int], Sequence[int], dict[int, list[Range]]]
"""For each character where it starts in the source, and where it ends; and what more of the source some stand for."""

_ESCAPE: Final = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|([\"'\\/nrtbf]))"
)
_PLAIN: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_PERCENT: Final = re.compile(r"%[0-7][0-9A-Fa-f]|(?:%[89A-Fa-f][0-9A-Fa-f])+")
_REFERENCE: Final = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,8});")
_SOFT: Final = re.compile(r"=[ \t]{0,99}\r?\n")
_QUOTED: Final = re.compile(r"=[0-7][0-9A-Fa-f]|(?:=[89A-Fa-f][0-9A-Fa-f])+")
_FOLD: Final = re.compile(r"\r?\n[ \t]+")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_STANDARD: Final = str.maketrans("-_", "+/")
_FIRST: Final = 64
"""Characters of Base64 that tell whether it is a text."""


class View:
    """A text with the places of its characters in a source; the places are worked out when they are asked for."""

    __slots__ = ("_make", "_places", "text")

    def __init__(self, text: str, make: Callable[[], Places]) -> None:
        self.text = text
        self._make = make
        self._places: Places | None = None

    @classmethod
    def of(cls, source: str) -> Self:
        """Return a source as it is."""
        size = len(source)
        return cls(source, lambda: (range(size), range(1, size + 1), {}))

    @classmethod
    def joined(cls, pieces: Sequence[View]) -> Self:
        """Return views as one."""

        def places() -> Places:
            more: dict[int, list[Range]] = {}
            at = 0
            for piece in pieces:
                more |= {at + number: ranges for number, ranges in piece.places[2].items()}
                at += len(piece.text)
            return (
                list(chain.from_iterable(piece.places[0] for piece in pieces)),
                list(chain.from_iterable(piece.places[1] for piece in pieces)),
                more,
            )

        return cls("".join(piece.text for piece in pieces), places)

    @property
    def places(self) -> Places:
        """Where the characters are in the source."""
        if self._places is None:
            self._places = self._make()
        return self._places

    def cut(self, start: int, end: int) -> View:
        """Return a part."""

        def places() -> Places:
            starts, ends, more = self.places
            part = {number - start: ranges for number, ranges in more.items() if start <= number < end}
            return starts[start:end], ends[start:end], part

        return View(self.text[start:end], places)

    def ranges(self, start: int, end: int) -> list[Range]:
        """Return where a part stands in the source: one range, or one per piece."""
        starts, ends, more = self.places
        found: list[Range] = []
        for number in range(start, end):
            for left, right in ((starts[number], ends[number]), *more.get(number, ())):
                if found and found[-1][0] <= left <= found[-1][1]:
                    found[-1] = (found[-1][0], max(found[-1][1], right))
                else:
                    found.append((left, right))
        return found

    def _decoded(self, pattern: re.Pattern[str], plain: Callable[[re.Match[str]], str]) -> View:
        def places() -> Places:
            old_starts, old_ends, old_more = self.places
            starts: list[int] = []
            ends: list[int] = []
            more: dict[int, list[Range]] = {}
            at = 0

            def keep(until: int) -> None:
                if old_more:
                    shift = len(starts) - at
                    more.update({n + shift: ranges for n, ranges in old_more.items() if at <= n < until})
                starts.extend(old_starts[at:until])
                ends.extend(old_ends[at:until])

            for match in pattern.finditer(self.text):
                keep(match.start())
                # An escape may be in two pieces of a stream.
                (left, right), *others = self.ranges(*match.span())
                for _ in plain(match):
                    if others:
                        more[len(starts)] = others
                    starts.append(left)
                    ends.append(right)
                at = match.end()
            keep(len(self.text))
            return starts, ends, more

        return View(pattern.sub(plain, self.text), places)

    def unescaped(self) -> View:
        """Return the view without one layer of JSON's escapes; what is no escape stays."""
        return self._decoded(_ESCAPE, _unescaped)

    def without_percent(self) -> View:
        """Return the view without one layer of percent-encoding."""
        return self._decoded(_PERCENT, lambda match: unquote_to_bytes(match[0]).decode("utf-8", "replace"))

    def without_plus(self) -> View:
        """Return the view with the spaces that forms write as a plus."""
        return View(self.text.replace("+", " "), lambda: self.places)

    def without_references(self) -> View:
        """Return the view without HTML's character references."""
        return self._decoded(_REFERENCE, lambda match: html.unescape(match[0]))

    def without_quoted(self) -> View:
        """Return the view without quoted-printable (RFC 2045): its escapes, and the ends of lines that are none."""
        whole = self._decoded(_SOFT, lambda match: "")
        return whole._decoded(_QUOTED, _unquoted)

    def unfolded(self) -> Iterator[View]:
        """Yield the view of a header's value without the line breaks that fold it, as readers differ about them."""
        yield self._decoded(_FOLD, lambda match: "")
        yield self._decoded(_FOLD, lambda match: " ")
        yield self._decoded(_FOLD, lambda match: match[0].lstrip("\r\n")[1:])

    def base64_texts(self) -> Iterator[tuple[int, int, str]]:
        """Yield the parts that are Base64 of a text, as start and end in the view, and that text."""
        for match in _BASE64.finditer(self.text):
            text = base64_text(match[0])
            if text:
                yield match.start(), match.end(), text


def unescaped(text: str) -> str:
    """Return a text without one layer of JSON's escapes; what is no escape stays."""
    return _ESCAPE.sub(_unescaped, text) if "\\" in text else text


def base64_text(token: str) -> str:
    """Return the text that a token is Base64 of, or nothing when it is no Base64, or of no text."""
    token = token.rstrip("=").translate(_STANDARD)
    if not _printable(token[:_FIRST]):
        return ""
    return _printable(token)


def _printable(token: str) -> str:
    token = token[: len(token) - 1] if len(token) % 4 == 1 else token
    try:
        text = b64decode(token + "=" * (-len(token) % 4)).decode("utf-8", "replace")
    except ValueError:
        return ""
    # A text that was cut ends in the middle of a character at most.
    text = text.rstrip("\ufffd")
    plain = text.replace("\n", "").replace("\r", "").replace("\t", "")
    return text if "\ufffd" not in plain and plain.isprintable() else ""


def _unquoted(match: re.Match[str]) -> str:
    return bytes.fromhex(match[0].replace("=", "")).decode("utf-8", "replace")


def _unescaped(match: re.Match[str]) -> str:
    high, low, code, letter = match.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    if code:
        return chr(int(code, 16))
    return _PLAIN.get(letter, letter)
