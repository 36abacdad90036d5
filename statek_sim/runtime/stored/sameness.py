"""Which values are one object to dbzero's collections, whose `index`, `count` and `remove` compare by identity.

dbzero makes plain values anew whenever it reads them, so only those are found of which CPython has one object (dbzero
0.7.0, by running it).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, time
from decimal import Decimal
from typing import Any, Final

from statek_sim.runtime.stored.kinds import Kind, kind_of

_SMALL_INTEGERS: Final = range(-5, 257)
_LATIN_1: Final = 256


def place_of(item: Any, items: Sequence[Any]) -> int | None:
    """Return the first place at which dbzero finds `item`, None where it finds none."""
    return next((place for place, found in enumerate(items) if same(found, item)), None)


def same(found: Any, item: Any) -> bool:
    """Return whether dbzero gets the very object `item` when it reads `found`.

    That is so for small integers, empty texts and bytes, single characters of Latin-1 and single bytes, and for
    collections and objects of the store.
    """
    kind: type = type(item)
    match kind_of(kind):
        case Kind.INT:
            return type(found) is int and found == item and item in _SMALL_INTEGERS
        case Kind.TEXT:
            return type(found) is str and found == item and _is_shared(item)
        case Kind.AS_IT_IS if isinstance(item, bytes):
            return bool(found == item) and len(item) <= 1
        case _:
            return found is item and not isinstance(item, float | date | time | Decimal)


def _is_shared(text: str) -> bool:
    """Before Python 3.12 a letter, digit or _ that stands in code is another object than the one of its character."""
    return not text or (len(text) == 1 and ord(text) < _LATIN_1 and text is shared(text))


def shared(text: str) -> str:
    """Return a text of one character as the object that CPython has of it, if it has one."""
    return chr(ord(text))
