"""Types shared by all layers, conversions between values, and identifiers that are the same in every run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, TypeVar

from statek_sim.errors import BadInput

JSON = str | int | float | bool | None | list["JSON"] | dict[str, "JSON"]
"""Anything that `json.dumps` accepts."""

Message = Mapping[str, JSON]
"""A chat message in OpenAI's format: `role`, `content`, and optionally `tool_calls` or `tool_call_id`."""

ToolSpec = Mapping[str, JSON]
"""An entry in a request's `tools` list, in OpenAI's format."""


_Item = TypeVar("_Item")


def unchanged(value: _Item) -> _Item:
    """Return the value unchanged."""
    return value


def items_of(name: str, items: Iterable[_Item]) -> tuple[_Item, ...]:
    """Return the items of the argument called `name`; raises `BadInput` for a string or any other single value."""
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise BadInput(f"{name}={items!r}: expected a list, {name}=[...]")
    return tuple(items)


def as_json(value: Any) -> JSON:
    """Convert a value for JSON: dataclasses to objects, enums to their values, paths and decimals to strings."""
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
    """Return the value's attributes with these names, for JSON; without names, return all of a dataclass's fields."""
    return {name: as_json(getattr(value, name)) for name in names or [field.name for field in fields(value)]}


def in_common(before: Sequence[object], now: Sequence[object]) -> int:
    """Return the length of the common prefix of two sequences, for example of messages or characters."""
    pairs = enumerate(zip(before, now, strict=False))
    return next((n for n, (old, new) in pairs if old != new), min(len(before), len(now)))


def printable(text: str) -> str:
    """Return a string for a terminal, with unprintable characters escaped."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def printable_lines(texts: Iterable[str]) -> str:
    """Return lines of text for a terminal, with unprintable characters escaped."""
    return "\n".join(printable(line) for text in texts for line in text.split("\n"))


class IdSource:
    """Generates the ids `kind-1`, `kind-2` and so on for each kind."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def saved(self) -> dict[str, int]:
        """Return the number of ids generated for each kind, for `resume`."""
        return dict(self._counts)

    def resume(self, saved: Mapping[str, int]) -> None:
        """Continue from the numbers returned by `saved`."""
        self._counts = dict(saved)

    def next(self, kind: str) -> str:
        """Return the next id of this kind."""
        count = self._counts.get(kind, 0) + 1
        self._counts[kind] = count
        return f"{kind}-{count}"
