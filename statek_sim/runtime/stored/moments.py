"""Dates with times, and times, as they come back (dbzero 0.7.0, by running it).

A zone becomes its offset in whole hours, rounded down: noon in India comes back as a moment half an hour later. With a
zone milliseconds remain of microseconds. `fold` is forgotten. A time with a zone is refused.
"""

from __future__ import annotations

from datetime import datetime, time, timedelta, timezone
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


def why_changed(value: datetime, found: datetime) -> str:
    """Return what dbzero changed of a date with a time; empty when nothing that anybody can see."""
    changes = []
    if value.utcoffset() != found.utcoffset():
        changes.append(f"whole hours of its offset to UTC: {value.tzinfo} comes back as {found.tzinfo}")
    if value.microsecond != found.microsecond:
        changes.append("milliseconds of its microseconds")
    return f"dbzero keeps of a datetime with a zone {' and '.join(changes)}" if changes else ""
