"""Dates, times and decimals as they come back from the store (dbzero 0.7.0, by running it).

A zone becomes its offset in whole hours, rounded down: noon in India comes back as a moment half an hour later. With a
zone milliseconds remain of microseconds. `fold` is forgotten. A time with a zone is refused. A decimal keeps seventeen
digits, and its exponent loses its sign.
"""

from __future__ import annotations

from datetime import datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Final

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
