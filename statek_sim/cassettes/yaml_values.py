"""Parses YAML into plain values with their line numbers.

The parser accepts the grammar and types of PyYAML's safe loader, and two tags of older vcrpy releases. It rejects other
tags, duplicate keys, a second document, and excessive nesting.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from statek_sim.errors import BadCassette

_TAGS: Final = "tag:yaml.org,2002:"
_CUT_OFF: Final = "the file seems to be truncated: delete it and record it again"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # which one is found at run time
    """A YAML loader that rejects duplicate keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        if len(mapping) < len(node.value):
            raise yaml.constructor.ConstructorError(
                problem="duplicate key",
                problem_mark=_second(node).start_mark,
            )
        return mapping


def _second(node: yaml.MappingNode) -> yaml.Node:
    """Return the first duplicate key in a mapping."""
    seen: set[str] = set()
    found: yaml.Node = node
    for key, _ in node.value:
        if key.value in seen:
            found = key
            break
        seen.add(key.value)
    return found


for _name in ("python/str", "python/unicode"):
    _Loader.add_constructor(f"{_TAGS}{_name}", yaml.SafeLoader.construct_yaml_str)

Keypath = tuple[str | int, ...]
"""The keys and indexes that lead from the top of a document to a value."""


@dataclass(slots=True)
class Document:
    """A YAML document's value, and the lines of its parts; `end` is the one-based number of the last line."""

    value: object
    end: int
    _root: yaml.Node | None

    def line(self, keypath: Keypath) -> int:
        """Return the one-based line number of the value at `keypath`, or of the nearest existing parent."""
        line, node = 1, self._root
        for step in keypath:
            node = _child(node, step)
            if node is None:
                break
            line = _line(node.start_mark)
        return line

    def lines_of(self, key: str) -> list[int]:
        """Return the first line of each entry in the list under the top-level key."""
        node = _child(self._root, key)
        return (
            [_line(entry.start_mark) for entry in node.value] if isinstance(node, yaml.SequenceNode) else []
        )


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Disable garbage collection during the `with` block, because it doubles the time to load a large cassette."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def loaded(text: str, path: Path) -> Document:
    """Parse a string as one document; raises `BadCassette`, with `path:line`, for invalid YAML."""
    try:
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
            value = None if root is None else loader.construct_object(root, deep=True)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise _malformed(error, text, path) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise BadCassette(f"{path}:{line}: not valid YAML: {error.reason}") from None
    except RecursionError:
        raise BadCassette(f"{path}:1: nested too deeply: not a cassette") from None
    except ValueError as error:
        raise BadCassette(f"{path}:1: not a cassette: {error}") from None
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
    if "another document" in (error.problem or ""):
        return BadCassette(f"{path}:{line}: a second YAML document; expected only one")
    cut_off = f"; {_CUT_OFF}" if line == last else ""
    return BadCassette(f"{path}:{line}: not valid YAML: {error.problem or error}{cut_off}")


def _line(mark: Any) -> int:  # PyYAML has two kinds of mark, and its stubs are incomplete
    """Return the one-based line number of a YAML mark."""
    return 1 if mark is None else int(mark.line) + 1
