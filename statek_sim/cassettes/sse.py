"""Server-sent events as lines of text, so that one can be changed and all others stay as they were."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from statek_sim.cassettes.jsontext import NotJson, Style, canonical, parsed, style_of, written
from statek_sim.cassettes.secrets import PLACEHOLDER, Sought, Span, find_secrets
from statek_sim.values import JSON

Path = tuple[str | int, ...]
Place = tuple[int, Path]
"""The number of an event, and the place of a text in it."""


@dataclass(frozen=True, slots=True)
class Event:
    """The data of one event that is JSON: the number of its line, the value, and how it was written."""

    line: int
    start: str
    value: JSON
    style: Style


def events(lines: list[str]) -> Iterator[Event]:
    """Yield the JSON events of a stream's lines; data on several lines is passed over."""
    for number, line in enumerate(lines):
        if line.startswith("data:"):
            text = line[5:].strip()
            try:
                value = parsed(text)
            except NotJson:
                continue
            yield Event(number, line[: line.index(text, 5)], value, style_of(text) or Style.COMPACT)


def joined_secrets(found: list[Event], sought: Sought) -> list[tuple[Place, Span]]:
    """Return the parts of secrets that a stream sends in pieces, each with the text it is in.

    A model writes a key as it writes all else, some characters per event. So the texts that the events have at
    the same place are joined before they are searched. The first part of a secret keeps its kind; the kind of the
    parts that follow it is empty.
    """
    parts: list[tuple[Place, Span]] = []
    for pieces in _columns(found).values():
        text = "".join(piece for _, piece in pieces)
        for span in find_secrets(text, sought):
            parts += _parts(pieces, span)
    return parts


def changed(event: Event, spans: list[tuple[Path, Span]]) -> str:
    """Return the line of an event with its texts' spans replaced: the first part by the placeholder."""
    value = event.value
    for path, span in sorted(spans, key=lambda entry: entry[1].start, reverse=True):
        value = _edited(value, path, span)
    return event.start + written(value, event.style)


def _columns(found: list[Event]) -> dict[str, list[tuple[Place, str]]]:
    """Return the texts by place; calls and blocks with another `index` are another place."""
    columns: dict[str, list[tuple[Place, str]]] = {}
    for number, event in enumerate(found):
        for path, label, text in _texts(event.value, (), ()):
            columns.setdefault(canonical(list(label)), []).append(((number, path), text))
    return columns


def _texts(value: JSON, path: Path, label: Path) -> Iterator[tuple[Path, Path, str]]:
    if isinstance(value, str):
        yield path, label, value
    elif isinstance(value, dict):
        index = value.get("index")
        here = (*label, f"#{index}") if isinstance(index, int) else label
        for key, item in value.items():
            yield from _texts(item, (*path, key), (*here, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(item, (*path, number), (*label, number))


def _parts(pieces: list[tuple[Place, str]], span: Span) -> Iterator[tuple[Place, Span]]:
    """Yield the span's share of each piece."""
    offset, kind = 0, span.kind
    for place, text in pieces:
        start, end = max(span.start - offset, 0), min(span.end - offset, len(text))
        if start < end:
            yield place, Span(start, end, kind)
            kind = ""
        offset += len(text)


def _edited(value: JSON, path: Path, span: Span) -> JSON:
    if not path:
        assert isinstance(value, str), "paths lead to texts"
        return value[: span.start] + (PLACEHOLDER if span.kind else "") + value[span.end :]
    if isinstance(value, dict):
        return {key: _edited(item, path[1:], span) if key == path[0] else item for key, item in value.items()}
    assert isinstance(value, list), "paths lead through objects and lists"
    return [_edited(item, path[1:], span) if number == path[0] else item for number, item in enumerate(value)]
