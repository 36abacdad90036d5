"""YAML text as plain values, twice as fast as PyYAML's own constructors, with the lines of the interactions.

Knows what a cassette can hold: text, whole and other numbers, flags, nothing, bytes (`!!binary`), aliases, which
vcrpy writes for values that repeat, and two harmless tags of its older releases. Any other tag is refused.
"""

from __future__ import annotations

import gc
import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from statek_sim.errors import BadCassette

MAX_DEPTH: Final = 100
"""Deepest nesting; a cassette needs seven levels, and more where a body is kept as values."""
MAX_DIGITS: Final = 20
"""Longer numbers are text."""

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAGS: Final = "tag:yaml.org,2002:"
_TEXT_TAGS: Final = frozenset({f"{_TAGS}{name}" for name in ("str", "python/str", "python/unicode")})
_PLAIN: Final = {"": None, "~": None, "null": None, "true": True, "false": False}
_NUMBER: Final = re.compile(r"[-+]?(?:\d+(\.\d*)?|(\.\d+))([eE][-+]?\d+)?")
_NUMBER_START: Final = frozenset("+-.0123456789")
_CUT_OFF: Final = "the file seems to be cut off: delete it and record it again"


Keypath = tuple[str | int, ...]
"""Keys and positions from the top of a document."""


@dataclass(slots=True)
class Document:
    """The value of a document, and the lines, from 1, at which the entries of its `interactions` start."""

    value: object = None
    lines: list[int] = field(default_factory=list)
    end: int = 1


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """A large cassette is a million small objects, and all of them stay: looking for garbage doubles the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def loaded(text: str, path: Path) -> Document:
    """Return the only document of a text; `BadCassette` with `path:line` when it is not what a cassette can hold."""
    try:
        return _Builder(path, yaml.parse(text, Loader=_LOADER)).document()
    except yaml.MarkedYAMLError as error:
        raise _malformed(error, text, path) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise BadCassette(f"{path}:{line}: not valid YAML: {error.reason}") from None


class Lines:
    """Where the values of a text are. Slow to make: for errors and findings."""

    def __init__(self, text: str) -> None:
        self._root = yaml.compose(text, Loader=_LOADER)

    def at(self, keypath: Keypath) -> int:
        """Return the line, from 1, of what is at `keypath`, or of the nearest thing above it."""
        line, node = 1, self._root
        for step in keypath:
            node = _child(node, step)
            if node is None:
                break
            line = _line(node.start_mark)
        return line

    def is_block(self, keypath: Keypath) -> bool:
        """Whether the text at `keypath` is written as a block: line by line, from the next line on."""
        node = self._root
        for step in keypath:
            node = _child(node, step)
        return isinstance(node, yaml.ScalarNode) and node.style == "|"


def _child(node: yaml.Node | None, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((item for key, item in node.value if key.value == str(step)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        return node.value[step] if step < len(node.value) else None
    return None


def _malformed(error: yaml.MarkedYAMLError, text: str, path: Path) -> BadCassette:
    mark = error.problem_mark or error.context_mark
    last = text.rstrip("\n").count("\n") + 1
    line = min(_line(mark), last)
    if "nesting depth" in (error.problem or ""):
        # libyaml itself does not go down into it.
        return BadCassette(f"{path}:{line}: nested deeper than {MAX_DEPTH} levels: not a cassette")
    cut_off = f"; {_CUT_OFF}" if line == last else ""
    return BadCassette(f"{path}:{line}: not valid YAML: {error.problem or error}{cut_off}")


class _Builder:
    """Makes values of a parser's events."""

    def __init__(self, path: Path, events: Iterator[yaml.Event]) -> None:
        self._path = path
        self._next = events.__next__
        self._anchors: dict[str, object] = {}
        self._lines: list[int] = []
        self._is_counted = False

    def document(self) -> Document:
        """Return the first document's value; a second one is an error."""
        value: object = None
        documents = 0
        for event in iter(self._next, None):
            if isinstance(event, yaml.StreamEndEvent):
                return Document(value, self._lines, _line(event.start_mark))
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._error(event, "a second document; a cassette is one")
                value = self._value(self._next(), 0)
        raise AssertionError("a stream ends with its end")

    def _value(self, event: yaml.Event, depth: int) -> object:
        """Return the value that starts with this event."""
        value: object
        if isinstance(event, yaml.ScalarEvent):
            value = event.value if event.style and event.tag is None else self._scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        elif depth == MAX_DEPTH:
            raise self._error(event, f"nested deeper than {MAX_DEPTH} levels: not a cassette")
        elif isinstance(event, yaml.MappingStartEvent):
            value = self._mapping(event, depth)
        else:
            assert isinstance(event, yaml.SequenceStartEvent), "a value starts with one of these"
            value = self._list(event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = value
        return value

    def _mapping(self, start: yaml.MappingStartEvent, depth: int) -> dict[object, object]:
        self._refuse(start, f"{_TAGS}map")
        value: dict[object, object] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._value(event, depth + 1)
            if isinstance(key, dict | list):
                raise self._error(event, "a key is a list or mapping: not a cassette")
            if key in value:
                raise self._error(event, f"{key!r} stands here a second time, and would hide the first")
            if depth == 0:
                self._is_counted = key == "interactions"
            value[key] = self._value(self._next(), depth + 1)
        return value

    def _list(self, start: yaml.SequenceStartEvent, depth: int) -> list[object]:
        self._refuse(start, f"{_TAGS}seq")
        value: list[object] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            if depth == 1 and self._is_counted:
                self._lines.append(_line(event.start_mark))
            value.append(self._value(event, depth + 1))
        return value

    def _scalar(self, event: yaml.ScalarEvent) -> object:
        """Return the value of a scalar that is plain or has a tag."""
        text: str = event.value
        if event.tag is None or event.tag == "!":
            return text if event.style else _plain(text)
        if event.tag in _TEXT_TAGS:
            return text
        if event.tag == f"{_TAGS}binary":
            try:
                return b64decode(text)
            except ValueError as error:
                raise self._error(event, f"!!binary: {error}") from None
        raise self._refused(event)

    def _alias(self, event: yaml.AliasEvent) -> object:
        if event.anchor not in self._anchors:
            raise self._error(event, f"nothing is called &{event.anchor} above")
        return self._anchors[event.anchor]

    def _refuse(self, event: yaml.CollectionStartEvent, expected: str) -> None:
        if event.tag not in (None, "!", expected):
            raise self._refused(event)

    def _refused(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> BadCassette:
        return self._error(event, f"the tag {event.tag!r} stands for a Python object, which is not read")

    def _error(self, event: yaml.Event, message: str) -> BadCassette:
        return BadCassette(f"{self._path}:{_line(event.start_mark)}: {message}")


def _line(mark: Any) -> int:  # PyYAML has two kinds of mark, and stubs that say so only in places
    """Return the line of a place, from 1."""
    return 1 if mark is None else int(mark.line) + 1


def _plain(text: str) -> object:
    if text in _PLAIN:
        return _PLAIN[text]
    if text[0] in _NUMBER_START and (match := _NUMBER.fullmatch(text)) and len(text) < MAX_DIGITS:
        return float(text) if match[1] or match[2] or match[3] else int(text)
    return text
