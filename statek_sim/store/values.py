"""Values without an identity as tagged JSON, and back: what JSON has no word for is `{"$": kind, "v": content}`."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

from statek_sim.runtime.stored.containers import LostKey
from statek_sim.values import JSON

TAG: Final = "$"
"""The key of a tagged value."""

_PLAIN_INT: Final = 2**53
_ITSELF: Final = (bool, type(None))


class Unstorable(Exception):
    """A value that no store keeps; the text says why."""


@dataclass(frozen=True, slots=True)
class Lost:
    """What a new process finds in the place of a variable that could not be stored, until its worker drops it."""

    reason: str


class NoValue(Exception):
    """Not a value without an identity: `encoded_value` leaves it to others."""


def tagged(kind: str, content: JSON) -> JSON:
    """Return a tagged value."""
    return {TAG: kind, "v": content}


def encoded_value(value: object) -> JSON:
    """Return a value as JSON; `NoValue` for containers and objects, `Unstorable` for a zone without a name."""
    kind = type(value)
    if kind is str:
        return _text(str(value))
    if kind in _ITSELF:
        return value  # type: ignore[return-value]  # one of these
    if kind is int:
        whole = int(value)  # type: ignore[call-overload]  # an int
        return whole if abs(whole) < _PLAIN_INT else tagged("int", hex(whole))
    if kind is float:
        number = float(value)  # type: ignore[arg-type]  # a float
        return number if math.isfinite(number) else tagged("float", repr(number))
    writer = _WRITERS.get(kind)
    if writer is None:
        raise NoValue
    return writer(value)


def _text(value: str) -> JSON:
    """Return a text; one with halves of surrogate pairs, which JSON would put together, is tagged."""
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return tagged("text", base64.b64encode(value.encode("utf-8", "surrogatepass")).decode("ascii"))
    return value


def _datetime(value: datetime) -> JSON:
    parts: list[JSON] = [value.replace(tzinfo=None, fold=0).isoformat(), value.fold]
    return tagged("datetime", [*parts, _zone(value.tzinfo)])


def _time(value: time) -> JSON:
    return tagged("time", [value.replace(tzinfo=None, fold=0).isoformat(), value.fold, _zone(value.tzinfo)])


def _zone(zone: object) -> JSON:
    if zone is None:
        return None
    if type(zone) is timezone:
        offset, name = zone.utcoffset(None), zone.tzname(None)
        # Most have the name that follows from the offset.
        return (
            offset.total_seconds()
            if name == timezone(offset).tzname(None)
            else [offset.total_seconds(), name]
        )
    if isinstance(zone, ZoneInfo) and zone.key:
        return zone.key
    raise Unstorable(f"a zone of class {type(zone).__name__}, which has no name")


def _zone_of(zone: Any) -> timezone | ZoneInfo | None:
    if zone is None:
        return None
    if isinstance(zone, str):
        return ZoneInfo(zone)
    seconds, *name = zone if isinstance(zone, list) else [zone]
    return timezone(timedelta(seconds=seconds), *name)


def _delta(value: timedelta) -> JSON:
    return tagged("timedelta", [value.days, value.seconds, value.microseconds])


_WRITERS: Final[Mapping[type, Callable[[Any], JSON]]] = {
    bytes: lambda value: tagged("bytes", base64.b64encode(value).decode("ascii")),
    complex: lambda value: tagged("complex", repr(value)),
    Decimal: lambda value: tagged("decimal", str(value)),
    date: lambda value: tagged("date", value.isoformat()),
    datetime: _datetime,
    time: _time,
    timedelta: _delta,
    range: lambda value: tagged("range", [value.start, value.stop, value.step]),
    LostKey: lambda value: tagged("lost key", hex(value)),
}

_READERS: Final[Mapping[str, Callable[[Any], object]]] = {
    "int": lambda content: int(content, 16),
    "text": lambda content: base64.b64decode(content, validate=True).decode("utf-8", "surrogatepass"),
    "float": float,
    "bytes": lambda content: base64.b64decode(content, validate=True),
    "complex": complex,
    "decimal": Decimal,
    "date": date.fromisoformat,
    "datetime": lambda content: datetime.fromisoformat(content[0]).replace(
        fold=content[1], tzinfo=_zone_of(content[2])
    ),
    "time": lambda content: time.fromisoformat(content[0]).replace(
        fold=content[1], tzinfo=_zone_of(content[2])
    ),
    "timedelta": lambda content: timedelta(*content),
    "range": lambda content: range(*content),
    "lost key": lambda content: LostKey(content, 16),
}


def decoded_value(kind: str, content: Any) -> object:
    """Return the value of a tag; KeyError for a tag of none."""
    return _READERS[kind](content)
