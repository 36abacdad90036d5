"""Plain values as YAML text, for rewriting a value inside a file that people wrote."""

from __future__ import annotations

import json
import re
from typing import Final

from statek_sim.scenario.tree import Malformed, node_value, parse
from statek_sim.values import JSON

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
