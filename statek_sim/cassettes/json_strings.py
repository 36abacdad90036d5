"""Finds the strings in JSON documents and their positions, and joins strings that a stream sends in pieces.

A document is a whole body, a line in a body, or a server-sent event's data; it may be truncated. JSON inside a string
is not parsed. Positions refer to the source text, with its escapes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from statek_sim.cassettes.secret_patterns import beside_token, is_opaque

_TOKEN: Final = re.compile(
    r'"(?P<text>(?:[^"\\]++|\\.)*+)(?:"(?P<colon>\s*+:(?:\s*+(?P<number>\d{1,9})\b)?)?|\\?\Z)|[{}\[\],]',
    re.DOTALL,
)
_LINE: Final = re.compile(r"^(?:data:[ ]?|\w:)(?=[{\[\"])[^\r\n]*+", re.MULTILINE)
_PLAIN_DATA: Final = re.compile(r"^data:[ ]?(?![{\[\"])([^\r\n]*+)", re.MULTILINE)
_SORTS: Final = frozenset(
    {"content_index", "index", "item_id", "output_index", "sequence", "summary_index", "type"}
)
"""Keys whose values distinguish strings with the same path in a stream, such as a call's index."""

_MOST_STEPS: Final = 100
"""Maximum number of steps in a path."""
Label = tuple[str | int, ...]


@dataclass(slots=True, eq=False)
class _Frame:
    """An object or list that is being parsed; `name` is the nearest enclosing key."""

    above: _Frame | None
    is_list: bool
    step: str | int
    name: str
    opaque: bool
    key: str = ""
    count: int = 0
    keys: set[str] = field(default_factory=set)
    sorts: dict[str, str] = field(default_factory=dict)

    def label(self) -> Label:
        """Return the path in the document, with the values of `_SORTS` keys along the way."""
        steps: list[str | int] = []
        frame: _Frame | None = self
        while frame is not None and len(steps) < _MOST_STEPS:
            steps += (f"{name}={value}" for name, value in sorted(frame.sorts.items(), reverse=True))
            # The entries of a top-level list are separate documents, as in Gemini's streams without SSE.
            if frame.above is not None and (frame.above.above is not None or not frame.above.is_list):
                steps.append(frame.step)
            frame = frame.above
        return tuple(reversed(steps))


@dataclass(slots=True, eq=False)
class JsonString:
    """A JSON string in a source text, `source[start:end]` without quotes.

    `name` is the key whose value is the string or a list that contains it; empty for other strings and for keys.
    `document` is the index of the string's document in the text.
    """

    start: int
    end: int
    name: str
    opaque: bool
    document: int
    is_name: bool = False
    frame: _Frame | None = None
    step: str | int = ""

    def label(self) -> Label:
        """Return the string's path in its document; the pieces of one streamed string have equal paths."""
        return (*(self.frame.label() if self.frame is not None else ()), self.step)

    @property
    def is_piece_of_text(self) -> bool:
        """Whether neighbouring keys show that the string is a piece of text, not a secret."""
        return self.frame is not None and not self.frame.keys.isdisjoint(beside_token())


def first_sign(text: str) -> str:
    """Return a string's first character after whitespace and a byte order mark."""
    return text.lstrip("\ufeff \t\r\n")[:1]


def is_json(text: str) -> bool:
    """Return whether a string seems to be JSON, JSON lines, or server-sent events with JSON."""
    return first_sign(text) in ("{", "[") or _LINE.search(text) is not None


def json_strings(text: str) -> list[JsonString]:
    """Return the strings from all JSON documents in a string, in order."""
    found: list[JsonString] = []
    if first_sign(text) in ("{", "["):
        _read(text, 0, len(text), found)
    else:
        for line in _LINE.finditer(text):
            _read(text, line.start(), line.end(), found)
    return found


def _read(text: str, start: int, end: int, found: list[JsonString]) -> None:
    document = found[-1].document + 1 if found else 0
    frame: _Frame | None = None
    for match in _TOKEN.finditer(text, start, end):
        sign = match[0]
        if match["text"] is not None:
            if match["colon"] is not None and frame is not None and not frame.is_list:
                key = frame.key = match["text"]
                frame.keys.add(key)
                if match["number"] is not None and key in _SORTS:
                    frame.sorts[key] = match["number"]
                found.append(JsonString(*match.span("text"), "", frame.opaque, document, is_name=True))
            elif frame is None:
                found.append(JsonString(*match.span("text"), "", False, document))
                document += 1
            else:
                step, name = (frame.count, frame.name) if frame.is_list else (frame.key, frame.key)
                if step in _SORTS:
                    frame.sorts[str(step)] = match["text"]
                opaque = frame.opaque or (not frame.is_list and is_opaque(name))
                found.append(JsonString(*match.span("text"), name, opaque, document, frame=frame, step=step))
        elif sign in "{[":
            name, step = (
                ("", 0) if frame is None else (frame.name, frame.count) if frame.is_list else (frame.key,) * 2
            )
            opaque = frame is not None and (frame.opaque or is_opaque(name))
            # An object has its own names.
            frame = _Frame(frame, sign == "[", step, name if sign == "[" else "", opaque)
        elif sign == "," and frame is not None:
            frame.count += frame.is_list
            document += frame.is_list and frame.above is None
        elif sign in "}]" and frame is not None:
            frame = frame.above
            document += frame is None


@dataclass(frozen=True, slots=True)
class Column:
    """A string spread over several pieces of a stream, with escapes as in the source."""

    text: str
    pieces: tuple[tuple[int, int], ...]
    _starts: tuple[int, ...]

    @classmethod
    def of(cls, source: str, pieces: Sequence[tuple[int, int]]) -> Column:
        """Return the column formed by these pieces of a source, given as (start, end)."""
        texts = [source[start:end] for start, end in pieces]
        starts = tuple(accumulate(map(len, texts), initial=0))[:-1]
        return cls("".join(texts), tuple(pieces), starts)

    def ranges(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the source positions, as (start, end), of `text[start:end]`."""
        number = bisect_right(self._starts, start) - 1
        found: list[tuple[int, int]] = []
        while number < len(self.pieces) and self._starts[number] < end:
            piece, at = self.pieces[number], self._starts[number]
            left, right = piece[0] + max(0, start - at), min(piece[1], piece[0] + end - at)
            if left < right:
                found.append((left, right))
            number += 1
        return found


def columns(source: str, strings: Sequence[JsonString]) -> Iterator[Column]:
    """Yield each string joined from the same path in several documents, and the joined plain data of events."""
    if strings and strings[-1].document > strings[0].document:
        by_label: dict[Label, list[tuple[int, int]]] = {}
        for string in strings:
            if not string.is_name and not string.opaque and string.start < string.end:
                by_label.setdefault(string.label(), []).append((string.start, string.end))
        for pieces in by_label.values():
            if len(pieces) > 1:
                yield Column.of(source, pieces)
    if "data:" in source:
        pieces = [match.span(1) for match in _PLAIN_DATA.finditer(source)]
        if len(pieces) > 1:
            yield Column.of(source, pieces)
