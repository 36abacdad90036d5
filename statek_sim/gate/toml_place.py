"""Where in a TOML text values stand; `tomllib` reads them and forgets their lines."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator

Keypath = tuple[str | int, ...]


def lines_of(text: str, keypaths: Iterable[Keypath]) -> list[int]:
    """Return the line, from 1, of the statement that first gives each path a value; `text` is valid TOML.

    A statement of several lines stands at its first. A path that is nowhere stands where its longest known part does.

    TOML is read from the top and nothing is said twice, so that the lines before a statement are a text of their own:
    the statement is where a path first exists in one.
    """
    wanted = list(keypaths)
    found: dict[Keypath, int] = {}
    for begin, read in _beginnings(text):
        for path in wanted:
            for length in range(len(path) + 1):
                if path[:length] not in found and _has(read, path[:length]):
                    found[path[:length]] = begin
    return [
        max((found[path[:n]] for n in range(len(path) + 1) if path[:n] in found), default=1)
        for path in wanted
    ]


def _beginnings(text: str) -> Iterator[tuple[int, object]]:
    """Yield, statement by statement, the line on which it begins and what the text says up to its end."""
    lines = text.splitlines(keepends=True)
    begin = 1
    for end in range(1, len(lines) + 1):
        try:
            yield begin, tomllib.loads("".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            # In the middle of a statement, which began after the last line with which the text was whole.
            continue
        begin = end + 1


def _has(value: object, keypath: Keypath) -> bool:
    for part in keypath:
        match value:
            case dict() if part in value:
                value = value[part]
            case list() if isinstance(part, int) and part < len(value):
                value = value[part]
            case _:
                return False
    return True
