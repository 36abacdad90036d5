"""Sets values in YAML text, changing only the necessary characters.

All other comments, quotes, order and layout are preserved. A list whose length changes is rewritten, and loses its
comments. `block` and `flow` write plain values as YAML text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from statek_sim.scenario.problem import Keypath, dotted
from statek_sim.scenario.tree import Malformed, Node, node_value, parse
from statek_sim.values import JSON

_COMMENT: Final = re.compile(r"#[^\n]*")
_BARE_BREAK: Final = re.compile(r"(?<!\r)\n")


class CannotEdit(Exception):
    """A value cannot be set without changing other parts of the text."""


@dataclass(frozen=True, slots=True)
class _Edit:
    """Replaces `text[start:end]` with `written`."""

    start: int
    end: int
    written: str


@dataclass(frozen=True, slots=True)
class _Spot:
    """A node, the end of the colon or dash before it, and the column at which its lines are indented."""

    node: Node
    behind_mark: int
    indent: int
    in_flow: bool


def edited(text: str, changes: Iterable[tuple[Keypath, JSON]]) -> str:
    """Return `text` with each value set at its key path; missing mappings along the way are added.

    Raises `CannotEdit` if a key path leads through a value that is neither a mapping nor a list, or if the new text
    would not parse to the original data with exactly these changes.
    """
    root = _read(text)
    old = node_value(root)
    wanted = old
    for keypath, value in changes:
        wanted = _changed(wanted, keypath, value, keypath)
    top = _Spot(root, root.start, root.column - 1, in_flow=False)
    text = _applied(text, _edits(text, top, old, wanted))
    if not _same(node_value(_read(text)), wanted):
        raise CannotEdit("the edited file would not have the requested content")
    return text


def _read(text: str) -> Node:
    try:
        root = parse(text)
    except Malformed as error:
        raise CannotEdit(f"line {error.line}: {error.message}") from error
    if root is None:
        raise CannotEdit("the file is empty")
    return root


def _same(old: JSON, new: JSON) -> bool:
    # Python's == treats 1 as equal to true and 1.0.
    return json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True)


def _changed(whole: JSON, keypath: Keypath, value: JSON, full: Keypath) -> JSON:
    """Return the plain value `whole` with `value` at `keypath`; unchanged parts are the same objects."""
    if not keypath:
        return value
    part, rest = keypath[0], keypath[1:]
    if isinstance(part, int):
        if not isinstance(whole, list) or not 0 <= part < len(whole):
            raise CannotEdit(f"{dotted(full)}: no list entry {part}")
        return [*whole[:part], _changed(whole[part], rest, value, full), *whole[part + 1 :]]
    if whole is not None and not isinstance(whole, dict):
        raise CannotEdit(f"{dotted(full)}: no mapping to hold {part!r}")
    mapping = whole or {}
    return {**mapping, part: _changed(mapping.get(part), rest, value, full)}


def _applied(text: str, edits: Iterable[_Edit]) -> str:
    """Return the text with all edits, which must not overlap; edits at the same position are applied in order."""
    pieces: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        written = _BARE_BREAK.sub("\r\n", edit.written) if "\r\n" in text else edit.written
        pieces += (text[at : edit.start], written)
        at = edit.end
    return "".join((*pieces, text[at:]))


def _edits(text: str, spot: _Spot, old: JSON, new: JSON) -> Iterator[_Edit]:
    """Yield the smallest edits that change `old`, written at `spot`, to `new`."""
    node = spot.node
    if old is new:
        return
    if isinstance(old, dict) and isinstance(new, dict) and old and old.keys() <= new.keys():
        for key, item in zip(node.keys, node.items, strict=True):
            name = str(key.value)
            inner = _Spot(item, text.index(":", key.end) + 1, node.column + 1, spot.in_flow or node.flow)
            yield from _edits(text, inner, old[name], new[name])
        missing = {key: value for key, value in new.items() if key not in old}
        if missing:
            yield _insertion(text, spot, missing)
    elif isinstance(old, list) and isinstance(new, list) and 0 < len(old) == len(new):
        for item, before, now in zip(node.items, old, new, strict=True):
            mark = item.start if node.flow else text.rindex("-", 0, item.start) + 1
            yield from _edits(
                text, _Spot(item, mark, node.column + 1, spot.in_flow or node.flow), before, now
            )
    elif not _same(old, new):
        yield _replacement(text, spot, new)


def _replacement(text: str, spot: _Spot, value: JSON) -> _Edit:
    node = spot.node
    quote = node.style if node.style in ("'", '"') else ""
    end = _end(text, node)
    inline = flow(value, quote=quote)
    one_line = node.flow or (node.kind == "scalar" and node.style not in ("|", ">"))
    fits = not isinstance(value, dict | list) or _column(text, node.start) + len(inline) <= WIDTH
    multiline = isinstance(value, str) and "\n" in value and not quote
    if spot.in_flow or (one_line and fits and not multiline):
        space = " " if text[node.start - 1] in ":-" else ""
        return _Edit(node.start, end, space + inline)
    indent = node.column - 1 if node.kind != "scalar" and not node.flow else spot.indent
    column = _column(text, spot.behind_mark)
    written = block(value, indent=indent, column=column, quote=quote, spread=not one_line)
    comment = text[spot.behind_mark : node.start].rstrip()
    if comment and not written.startswith("\n"):
        written = "\n" + " " * indent + written.lstrip()
    return _Edit(spot.behind_mark, end, comment + written)


def _insertion(text: str, spot: _Spot, members: dict[str, JSON]) -> _Edit:
    """Return the edit that adds members to a non-empty mapping.

    They are added before its closing brace, or as lines after its last member.
    """
    mapping = spot.node
    if spot.in_flow or mapping.flow:
        last = _end(text, mapping.items[-1])
        written = ", ".join(f"{flow(key)}: {flow(value)}" for key, value in members.items())
        if "," in _COMMENT.sub("", text[last : mapping.end - 1]):
            return _Edit(mapping.end - 1, mapping.end - 1, f"{written}, ")
        return _Edit(last, last, f", {written}")
    indent = mapping.column - 1
    lines = ""
    for key, value in members.items():
        line = f"{' ' * indent}{flow(key)}:"
        lines += f"\n{line}{block(value, indent=indent + 2, column=len(line))}"
    end = text.find("\n", _end(text, mapping))
    end = len(text) if end == -1 else end - (text[end - 1] == "\r")
    return _Edit(end, end, lines)


def _column(text: str, offset: int) -> int:
    """Return an offset's column; columns count from 0."""
    return offset - text.rfind("\n", 0, offset) - 1


def _end(text: str, node: Node) -> int:
    """Return the offset after the last character of a node, without the line breaks that follow a block scalar."""
    end = node.end
    while end > node.start and text[end - 1] in " \r\n":
        end -= 1
    return end


WIDTH: Final = 110
"""Maximum column of a list or mapping that is written on one line."""

# Plain text that every YAML reader, 1.1 or 1.2, reads identically in any context.
_PLAIN: Final = re.compile(r"[A-Za-z_/][A-Za-z0-9_./ ()+-]*(?<! )")
_YAML_1_1: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def flow(value: JSON, *, quote: str = "") -> str:
    """Return `value` on one line; strings are quoted with `quote` (`'` or `"`) if possible."""
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
    """Return `value` as YAML that follows a key or dash; further lines start at column `indent`.

    The result starts with the space or line break that separates it. `column` is where the key or dash ends. With
    `spread`, a list or mapping gets a line for each entry even if it would fit on one line. Columns count from 0.
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
    """Return the result of `block` for use after a dash: a nested list or mapping starts on the dash's line."""
    return " " + item.lstrip("\n ") if item.startswith("\n") else item


def _text(text: str, quote: str) -> str:
    if quote == "'" and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    if not quote and _PLAIN.fullmatch(text) and text.casefold() not in _YAML_1_1:
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted if quoted.isprintable() else "".join(map(_escaped, quoted))


def _escaped(character: str) -> str:
    # Unlike JSON, YAML has no surrogate pairs.
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _literal(text: str, indent: int) -> str | None:
    """Return a string as a literal block scalar, or None if that would not parse to the same string."""
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
