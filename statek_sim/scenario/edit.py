"""Setting one value inside YAML text by replacing or inserting only its own characters.

`block` and `flow` write plain values as YAML text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from statek_sim.scenario.problem import Keypath
from statek_sim.scenario.tree import Malformed, Node, node_value, parse
from statek_sim.values import JSON

_COMMENT: Final = re.compile(r"#[^\n]*")
_BARE_BREAK: Final = re.compile(r"(?<!\r)\n")


class CannotEdit(Exception):
    """The value cannot be set without touching what belongs to others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spot:
    """A node that exists, and the way to it."""

    node: Node
    parent: Node
    part: str | int
    in_flow: bool


def set_value(text: str, keypath: Keypath, value: JSON) -> str:
    """Return `text` with `value` at `keypath`; missing mappings on the way are added.

    Where only parts of a list or mapping differ, only those are touched. Raises CannotEdit when the path
    leads through something that is no mapping or list, or when the new text would not read back as exactly
    this change.
    """
    whole = _read(text)
    wanted = _changed(whole, keypath, value)
    for smaller, inner in _differences(_at(whole, keypath), value, keypath):
        text = _set(text, smaller, inner)
    if "\r\n" in text:
        text = _BARE_BREAK.sub("\r\n", text)
    if not _same(_read(text), wanted):
        raise CannotEdit("the file would not say what was asked for")
    return text


def _read(text: str) -> JSON:
    try:
        root = parse(text)
    except Malformed as error:
        raise CannotEdit(f"line {error.line}: {error.message}") from error
    return None if root is None else node_value(root)


def _same(old: JSON, new: JSON) -> bool:
    # Python's == would take 1 for true and 1.0.
    return json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True)


def _at(whole: JSON, keypath: Keypath) -> JSON:
    for part in keypath:
        match whole:
            case dict() if isinstance(part, str) and part in whole:
                whole = whole[part]
            case list() if isinstance(part, int) and 0 <= part < len(whole):
                whole = whole[part]
            case _:
                return None
    return whole


def _changed(whole: JSON, keypath: Keypath, value: JSON) -> JSON:
    """Return `whole` with `value` at `keypath`, as plain values."""
    if not keypath:
        return value
    part, rest = keypath[0], keypath[1:]
    if isinstance(part, int):
        if not isinstance(whole, list) or not 0 <= part <= len(whole):
            raise CannotEdit(f"there is no list entry {part}")
        return [*whole[:part], _changed(_at(whole, (part,)), rest, value), *whole[part + 1 :]]
    if whole is not None and not isinstance(whole, dict):
        raise CannotEdit(f"there is no mapping that could have {part!r}")
    mapping = whole or {}
    return {**mapping, part: _changed(mapping.get(part), rest, value)}


def _differences(old: JSON, new: JSON, keypath: Keypath) -> Iterator[tuple[Keypath, JSON]]:
    """Yield the smallest changes that turn `old` into `new`; what lost an entry is replaced as a whole."""
    if isinstance(old, dict) and isinstance(new, dict) and old and old.keys() <= new.keys():
        for key, value in new.items():
            if key in old:
                yield from _differences(old[key], value, (*keypath, key))
            else:
                yield (*keypath, key), value
    elif isinstance(old, list) and isinstance(new, list) and 0 < len(old) <= len(new):
        for position, value in enumerate(new):
            if position < len(old):
                yield from _differences(old[position], value, (*keypath, position))
            else:
                yield (*keypath, position), value
    elif not _same(old, new) or new is None:
        yield keypath, new


def _set(text: str, keypath: Keypath, value: JSON) -> str:
    root = parse(text)
    spot = _Spot(node=root, parent=root, part="", in_flow=False) if root else None
    if root is None or spot is None:
        raise CannotEdit("the file is empty")
    depth = 0
    for part in keypath:
        child = spot.node.child(part)
        if child is None:
            break
        spot = _Spot(node=child, parent=spot.node, part=part, in_flow=spot.in_flow or spot.node.flow)
        depth += 1
    missing = keypath[depth:]
    if not missing:
        return _replace(text, spot, value)
    if spot.node.kind == "mapping":
        return _insert(text, spot, str(missing[0]), _nested(missing[1:], value))
    if spot.node.kind == "list":
        return _append(text, spot, _nested(missing[1:], value))
    return _replace(text, spot, _nested(missing, value))


def _nested(keypath: Keypath, value: JSON) -> JSON:
    for part in reversed(keypath):
        value = {str(part): value}
    return value


def _replace(text: str, spot: _Spot, value: JSON) -> str:
    node = spot.node
    quote = node.style if node.style in ("'", '"') else ""
    end = _end(text, node)
    inline = flow(value, quote=quote)
    one_line = node.flow or (node.kind == "scalar" and node.style not in ("|", ">"))
    fits = not isinstance(value, dict | list) or _column(text, node.start) + len(inline) <= WIDTH
    multiline = isinstance(value, str) and "\n" in value and not quote
    if spot.in_flow or (one_line and fits and not multiline):
        space = " " if text[node.start - 1] in ":-" else ""
        return text[: node.start] + space + inline + text[end:]
    start = _behind_mark(text, spot)
    indent = node.column - 1 if node.kind != "scalar" and not node.flow else spot.parent.column + 1
    written = block(value, indent=indent, column=_column(text, start), quote=quote, spread=not one_line)
    comment = text[start : node.start].rstrip()
    if comment and not written.startswith("\n"):
        written = "\n" + " " * indent + written.lstrip()
    return text[:start] + comment + written + text[end:]


def _insert(text: str, spot: _Spot, key: str, value: JSON) -> str:
    mapping = spot.node
    if spot.in_flow or mapping.flow:
        return _insert_in_flow(text, mapping, f"{flow(key)}: {flow(value)}")
    indent = mapping.column - 1
    written = f"{' ' * indent}{flow(key)}:"
    written += block(value, indent=indent + 2, column=len(written))
    return _new_line(text, mapping, written)


def _append(text: str, spot: _Spot, value: JSON) -> str:
    """Return `text` with one more entry at the end of a list."""
    node = spot.node
    if spot.in_flow or node.flow:
        edited = _insert_in_flow(text, node, flow(value))
        if spot.in_flow or _column(text, node.end) + len(edited) - len(text) <= WIDTH:
            return edited
        entries = node_value(node)
        assert isinstance(entries, list)
        return _replace(text, spot, [*entries, value])
    indent = node.column - 1
    dash = " " * indent + "-"
    return _new_line(text, node, dash + after_dash(block(value, indent=indent + 2, column=len(dash))))


def _insert_in_flow(text: str, node: Node, entry: str) -> str:
    """Return `text` with one more entry before the closing bracket or brace of `node`."""
    close = node.end - 1
    if not node.items:
        return text[: node.start + 1] + entry + text[close:]
    last = _end(text, node.items[-1])
    if "," in _COMMENT.sub("", text[last:close]):
        return text[:close] + f"{entry}, " + text[close:]
    return text[:last] + f", {entry}" + text[last:]


def _new_line(text: str, node: Node, line: str) -> str:
    """Return `text` with `line` after the last line of `node`."""
    line_end = text.find("\n", _end(text, node))
    if line_end == -1:
        return f"{text}\n{line}"
    return text[:line_end] + f"\n{line}" + text[line_end:]


def _behind_mark(text: str, spot: _Spot) -> int:
    """Return the offset behind the colon or dash that introduces the node."""
    key = spot.parent.key(spot.part)
    if key is not None:
        return text.index(":", key.end) + 1
    if not isinstance(spot.part, int):
        raise CannotEdit("it is the whole file")
    before = spot.parent.items[spot.part - 1] if spot.part else None
    begin = _end(text, before) if before else spot.parent.start
    gap = _COMMENT.sub(lambda comment: " " * len(comment.group()), text[begin : spot.node.start])
    return begin + gap.rindex("-") + 1


def _column(text: str, offset: int) -> int:
    """Return the column of an offset, from 0."""
    return offset - text.rfind("\n", 0, offset) - 1


def _end(text: str, node: Node) -> int:
    """Return the offset behind the node's last own character, before a block scalar's line breaks."""
    end = node.end
    while end > node.start and text[end - 1] in " \r\n":
        end -= 1
    return end


WIDTH: Final = 110
"""Columns up to which a list or mapping is written on one line."""

# Plain text that every YAML reader, 1.1 or 1.2, reads as the same text in any context.
_PLAIN: Final = re.compile(r"[A-Za-z_/][A-Za-z0-9_./ ()+-]*(?<! )")
_YAML_1_1: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def flow(value: JSON, *, quote: str = "") -> str:
    """Return `value` on one line; text is quoted with `quote` (`'` or `"`) where that is possible."""
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{flow(key)}: {flow(inner, quote=quote)}" for key, inner in value.items()) + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(flow(inner, quote=quote) for inner in value) + "]"
    if isinstance(value, str):
        return _text(value, quote)
    return json.dumps(value)


def block(value: JSON, *, indent: int, column: int, quote: str = "", spread: bool = False) -> str:
    """Return `value` as it follows a key or dash that ends at `column`, continued at column `indent`.

    The text starts with the space or line break that it needs. With `spread` a list or mapping gets a line
    per entry even where one line would do. Columns count from 0.
    """
    line = flow(value, quote=quote)
    fits = column + 1 + len(line) <= WIDTH and not (spread and isinstance(value, dict | list))
    if isinstance(value, str) and "\n" in value and (literal := _literal(value, indent)):
        return literal
    if fits or not isinstance(value, dict | list) or not value:
        return f" {line}"
    pad = "\n" + " " * indent
    if isinstance(value, list):
        items = (block(inner, indent=indent + 2, column=indent + 1, quote=quote) for inner in value)
        return "".join(f"{pad}-{after_dash(item)}" for item in items)
    entries = ((flow(key), inner) for key, inner in value.items())
    return "".join(
        f"{pad}{key}:{block(inner, indent=indent + 2, column=indent + len(key) + 1, quote=quote)}"
        for key, inner in entries
    )


def after_dash(item: str) -> str:
    """Return what `block` wrote, to follow a dash: a nested block starts on its line, like `- - a`."""
    return " " + item.lstrip("\n ") if item.startswith("\n") else item


def _text(text: str, quote: str) -> str:
    if quote == "'" and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    if not quote and _PLAIN.fullmatch(text) and text.casefold() not in _YAML_1_1:
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted if quoted.isprintable() else "".join(map(_escaped, quoted))


def _escaped(character: str) -> str:
    # Not JSON's way: YAML has no surrogate pairs.
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _literal(text: str, indent: int) -> str | None:
    """Return `text` as a literal block scalar, None where that would not read back as the same text."""
    ending = {0: "-", 1: ""}.get(len(text) - len(text.rstrip("\n")), "+")
    body = text.removesuffix("\n")
    pad = " " * indent
    lines = "".join(f"\n{pad}{line}" if line else "\n" for line in body.split("\n"))
    written = f" |{ending}{lines}"
    try:
        node = parse(f"k:{written}\n") if indent else None
    except Malformed:
        return None
    return written if node is not None and node_value(node) == {"k": text} else None
