"""Results that give their items one by one: generators and other iterators are read to their end, which has to come."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Final

from pydantic import BaseModel

MOST_ITEMS: Final = 100_000
"""Items that iterators of one result give in all; a model could not read as many."""

MOST_CHARACTERS: Final = 10_000_000
"""Characters and bytes of the texts among them."""

_PLAIN: Final = (str, int, float, bool, type(None))


def read_to_end(value: Any) -> Any:
    """Return a result with lists in the place of iterators, also where they are inside of it.

    `TypeError` when they go on beyond `MOST_ITEMS` or `MOST_CHARACTERS`: nothing else would end them.
    """
    if isinstance(value, _PLAIN):
        return value
    try:
        return _Reader().read(value)
    except RecursionError:
        return value  # it holds itself; the text of that is somebody else's affair


class _Reader:
    def __init__(self) -> None:
        self._items = 0
        self._characters = 0

    def read(self, value: Any) -> Any:
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, Iterator):
            return [self._counted(item) for item in value]
        if isinstance(value, BaseModel) or (is_dataclass(value) and not isinstance(value, type)):
            return self._read_fields(value)
        # Kinds of them too: to the model they are the same JSON.
        if isinstance(value, dict):
            return self._same_or(value, {key: self.read(item) for key, item in value.items()}, value.values())
        if isinstance(value, list | tuple | deque):
            made = [self.read(item) for item in value]
            return self._same_or(value, tuple(made) if type(value) is tuple else made, value)
        if isinstance(value, set | frozenset) and any(isinstance(item, Iterator) for item in value):
            raise TypeError("its result is a set of iterators, which has no order; return what they give")
        return value

    def _counted(self, item: Any) -> Any:
        self._items += 1
        self._characters += len(item) if isinstance(item, str | bytes) else 0
        if self._items > MOST_ITEMS or self._characters > MOST_CHARACTERS:
            raise TypeError(
                f"its result is an iterator that goes on after {self._items - 1:,} items; "
                f"expected one that ends within {MOST_ITEMS:,} items and {MOST_CHARACTERS:,} characters"
            )
        return self.read(item)

    def _same_or(self, value: Any, made: Any, before: Any) -> Any:
        """Return `value` itself where nothing in it was replaced."""
        after = made.values() if isinstance(made, dict) else made
        return value if all(new is old for new, old in zip(after, before, strict=True)) else made

    def _read_fields(self, value: Any) -> Any:
        names = (
            list(type(value).model_fields)
            if isinstance(value, BaseModel)
            else [each.name for each in fields(value)]
        )
        extra = (getattr(value, "__pydantic_extra__", None) or {}) if isinstance(value, BaseModel) else {}
        changed = {}
        for name in (*names, *extra):
            there = getattr(value, name, None)
            there_read = self.read(there)
            if there_read is not there:
                changed[name] = there_read
        if not changed:
            return value
        same = copy.copy(value)
        for name, there_read in changed.items():
            if name in extra:
                same.__pydantic_extra__[name] = there_read
            else:
                object.__setattr__(same, name, there_read)
        return same
