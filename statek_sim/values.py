"""Types shared by all layers, and identifiers that are the same on every run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, Final, TypeVar

from statek_sim.errors import BadInput

JSON = str | int | float | bool | None | list["JSON"] | dict[str, "JSON"]
"""Anything `json.dumps` takes."""

Message = Mapping[str, JSON]
"""One chat message in the OpenAI wire shape: `role`, `content`, and optionally `tool_calls` or `tool_call_id`."""

ToolSpec = Mapping[str, JSON]
"""One entry of a request's `tools` list in the OpenAI wire shape."""


_Item = TypeVar("_Item")


def items_of(name: str, items: Iterable[_Item]) -> tuple[_Item, ...]:
    """Return the items of an argument with this name; raises `BadInput` for a string or a single item."""
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise BadInput(f"{name}={items!r}: expected a list, {name}=[...]")
    return tuple(items)


def as_json(value: Any) -> JSON:
    """Return a value for JSON: dataclasses as objects, enums as their values, paths and decimals as strings."""
    if isinstance(value, Enum):
        return as_json(value.value)
    if isinstance(value, PurePath):
        return value.as_posix()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    return record(value) if is_dataclass(value) else value


def record(value: Any, *names: str) -> dict[str, JSON]:
    """Return the attributes of a value with these names, for JSON; without names: all fields of a dataclass."""
    return {name: as_json(getattr(value, name)) for name in names or [field.name for field in fields(value)]}


MOST_PARTS: Final = 10_000
DEEPEST_PART: Final = 50
MOST_CHARACTERS: Final = 10_000_000
"""Maximum number of characters in descriptions of one run's values; a list may contain the same long string a thousand
times.
"""


class TooLarge(Exception):  # Not an error for users: the description of a value becomes shorter.
    """A value of a job has too many parts, possibly endless."""


class Room:
    """The number of characters `left` for descriptions of a run's values."""

    def __init__(self, characters: int = MOST_CHARACTERS) -> None:
        self.left = characters

    def take(self, characters: int) -> bool:
        """Subtract the length of a text; return False if it does not fit."""
        if characters > self.left:
            return False
        self.left -= characters
        return True


class Parts:
    """The number of parts left for a value."""

    def __init__(self) -> None:
        self._left = MOST_PARTS

    def one(self, depth: int) -> None:
        """Count one part; raises `TooLarge` for too many parts, or too deep nesting."""
        self._left -= 1
        if self._left < 0 or depth > DEEPEST_PART:
            raise TooLarge


def in_common(before: Sequence[object], now: Sequence[object]) -> int:
    """Return the length of the common prefix of two sequences, such as messages or characters."""
    pairs = enumerate(zip(before, now, strict=False))
    return next((n for n, (old, new) in pairs if old != new), min(len(before), len(now)))


def printable(text: str) -> str:
    """Return a text for a terminal, with all characters escaped except letters, symbols and blanks."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def printable_lines(texts: Iterable[str]) -> str:
    """Return one or more lines of text for a terminal, with all escape sequences disabled."""
    return "\n".join(printable(line) for text in texts for line in text.split("\n"))


class IdSource:
    """Returns `kind-1`, `kind-2`, ... per kind, in order."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def saved(self) -> dict[str, int]:
        """Return the number of ids of each kind."""
        return dict(self._counts)

    def resume(self, saved: Mapping[str, int]) -> None:
        """Continue from the numbers that another instance `saved`."""
        self._counts = dict(saved)

    def next(self, kind: str) -> str:
        """Return the next id of `kind`."""
        count = self._counts.get(kind, 0) + 1
        self._counts[kind] = count
        return f"{kind}-{count}"
