"""Views of a text for guards: one without disguises, and others with encoded parts decoded.

Rules match views, never the raw text, so nothing can be hidden by full-width letters, zero-width spaces, look-alike
letters from other alphabets, spaced-out letters, base64, binary digits, percent-encoding, character references, ROT13,
reversed words or digits in place of letters. Every view maps its characters to positions in the original, so that a
match can be replaced there.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_letters, digits, hexdigits
from typing import Final
from urllib.parse import unquote

from statek_sim.agent.guards.substring_index import Needles
from statek_sim.agent.schema import JSON_ESCAPES

MOST_DECODED: Final = 65_536
"""The maximum number of decoded characters per text, across all views."""

LOOK_ALIKE: Final = str.maketrans(
    "авекмнорстухіѕјԁԛԝһьАВЕКМНОРСТУХІЅЈԀԚԜΑΒΕΖΗΙΚΜΝΟΡΤΥΧοιν",
    "abekmhopctyxisjdqwhbABEKMHOPCTYXISJDQWABEZHIKMNOPTYXoiv",
)
"""A `str.translate` table that maps letters from other alphabets to the Latin letters they resemble."""
_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]"
)
_FOREIGN: Final = re.compile(r"[^\x00-\x7f]+")
_TAG: Final = re.compile("[\U000e0020-\U000e007e]")
# Separators are never letters, so that a run can be read in one way only.
_APART: Final = re.compile(r"(?<![^\W_])(?:[^\W_][ .*_|~-]{1,3}){4,}[^\W_](?![^\W_])")
_BETWEEN: Final = re.compile(r"[ .*_|~-]{1,3}")
_ENCODED: Final = re.compile(
    r"(?P<base64>(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{20,}={0,2})"
    r"|(?P<hex>(?<![0-9A-Za-z])[0-9A-Fa-f]{2}(?:[ :]?[0-9A-Fa-f]{2}){11,}(?![0-9A-Za-z]))"
    r"|(?P<percent>(?:%[0-9A-Fa-f]{2})+)"
    r"|(?P<reference>&(?:#[0-9]{1,6}|#x[0-9A-Fa-f]{1,6}|[a-z]{2,8});)"
    r"|(?P<escape>\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2})"
)
_MARK: Final = re.compile(r"[%&\\]")
_LONGEST_MARK: Final = 10
"""The maximum length of a percent-escape, character reference or escape sequence. Percent-escapes count singly."""
_LEAST_BASE64: Final = 20
_LEAST_HEX: Final = 24
_MOST_WORDS: Final = 2


def _shape_of(characters: str) -> bytes:
    """Return a table that maps `characters` to `x` and all others to a space."""
    return bytes(ord("x") if chr(code) in characters else ord(" ") for code in range(256))


_IN_BASE64: Final = _shape_of(f"{ascii_letters}{digits}+/_-")
_IN_HEX: Final = _shape_of(f"{hexdigits} :")
_IN_WORD: Final = _shape_of(f"{ascii_letters}{digits}?")
"""A table for ASCII words in which other letters have become question marks."""
_ALONE: Final = re.compile(rb" x {1,3}x {1,3}x ")
"""Matches three separated letters, which every text matched by `_APART` contains."""

_TELLTALES: Final = (
    "ignore", "disregard", "forget", "instruct", "prompt", "previous", "reveal", "override", "system", "pretend",
    "developer", "unrestricted", "you are", "your",
)  # fmt: skip
"""Words typical of attacks. A text is deciphered only if it contains one of them in enciphered form."""
_ROT13: Final = str.maketrans(
    ascii_letters, "".join(run[13:] + run[:13] for run in (ascii_letters[:26], ascii_letters[26:]))
)
_IN_ROT13: Final = Needles(word.translate(_ROT13) for word in _TELLTALES)
_BACKWARDS: Final = Needles(word[::-1] for word in _TELLTALES)

_LEET: Final = str.maketrans("0134578@$", "oieastbas")
_LEET_SHAPE: Final = bytes(
    ord("x") if chr(code) in ascii_letters else ord("1") if chr(code) in "0134578@$" else ord(" ")
    for code in range(256)
)
# Match only at the start of such a run; otherwise runs of digits would be scanned from every position.
_LEET_WORD: Final = re.compile(r"(?<![a-z0134578@$])[a-z0134578@$]*[a-z][a-z0134578@$]*")
_LEAST_LEET: Final = 3
"""How many single digits must be between letters for digits to be read as letters."""
_LEAST_MIXED: Final = 2
"""The same minimum where one or two letters are between digits, as in `1gn0r3 pr3v10us`."""

_JSON_ESCAPE: Final = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})')


@dataclass(frozen=True, slots=True)
class View:
    """A view of a text. In `text`, look-alikes are Latin letters; `starts` and `ends` are positions in the original.

    `lowered` is `text` in lower case, with the same length.
    """

    name: str
    text: str
    lowered: str
    starts: Sequence[int]
    ends: Sequence[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the original text that corresponds to the view's characters from `start` to `end`."""
        last = end - 1
        return min(self.starts[start], self.starts[last]), max(self.ends[start], self.ends[last])


@lru_cache(maxsize=8)
def views(text: str) -> tuple[View, ...]:
    """Return the views of a text: one without disguises and, where they differ, joined, decoded and deciphered ones.

    Recent texts are cached, because several guards check the same text.
    """
    plain = _plain("plain", text, range(len(text)), range(1, len(text) + 1))
    others = (_joined_letters(plain), _decoded(text))
    return (plain, *(view for view in others if view is not None), *_deciphered(plain))


def _plain(name: str, text: str, starts: Sequence[int], ends: Sequence[int]) -> View:
    if text.isascii():
        return View(name, text, text.lower(), starts, ends)
    pieces: list[str] = []
    lowered: list[str] = []
    kept_starts: list[int] = []
    kept_ends: list[int] = []
    done = 0

    def as_it_is(end: int) -> None:
        if end > done:
            run = text[done:end]
            pieces.append(run)
            lowered.append(run.lower())
            kept_starts.extend(starts[done:end])
            kept_ends.extend(ends[done:end])

    for found in _FOREIGN.finditer(text):
        as_it_is(found.start())
        done = found.end()
        for position in range(*found.span()):
            for one in _undisguised(text[position]):
                shown = one.translate(LOOK_ALIKE)
                small = shown.lower()
                pieces.append(shown)
                lowered.append(small if len(small) == 1 else shown)
                kept_starts.append(starts[position])
                kept_ends.append(ends[position])
    as_it_is(len(text))
    return View(name, "".join(pieces), "".join(lowered), kept_starts, kept_ends)


@lru_cache(maxsize=8192)
def _undisguised(character: str) -> str:
    """Return the plain form of a character, or an empty string if it is invisible."""
    if character.isascii():
        return character
    if _INVISIBLE.match(character):
        return ""
    if _TAG.match(character):
        return chr(ord(character) - 0xE0000)
    if unicodedata.category(character) == "Zs":
        return " "
    return unicodedata.normalize("NFKC", character)


def _joined_letters(view: View) -> View | None:
    """Return the view with separated letters joined (`i g n o r e`), or None if there are none."""
    if _ALONE.search(view.text.encode("ascii", "replace").translate(_IN_WORD)) is None:
        return None
    pieces: list[tuple[int, int]] = []
    done = 0
    for found in _APART.finditer(view.text):
        pieces.append((done, found.start()))
        [(usual, _)] = Counter(_BETWEEN.findall(found[0])).most_common(1)
        position = found.start()
        while position < found.end():
            gap = position + 1
            while gap < found.end() and not view.text[gap].isalnum():
                gap += 1
            pieces.append((position, position + 1))
            between = view.text[position + 1 : gap]
            if len(between) == 3 and between[0] == between[2] != between[1]:
                # A punctuation mark that is separated like the letters.
                pieces.append((position + 2, position + 3))
            elif len(between) > 1 or (between and between != usual):
                # Words are separated by two or more spaces if one space separates letters, else by one space.
                pieces.append((position + 1, position + 2))
            position = gap
        done = found.end()
    if not pieces:
        return None
    pieces.append((done, len(view.text)))
    return View(
        "put together",
        "".join([view.text[start:end] for start, end in pieces]),
        "".join([view.lowered[start:end] for start, end in pieces]),
        [at for start, end in pieces for at in view.starts[start:end]],
        [at for start, end in pieces for at in view.ends[start:end]],
    )


def _deciphered(view: View) -> Iterator[View]:
    """Yield the view in ROT13, reversed, and with digits read as letters, each only if it may be written that way."""
    if _IN_ROT13.within(view.lowered):
        yield View(
            "rot13", view.text.translate(_ROT13), view.lowered.translate(_ROT13), view.starts, view.ends
        )
    if _BACKWARDS.within(view.lowered):
        yield View("backwards", view.text[::-1], view.lowered[::-1], view.starts[::-1], view.ends[::-1])
    shape = view.lowered.encode("ascii", "replace").translate(_LEET_SHAPE)
    if shape.count(b"x1x") >= _LEAST_LEET or shape.count(b"1x1") + shape.count(b"1xx1") >= _LEAST_MIXED:
        clear = _LEET_WORD.sub(lambda word: word[0].translate(_LEET), view.lowered)
        yield View("leet", clear, clear, view.starts, view.ends)


def _decoded(text: str) -> View | None:
    """Return the text with all encoded parts decoded, or None if nothing is encoded."""
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    done, left = 0, MOST_DECODED
    for found in _encoded(text):
        clear = _clear(found.lastgroup or "", found[0])
        if clear is None or len(clear) > left:
            continue
        left -= len(clear)
        start, end = found.span()
        pieces += (text[done:start], clear)
        starts += (*range(done, start), *[start] * len(clear))
        ends += (*range(done + 1, start + 1), *[end] * len(clear))
        done = end
    if not pieces:
        return None
    pieces.append(text[done:])
    starts += range(done, len(text))
    ends += range(done + 1, len(text) + 1)
    return _plain("decoded", "".join(pieces), starts, ends)


def _encoded(text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of `_ENCODED` in a text, after quickly locating the parts where a match is possible."""
    shape = text.encode("ascii", "replace")
    parts = [
        *_runs(shape.translate(_IN_BASE64), _LEAST_BASE64),
        *_runs(shape.translate(_IN_HEX), _LEAST_HEX),
        *((mark.start(), mark.start() + _LONGEST_MARK) for mark in _MARK.finditer(text)),
    ]
    for start, end in joined(parts):
        yield from _ENCODED.finditer(text, start, end)


def _runs(shape: bytes, least: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of at least `least` consecutive `x`."""
    start = shape.find(b"x" * least)
    while start >= 0:
        end = shape.find(b" ", start)
        end = len(shape) if end < 0 else end
        # Base64 text may end with two characters that are in no run.
        yield start, end + 2
        start = shape.find(b"x" * least, end)


def _clear(how: str, encoded: str) -> str | None:
    """Return an encoded part in decoded form, or None if it is not readable."""
    match how:
        case "base64":
            return _sentence(_from_base64(encoded)) or _sentence(_from_hex(encoded))
        case "hex":
            return _sentence(_from_bits(encoded)) or _among_words(encoded)
        case "percent":
            return unquote(encoded, errors="ignore")
        case "reference":
            return html.unescape(encoded)
        case _:
            return chr(int("0x" + encoded[2:], base=0))


def _among_words(encoded: str) -> str | None:
    """Return the text in hexadecimal digits, ignoring words at either end that look hexadecimal, such as `be`."""
    words = encoded.replace(":", " ").split(" ")
    edges = range(min(_MOST_WORDS, len(words) - 1) + 1)
    tries = (words[first : len(words) - last] for first in edges for last in edges)
    return next(filter(None, (_sentence(_from_hex(" ".join(some))) for some in tries)), None)


def _from_base64(encoded: str) -> bytes | None:
    bare = encoded.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except binascii.Error:
        return None


def _from_bits(encoded: str) -> bytes | None:
    """Return the bytes encoded as binary digits, eight per byte."""
    bits = encoded.replace(" ", "").replace(":", "")
    if bits.strip("01") or len(bits) % 8:
        return None
    return int(bits, base=2).to_bytes(len(bits) // 8)


def _from_hex(encoded: str) -> bytes | None:
    try:
        return bytes.fromhex(encoded.replace(":", " "))
    except ValueError:
        return None


def _sentence(decoded: bytes | None) -> str | None:
    """Return decoded bytes as a string, or None if it is not printable.

    Bytes that do not encode text are rarely all printable.
    """
    if decoded is None:
        return None
    try:
        text = decoded.decode("utf-8")
    except UnicodeDecodeError:
        return None
    is_text = all(character.isprintable() or character in "\n\t" for character in text)
    return text if is_text else None


def unescaped(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return a JSON string with its escapes decoded, and each character's position in `text`."""
    characters: list[str] = []
    places: list[tuple[int, int]] = []
    done = 0
    for found in _JSON_ESCAPE.finditer(text):
        characters += text[done : found.start()]
        places += [(at, at + 1) for at in range(done, found.start())]
        characters.append(JSON_ESCAPES.get(found[1]) or chr(int(found[1][1:], base=16)))
        places.append(found.span())
        done = found.end()
    characters += text[done:]
    places += [(at, at + 1) for at in range(done, len(text))]
    return "".join(characters), places


def near(places: Iterable[int], reach: int, size: int) -> list[tuple[int, int]]:
    """Return the parts of a text of `size` characters within `reach` of any of `places`, ordered and disjoint."""
    apart: list[tuple[int, int]] = []
    first = last = -1
    for place in sorted(places):
        if first < 0:
            first = place
        elif place - reach > last + reach:
            apart.append((max(0, first - reach), min(size, last + reach)))
            first = place
        last = place
    if first >= 0:
        apart.append((max(0, first - reach), min(size, last + reach)))
    return apart


def joined(parts: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge adjacent parts of a text; the result is in order and disjoint."""
    apart: list[tuple[int, int]] = []
    for start, end in sorted(parts):
        if apart and start <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((start, end))
    return apart
