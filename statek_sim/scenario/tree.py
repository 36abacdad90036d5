"""YAML text as a tree of nodes with their positions.

Only JSON's data model is accepted: one document, no anchors, no tags, unique string keys, limited depth. As a result,
every parser reads a file the same way, and a malicious file cannot expand. Scalars follow the YAML 1.2 core schema.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import yaml

from statek_sim.scenario.problem import Keypath
from statek_sim.values import JSON

MAX_DEPTH: Final = 50
"""Maximum depth of nested mappings and lists; a scenario needs about ten levels."""

# libyaml if PyYAML was built with it, fourteen times faster; otherwise the same grammar in Python.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TOO_DEEP: Final = "nesting depth"
"""Part of libyaml's error for text whose nesting exceeds libyaml's own limit."""

_UNPRINTABLE: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_FLAGS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_WHOLE: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_MAX_DIGITS: Final = 1000
_NUMBER_START: Final = frozenset("+-.0123456789")


class Malformed(Exception):
    """Raised if the text is not valid YAML or outside the accepted subset; `line` and `column` count from 1."""

    def __init__(self, message: str, *, line: int, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


@dataclass(slots=True)
class Node:
    """A scalar, list or mapping. `start` and `end` are offsets in characters; `line` and `column` count from 1.

    The values of a mapping are its `items`, in the order of its `keys`; `positions` maps keys to indices. A block list
    or mapping ends where its last descendant ends, before the comments that follow.
    """

    kind: Literal["scalar", "list", "mapping"]
    start: int
    end: int
    line: int
    column: int
    flow: bool
    style: str
    value: str | int | float | bool | None
    keys: list[Node]
    items: list[Node]
    positions: dict[str, int]

    def child(self, part: str | int) -> Node | None:
        """Return the value under a key or at a list index, or None."""
        if self.kind == "mapping":
            part = self.positions.get(str(part), -1)
        if isinstance(part, int) and 0 <= part < len(self.items):
            return self.items[part]
        return None

    def key(self, part: str | int) -> Node | None:
        """Return a key's node, or None."""
        position = self.positions.get(part) if isinstance(part, str) else None
        return None if position is None else self.keys[position]


_NO_NODES: Final[list[Node]] = []
_NO_PLACES: Final[dict[str, int]] = {}
"""The children of scalars: empty and shared by all of them."""


def parse(text: str) -> Node | None:
    """Parse the only document in `text` into a tree, or None if the text is empty; raises `Malformed`."""
    bad = _UNPRINTABLE.search(text)
    if bad:
        line, column = _place(text, bad.start())
        raise Malformed(f"control character U+{ord(bad.group()):04X}", line=line, column=column)
    try:
        return _build(yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        raise _malformed(error, text) from None


def node_value(node: Node) -> JSON:
    """Return a tree's plain value."""
    if node.kind == "scalar":
        return node.value
    if node.kind == "list":
        return [node_value(item) for item in node.items]
    return {str(key.value): node_value(item) for key, item in zip(node.keys, node.items, strict=True)}


def find(node: Node, keypath: Keypath) -> tuple[Node, int]:
    """Return the node that shows a key path's position (a key if possible), and how many parts of the path exist."""
    place = node
    for depth, part in enumerate(keypath):
        child = node.child(part)
        if child is None:
            return place, depth
        place, node = node.key(part) or child, child
    return place, len(keypath)


def _build(events: Iterator[yaml.Event]) -> Node | None:
    """Return the root node; built without recursion, so deep nesting cannot exhaust the stack."""
    root: Node | None = None
    stack: list[Node] = []
    for event in events:
        # The most frequent first: a file has a thousand events.
        if isinstance(event, yaml.ScalarEvent):
            node = _scalar(event, is_key=_awaits_key(stack))
            root = root or node
            _attach(stack, node)
        elif isinstance(event, yaml.CollectionEndEvent):
            node = stack.pop()
            node.end = _span(event)[1] if node.flow else _last_end(node)
        elif isinstance(event, yaml.CollectionStartEvent):
            node = _container(event)
            if _awaits_key(stack):
                raise _at(event, "a key must be a string, got a list or mapping")
            if len(stack) == MAX_DEPTH:
                raise _at(event, f"nested deeper than {MAX_DEPTH} levels")
            root = root or node
            _attach(stack, node)
            stack.append(node)
        elif isinstance(event, yaml.AliasEvent):
            raise _at(
                event, f"aliases are not supported, got *{event.anchor}; use `defaults:` to share values"
            )
        elif isinstance(event, yaml.DocumentStartEvent) and root is not None:
            raise _at(event, "expected one YAML document, got a second one")
    return root


def _awaits_key(stack: list[Node]) -> bool:
    if not stack:
        return False
    parent = stack[-1]
    return parent.kind == "mapping" and len(parent.keys) == len(parent.items)


def _attach(stack: list[Node], node: Node) -> None:
    if not stack:
        return
    parent = stack[-1]
    if parent.kind == "mapping" and len(parent.keys) == len(parent.items):
        _add_key(parent, node)
    else:
        parent.items.append(node)


def _add_key(parent: Node, key: Node) -> None:
    name = str(key.value)
    first = parent.key(name)
    if first:
        raise Malformed(
            f"duplicate key {name!r}, first at line {first.line}", line=key.line, column=key.column
        )
    parent.positions[name] = len(parent.keys)
    parent.keys.append(key)


def _container(event: yaml.CollectionStartEvent) -> Node:
    _refuse_extras(event)
    start, _, line, column = _span(event)
    kind: Literal["mapping", "list"] = "mapping" if isinstance(event, yaml.MappingStartEvent) else "list"
    return Node(kind, start, start, line, column, bool(event.flow_style), "", None, [], [], {})


def _scalar(event: yaml.ScalarEvent, *, is_key: bool) -> Node:
    _refuse_extras(event)
    start, end, line, column = _span(event)
    style = event.style or ""
    value: str | int | float | bool | None = event.value if style else _resolve(event)
    if is_key and not isinstance(value, str):
        raise _at(event, f'a key must be a string; write "{event.value}" in quotes')
    return Node("scalar", start, end, line, column, False, style, value, _NO_NODES, _NO_NODES, _NO_PLACES)


def _span(event: yaml.Event) -> tuple[int, int, int, int]:
    """Return the start and end offsets, then the start's line and column, which count from 1."""
    start, end = event.start_mark, event.end_mark
    assert start is not None, "the parser marks every event"
    assert end is not None
    return start.index, end.index, start.line + 1, start.column + 1


def _resolve(event: yaml.ScalarEvent) -> str | int | float | bool | None:
    """Return the value of an unquoted scalar according to the YAML 1.2 core schema."""
    text: str = event.value
    if text in _NULLS:
        return None
    if text in _FLAGS:
        return _FLAGS[text]
    if text[0] not in _NUMBER_START:
        return text
    if _WHOLE.fullmatch(text):
        if len(text) > _MAX_DIGITS:
            raise _at(event, f"a number with more than {_MAX_DIGITS} digits")
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
    if _NOT_FINITE.fullmatch(text) or (_FLOAT.fullmatch(text) and math.isinf(float(text))):
        raise _at(event, f"expected a finite number, got {text}")
    return float(text) if _FLOAT.fullmatch(text) else text


def _refuse_extras(event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
    if event.anchor is not None:
        raise _at(event, f"anchors are not supported, got &{event.anchor}; use `defaults:` to share values")
    if event.tag is not None:
        raise _at(event, f"tags are not supported, got {event.tag!r}")


def _last_end(node: Node) -> int:
    return node.items[-1].end if node.items else node.end


def _at(event: yaml.Event, message: str) -> Malformed:
    _, _, line, column = _span(event)
    return Malformed(message, line=line, column=column)


def _place(text: str, index: int) -> tuple[int, int]:
    """Return the line and column of an offset; both count from 1."""
    before = text[:index]
    return before.count("\n") + 1, index - before.rfind("\n")


def _malformed(error: yaml.MarkedYAMLError, text: str) -> Malformed:
    """Return the error for an exception from the YAML parser, in our own words where the parser's would not help."""
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    if _TOO_DEEP in (error.problem or ""):
        return Malformed(f"nested deeper than {MAX_DEPTH} levels", line=line, column=column)
    lines = text.split("\n")
    content = lines[line - 1] if line <= len(lines) else ""
    if "\t" in content[: len(content) - len(content.lstrip())]:
        return Malformed("a tab in the indentation; use spaces", line=line, column=column)
    context = f" {error.context}" if error.context else ""
    begun = error.context_mark
    if context and begun is not None and begun.line + 1 != line:
        # An unclosed bracket is reported at the end of the file.
        context += f" that begins in line {begun.line + 1}"
    # The Python grammar refuses some texts that libyaml accepts, such as a `?` in the text of a flow mapping.
    advice = "; this PyYAML lacks libyaml, which accepts more" if _LOADER is yaml.SafeLoader else ""
    return Malformed(
        f"not valid YAML: {error.problem or 'cannot be read'}{context}{advice}", line=line, column=column
    )
