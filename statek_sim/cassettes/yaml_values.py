"""YAML text as plain values, and the places of these values in it.

Knows what a cassette can hold: text, whole and other numbers, flags, nothing, bytes (`!!binary`), aliases, which
vcrpy writes for values that repeat, and two harmless tags of its older releases. Any other tag is refused.
"""

from __future__ import annotations

import gc
import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import yaml

from statek_sim.errors import BadCassette

MAX_DEPTH: Final = 100
"""Deepest nesting; a cassette needs seven levels, and more where a body is kept as values."""
MAX_DIGITS: Final = 40
"""Longer numbers are text; a number of JSON that somebody computed has up to 24 characters."""

_TAGS: Final = "tag:yaml.org,2002:"
_TEXT: Final = f"{_TAGS}str"
_TEXT_TAGS: Final = frozenset({f"{_TAGS}python/str", f"{_TAGS}python/unicode", "!"})
_COLLECTIONS: Final = frozenset({f"{_TAGS}map", f"{_TAGS}seq", "!"})
_UNFINISHED: Final = object()
"""Stands for a list or mapping whose parts are being made."""
_PLAIN: Final = {"": None, "~": None, "null": None, "true": True, "false": False}
# As PyYAML reads and writes them: it leaves texts such as `1e5` and `089` without quotes.
_WHOLE: Final = re.compile(r"[-+]?(?:0|[1-9]\d*)")
_BROKEN: Final = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+)(?:[eE][-+]\d+)?")
_NUMBER_START: Final = frozenset("+-.0123456789")
_CUT_OFF: Final = "the file seems to be cut off: delete it and record it again"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # which one is found at run time
    """Reads nodes; what a plain scalar means is decided here, by `_plain`."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


Keypath = tuple[str | int, ...]
"""Keys and positions from the top of a document."""


@dataclass(slots=True)
class Document:
    """The value of a document, and the places of its parts; `end` is its last line, from 1."""

    value: object
    end: int
    _root: yaml.Node | None

    def line(self, keypath: Keypath) -> int:
        """Return the line, from 1, of what is at `keypath`, or of the nearest thing above it."""
        line, node = 1, self._root
        for step in keypath:
            node = _child(node, step)
            if node is None:
                break
            line = _line(node.start_mark)
        return line

    def lines_of(self, key: str) -> list[int]:
        """Return the lines at which the entries of the list under a key at the top start."""
        node = _child(self._root, key)
        return (
            [_line(entry.start_mark) for entry in node.value] if isinstance(node, yaml.SequenceNode) else []
        )

    def is_block(self, keypath: Keypath) -> bool:
        """Whether the text at `keypath` is written as a block: line by line, from the next line on."""
        node = self._root
        for step in keypath:
            node = _child(node, step)
        return isinstance(node, yaml.ScalarNode) and node.style == "|"


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
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise _malformed(error, text, path) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise BadCassette(f"{path}:{line}: not valid YAML: {error.reason}") from None
    except RecursionError:
        raise BadCassette(f"{path}:1: nested deeper than {MAX_DEPTH} levels: not a cassette") from None
    value = None if root is None else _Values(path).of(root)
    return Document(value, text.count("\n") + 1, root)


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
    if "another document" in (error.problem or ""):
        return BadCassette(f"{path}:{line}: a second document; a cassette is one")
    cut_off = f"; {_CUT_OFF}" if line == last else ""
    return BadCassette(f"{path}:{line}: not valid YAML: {error.problem or error}{cut_off}")


class _Values:
    """Makes values of nodes; what an alias repeats is one value."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._made: dict[int, object] = {}

    def of(self, node: yaml.Node, depth: int = 0) -> object:
        """Return the value of a node."""
        if isinstance(node, yaml.ScalarNode):
            return node.value if node.style and node.tag == _TEXT else self._scalar(node)
        if id(node) in self._made:
            if self._made[id(node)] is _UNFINISHED:
                raise self._error(node, "it has an alias of itself: not a cassette")
            return self._made[id(node)]
        if depth == MAX_DEPTH:
            raise self._error(node, f"nested deeper than {MAX_DEPTH} levels: not a cassette")
        if node.tag not in _COLLECTIONS:
            raise self._refused(node)
        self._made[id(node)] = _UNFINISHED
        value: object
        if isinstance(node, yaml.MappingNode):
            value = self._mapping(node, depth)
        else:
            value = [self.of(item, depth + 1) for item in node.value]
        self._made[id(node)] = value
        return value

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[object, object]:
        value: dict[object, object] = {}
        for name, item in node.value:
            key = self.of(name, depth + 1)
            if isinstance(key, dict | list):
                raise self._error(name, "a key is a list or mapping: not a cassette")
            if key in value:
                raise self._error(name, f"{key!r} stands here a second time, and would hide the first")
            value[key] = self.of(item, depth + 1)
        return value

    def _scalar(self, node: yaml.ScalarNode) -> object:
        """Return the value of a scalar that is plain or has a tag."""
        text: str = node.value
        if node.tag == _TEXT:
            return _plain(text)
        if node.tag in _TEXT_TAGS:
            return text
        if node.tag == f"{_TAGS}binary":
            try:
                return b64decode(text)
            except ValueError as error:
                raise self._error(node, f"!!binary: {error}") from None
        raise self._refused(node)

    def _refused(self, node: yaml.Node) -> BadCassette:
        return self._error(node, f"the tag {node.tag!r} stands for a Python object, which is not read")

    def _error(self, node: yaml.Node, message: str) -> BadCassette:
        return BadCassette(f"{self._path}:{_line(node.start_mark)}: {message}")


def _line(mark: Any) -> int:  # PyYAML has two kinds of mark, and stubs that say so only in places
    """Return the line of a place, from 1."""
    return 1 if mark is None else int(mark.line) + 1


def _plain(text: str) -> object:
    if text in _PLAIN:
        return _PLAIN[text]
    if text[0] in _NUMBER_START and len(text) < MAX_DIGITS:
        if _WHOLE.fullmatch(text):
            return int(text)
        if _BROKEN.fullmatch(text):
            return float(text)
    return text
