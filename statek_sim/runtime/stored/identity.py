"""What dbzero makes of plain values when it reads them: which are one object, and what is lost of dates and decimals.

Its collections' `index`, `count` and `remove` go by identity. Plain values are made anew whenever they
are read, so only those are found of which CPython has one object (dbzero 0.7.0, by running it).

A zone becomes its offset in whole hours, rounded down: noon in India comes back as a moment half an hour later. With a
zone milliseconds remain of microseconds. `fold` is forgotten. A time with a zone is refused. A decimal keeps seventeen
digits, and its exponent loses its sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, Final

from statek_sim.runtime.stored.storable_types import Kind, kind_of

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


_HOUR: Final = timedelta(hours=1)
_LEAST_OFFSET: Final = -23
"""Hours; what is further west is stored and cannot be read."""


def stored_datetime(value: datetime) -> datetime:
    """Return a date with a time as it comes back."""
    offset = value.utcoffset()
    if offset is None:
        return value.replace(fold=0) if value.fold else value
    hours = offset // _HOUR
    if hours < _LEAST_OFFSET:
        raise RuntimeError("Failed to convert to Datetime with TZ\n")
    return value.replace(microsecond=value.microsecond // 1000 * 1000, tzinfo=timezone(hours * _HOUR), fold=0)


def stored_time(value: time) -> time:
    """Return a time as it comes back; one with a zone is a RuntimeError."""
    if value.tzinfo is not None:
        raise RuntimeError("tzinfo must have a utcoffset method.")
    return value.replace(fold=0) if value.fold else value


def why_datetime_changed(value: datetime, found: datetime) -> str:
    """Return what dbzero changed of a date with a time; empty when nothing that anybody can see."""
    changes = []
    if value.utcoffset() != found.utcoffset():
        changes.append(f"whole hours of its offset to UTC: {value.tzinfo} comes back as {found.tzinfo}")
    if value.microsecond != found.microsecond:
        changes.append("milliseconds of its microseconds")
    return f"dbzero keeps of a datetime with a zone {' and '.join(changes)}" if changes else ""


_DIGITS: Final = 17
_LARGEST_EXPONENT: Final = 63


def stored_decimal(value: Decimal) -> Decimal:
    """Return a finite decimal as it comes back; a RuntimeError for one that dbzero has no room for."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    places = abs(exponent)
    more = min(max(0, len(digits) - _DIGITS), places)
    if len(digits) - more > _DIGITS or places > _LARGEST_EXPONENT:
        raise RuntimeError("Decimal out of range.\n")
    kept = digits[: len(digits) - more]
    return Decimal((sign if any(kept) else 0, kept, more - places))


def why_decimal_changed(value: Decimal, found: Decimal) -> str:
    """Return what dbzero changed of a decimal; empty when nothing."""
    if value == found:
        return ""
    _, _, exponent = value.as_tuple()
    if isinstance(exponent, int) and exponent > 0:
        return f"dbzero forgets that the exponent is positive: Decimal('{value}') comes back as Decimal('{found}')"
    return "dbzero keeps seventeen digits of a decimal"
