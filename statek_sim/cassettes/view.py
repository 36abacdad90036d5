"""A text as somebody reads it who undoes an encoding, and for each of its characters where it stands in the source.

Secrets are looked for in views: of a body, of the texts in its JSON, of the pieces of a stream put together, without
escapes, percent signs, HTML's references or Base64. What is found in any of them is replaced in the one source, so
that no rule has to know how a secret was written.
"""

from __future__ import annotations

import html
import re
from array import array
from base64 import b64decode
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
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
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
# No text has these; whatever else UTF-8 can say may be in one, joined emoji and codes of colours included.
_UNWRITTEN: Final = re.compile(r"[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f\ufffd]")
_BEHIND: Final = 8
"""Characters that letters directly behind Base64 can become."""
_LEAST: Final = 16
"""Characters of a text that something is cut off from."""
_COLOUR: Final = re.compile(r"\x1b\[[0-?]{0,40}[ -/]{0,8}[@-~]")
_STANDARD: Final = str.maketrans("-_", "+/")
_SHORT: Final = 16
"""Characters of Base64 below which it is read for the password of a login only: many a word is Base64 of something."""
_FIRST: Final = 64
"""Characters of Base64 that tell whether it is a text."""
LARGE: Final = 100_000
"""Characters from which on only the parts of a text are read again that an encoding was undone in."""
AROUND: Final = 8_000
"""Characters on each side of what was decoded that are read with it: more than any secret with its name has."""
EDGE: Final = 300
"""Characters at a cut where nothing counts, since what stands before or behind them is not seen."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """One layer of an encoding: what is undone, and what that becomes."""

    pattern: re.Pattern[str]
    plain: Callable[[re.Match[str]], str]


@dataclass(frozen=True, slots=True)
class Changed:
    """A view, or a part of one, with a layer of an encoding undone; secrets between two places of the source count."""

    view: View
    bounds: Callable[[], Range] | None = None


class View:
    """A text with the places of its characters in a source; the places are worked out when they are asked for."""

    __slots__ = ("_is_joined", "_make", "_places", "_stands_for", "text")

    def __init__(self, text: str, make: Callable[[], Places], *, is_joined: bool = False) -> None:
        self.text = text
        self._make = make
        self._places: Places | None = None
        self._stands_for = b""
        self._is_joined = is_joined

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
                array("q", chain.from_iterable(piece.places[0] for piece in pieces)),
                array("q", chain.from_iterable(piece.places[1] for piece in pieces)),
                more,
            )

        return cls("".join(piece.text for piece in pieces), places, is_joined=True)

    @property
    def places(self) -> Places:
        """Where the characters are in the source."""
        if self._places is None:
            self._places = self._make()
        return self._places

    def stands_for(self) -> bytes:
        """Return something that is the same for views whose characters are at the same places of the source."""
        if not self._stands_for:
            starts, ends, more = self.places
            digest = blake2b(repr(sorted(more.items())).encode(), digest_size=16)
            for places in (starts, ends):
                digest.update(places if isinstance(places, array) else array("q", places))
            self._stands_for = digest.digest()
        return self._stands_for

    def cut(self, start: int, end: int) -> View:
        """Return a part."""

        def places() -> Places:
            starts, ends, more = self.places
            part = {number - start: ranges for number, ranges in more.items() if start <= number < end}
            return starts[start:end], ends[start:end], part

        return View(self.text[start:end], places, is_joined=self._is_joined)

    def ranges(self, start: int, end: int) -> list[Range]:
        """Return where a part stands in the source: one range, or one per piece."""
        starts, ends, more = self.places
        places = [
            place
            for number in range(start, end)
            for place in ((starts[number], ends[number]), *more.get(number, ()))
        ]
        found: list[Range] = []
        for left, right in sorted(places) if more else places:
            if found and found[-1][0] <= left <= found[-1][1]:
                found[-1] = (found[-1][0], max(found[-1][1], right))
            else:
                found.append((left, right))
        return found

    def with_aside(self, ranges: Sequence[Range]) -> View:
        """Return the view, of which each character stands for more of the source, too."""

        def places() -> Places:
            starts, ends, more = self.places
            return starts, ends, {at: [*more.get(at, ()), *ranges] for at in range(len(self.text))}

        return View(self.text, places, is_joined=True)

    def decoded(self, decoding: Decoding) -> View:
        """Return the view without one layer of an encoding; what is none stays."""

        def places() -> Places:
            old_starts, old_ends, old_more = self.places
            starts, ends = array("q"), array("q")
            more: dict[int, list[Range]] = {}
            waiting = deque(sorted(old_more))
            at = 0

            def keep(until: int) -> None:
                shift = len(starts) - at
                while waiting and waiting[0] < until:
                    number = waiting.popleft()
                    if number >= at:
                        more[number + shift] = old_more[number]
                starts.extend(old_starts[at:until])
                ends.extend(old_ends[at:until])

            for match in decoding.pattern.finditer(self.text):
                keep(match.start())
                # An escape may be in two pieces of a stream.
                (left, right), *others = self.ranges(*match.span())
                for _ in decoding.plain(match):
                    if others:
                        more[len(starts)] = others
                    starts.append(left)
                    ends.append(right)
                at = match.end()
            keep(len(self.text))
            return starts, ends, more

        text = decoding.pattern.sub(decoding.plain, self.text)
        return View(text, places, is_joined=self._is_joined)

    def changed(self, decoding: Decoding) -> Iterator[Changed]:
        """Yield the view without one layer of an encoding, if it has it; of a large one the parts that it stands in.

        What is read once need not be read again because of a percent sign somewhere else: a page of some megabytes has
        a few of each encoding, and all their combinations.
        """
        parts = [] if len(self.text) < LARGE or self._is_joined else self._parts(decoding)
        if not parts or 2 * sum(end - start for start, end in parts) > len(self.text):
            whole = self.decoded(decoding)
            if whole.text != self.text:
                yield Changed(whole)
            return
        for start, end in parts:
            yield Changed(self.cut(start, end).decoded(decoding), partial(self._bounds, start, end))

    def _parts(self, decoding: Decoding) -> list[Range]:
        """Return the parts in which something is decoded, with what is around it."""
        parts: list[Range] = []
        for match in decoding.pattern.finditer(self.text):
            if parts and match.end() + AROUND <= parts[-1][1]:
                continue
            if decoding.plain(match) != match[0]:
                start, end = max(0, match.start() - AROUND), min(len(self.text), match.end() + AROUND)
                if parts and start <= parts[-1][1]:
                    start = parts.pop()[0]
                parts.append((start, end))
        return parts

    def _bounds(self, start: int, end: int) -> Range:
        """Return between which places of the source a secret counts that is seen in a part."""
        starts, ends, _ = self.places
        left = starts[start + EDGE] if start else 0
        right = ends[end - 1 - EDGE] if end < len(self.text) else ends[-1]
        return left, right

    def unescaped(self) -> View:
        """Return the view without one layer of JSON's escapes; what is no escape stays."""
        return self.decoded(ESCAPES)

    def without_percent(self) -> View:
        """Return the view without one layer of percent-encoding."""
        return self.decoded(PERCENT)

    def without_plus(self) -> View:
        """Return the view with the spaces that forms write as a plus."""
        return View(self.text.replace("+", " "), lambda: self.places, is_joined=self._is_joined)

    def without_quoted(self) -> View:
        """Return the view without quoted-printable (RFC 2045): its escapes, and the ends of lines that are none."""
        return self.decoded(_SOFT_ENDS).decoded(_QUOTED_LETTERS)

    def unfolded(self) -> Iterator[View]:
        """Yield the view of a header's value without the line breaks that fold it, as readers differ about them."""
        yield self.decoded(Decoding(_FOLD, lambda match: ""))
        yield self.decoded(Decoding(_FOLD, lambda match: " "))
        yield self.decoded(Decoding(_FOLD, lambda match: match[0].lstrip("\r\n")[1:]))

    def base64_texts(self) -> Iterator[tuple[int, int, str]]:
        """Yield the parts that are Base64 of a text, as start and end in the view, and that text."""
        for match in _BASE64.finditer(self.text):
            text = base64_text(match[0])
            if text and (len(match[0]) >= _SHORT or ":" in text):
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
        content = b64decode(token + "=" * (-len(token) % 4))
    except ValueError:
        return ""
    # PowerShell's commands: UTF-16, of which every second byte is a zero where the text is ASCII.
    wide = 2 * content[1::2].count(0) > len(content[1::2])
    if content.isascii() and 8 * content.count(0) < len(content):
        # Variables as the kernel keeps them: each ends in a zero.
        content = content.replace(b"\0", b"\n")
    text = content.decode("utf-16-le" if wide else "utf-8", "replace")
    # A text that was cut ends in the middle of a character; one that something stands behind, in what that would be.
    text = text.rstrip("\ufffd")
    end = _UNWRITTEN.search(text)
    if end is None:
        return text
    return text[: end.start()] if end.start() >= max(len(text) - _BEHIND, _LEAST) else ""


def _unquoted(match: re.Match[str]) -> str:
    return bytes.fromhex(match[0].replace("=", "")).decode("utf-8", "replace")


def _unescaped(match: re.Match[str]) -> str:
    high, low, code, letter = match.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    if code:
        return chr(int(code, 16))
    return _PLAIN.get(letter, letter)


ESCAPES: Final = Decoding(_ESCAPE, _unescaped)
"""JSON's escapes."""
PERCENT: Final = Decoding(_PERCENT, lambda match: unquote_to_bytes(match[0]).decode("utf-8", "replace"))
"""Percent-encoding."""
REFERENCES: Final = Decoding(_REFERENCE, lambda match: html.unescape(match[0]))
"""HTML's character references."""
COLOURS: Final = Decoding(_COLOUR, lambda match: "")
"""What terminals take for colours and the like (ECMA-48), within a word."""
COLOURS_BETWEEN: Final = Decoding(_COLOUR, lambda match: " ")
"""The same, between words."""
_SOFT_ENDS: Final = Decoding(_SOFT, lambda match: "")
_QUOTED_LETTERS: Final = Decoding(_QUOTED, _unquoted)
