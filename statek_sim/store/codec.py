"""Lossless encoding of values as tagged JSON, without pickle.

A value that JSON cannot represent is written as `{"$": kind, "v": content}`. Both engines encode scalars with
`encoded_value`. `encoded` handles trees of mappings, lists and tuples, whose identity is not preserved;
`statek_sim.durability` encodes objects with an identity. The JSON preserves key order, and is ASCII so that
every database accepts it.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, Final
from zoneinfo import ZoneInfo

from statek_sim.errors import BadInput, Damaged
from statek_sim.values import JSON

TAG: Final = "$"
"""The key that marks a tagged value."""

DEEPEST: Final = 200
"""Maximum nesting depth in `encoded`."""

_PLAIN_INT: Final = 2**53
_ITSELF: Final = (bool, type(None))


class Unstorable(Exception):
    """Raised for a value that cannot be stored; the message states why."""


class NoValue(Exception):
    """Raised by `encoded_value` for a value that is not a scalar and must be encoded by the caller."""


def canonical(value: JSON) -> str:
    """Serialize a JSON value as ASCII text without spaces; keys keep their order."""
    return _encode(value)


_encode: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


def from_text(text: str, *, what: str) -> Any:
    """Parse JSON text; raises `Damaged` with a message that starts with `what`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{what} is not JSON: {error}; it was damaged, or another program wrote it") from None


def from_bytes(content: bytes, *, what: str) -> Any:
    """Parse a JSON file. Invalid JSON or UTF-8 raises `Damaged` with the line number."""
    try:
        return from_text(content.decode(), what=what)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{content[error.start]:02x} in line {line} is not UTF-8"
        raise Damaged(f"{what} is not JSON: {byte}; it was damaged, or another program wrote it") from None


# -- scalars ---------------------------------------------------------------------------------------------------


def tagged(kind: str, content: JSON) -> JSON:
    """Return a tagged value."""
    return {TAG: kind, "v": content}


def encoded_value(value: object) -> JSON:
    """Encode a scalar as JSON; raises `NoValue` for containers and objects, `Unstorable` for an unnamed time zone."""
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


def decoded_value(kind: str, content: Any) -> object:
    """Decode a scalar encoded with the tag `kind`; raises KeyError for an unknown tag."""
    return _READERS[kind](content)


def _text(value: str) -> JSON:
    """Encode a string as JSON. A string with lone surrogates is tagged, because JSON might join them."""
    return value if _is_plain(value) else tagged("text", _base64(value.encode("utf-8", "surrogatepass")))


def _is_plain(value: str) -> bool:
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _datetime(kind: str, value: Any) -> JSON:
    """Encode a datetime or time as its ISO text, fold and time zone."""
    return tagged(kind, [value.replace(tzinfo=None, fold=0).isoformat(), value.fold, _zone(value.tzinfo)])


def _zone(zone: object) -> JSON:
    if zone is None:
        return None
    if type(zone) is timezone:
        offset, name = zone.utcoffset(None), zone.tzname(None)
        # Most zones have the name derived from the offset.
        return (
            offset.total_seconds()
            if name == timezone(offset).tzname(None)
            else [offset.total_seconds(), name]
        )
    if isinstance(zone, ZoneInfo) and zone.key:
        return zone.key
    raise Unstorable(f"a time zone of class {type(zone).__name__} that has no name")


def _zone_of(zone: Any) -> timezone | ZoneInfo | None:
    if zone is None:
        return None
    if isinstance(zone, str):
        return ZoneInfo(zone)
    seconds, *name = zone if isinstance(zone, list) else [zone]
    return timezone(timedelta(seconds=seconds), *name)


_WRITERS: Final[Mapping[type, Callable[[Any], JSON]]] = {
    bytes: lambda value: tagged("bytes", _base64(value)),
    complex: lambda value: tagged("complex", repr(value)),
    Decimal: lambda value: tagged("decimal", str(value)),
    date: lambda value: tagged("date", value.isoformat()),
    datetime: lambda value: _datetime("datetime", value),
    time: lambda value: _datetime("time", value),
    timedelta: lambda value: tagged("timedelta", [value.days, value.seconds, value.microseconds]),
    range: lambda value: tagged("range", [value.start, value.stop, value.step]),
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
}


# -- trees -----------------------------------------------------------------------------------------------------


class _Refused(Exception):
    """Raised for a value that cannot be stored. Each level adds its part of the path as the exception propagates."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.path: list[str] = []


def encoded(value: object, *, path: str = "state") -> JSON:
    """Encode a tree as JSON; raises `BadInput` with the path of a value that cannot be stored."""
    try:
        return _encoded(value, 0)
    except _Refused as refused:
        raise BadInput(f"{path}{''.join(reversed(refused.path))}: {refused}") from None


def decoded(value: JSON) -> Any:
    """Decode a tree encoded with `encoded`; raises `Damaged` for an unknown tag."""
    if isinstance(value, list):
        return [decoded(member) for member in value]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {key: decoded(member) for key, member in value.items()}
    try:
        kind, content = str(value[TAG]), value["v"]
        if kind == "tuple":
            return tuple(map(decoded, content))  # type: ignore[arg-type]  # TypeError below
        if kind == "mapping":
            pairs: Any = content
            return {decoded(key): decoded(member) for key, member in pairs}
        return decoded_value(kind, content)
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise Damaged(f"the store has an invalid value: {value!r}") from error


def _encoded(value: object, depth: int) -> JSON:
    if depth > DEEPEST:
        raise _Refused(f"nested more than {DEEPEST} levels deep, which a checkpoint cannot store")
    kind = type(value)
    if kind is dict:
        return _mapping(value, depth + 1)  # type: ignore[arg-type]  # a dict
    if kind is list:
        return _items(value, depth + 1)  # type: ignore[arg-type]  # a list
    try:
        return encoded_value(value)
    except NoValue:
        return _other(value, depth)
    except Unstorable as reason:
        raise _Refused(str(reason)) from None


def _other(value: object, depth: int) -> JSON:
    """Encode a tuple or a mapping. An instance of a plain type's subclass is encoded as the plain type."""
    match value:
        case Enum():
            raise _Refused(f"{value!r} is an enum member; save its value")
        case str():
            return encoded_value(str(value))
        case int():
            return encoded_value(int(value))
        case float():
            return encoded_value(float(value))
        case bytes():
            return encoded_value(bytes(value))
        case list():
            return _items(value, depth + 1)
        case tuple():
            return tagged("tuple", _items(value, depth + 1))
        case Mapping():
            return _mapping(value, depth + 1)
        case _:
            raise _Refused(
                f"a {type(value).__name__} cannot be stored in a checkpoint; expected strings, numbers, "
                "bytes, dates, Decimals, and lists, tuples and mappings of these"
            )


def _items(values: Sequence[object], depth: int) -> list[JSON]:
    found: list[JSON] = []
    for at, item in enumerate(values):
        try:
            found.append(_encoded(item, depth))
        except _Refused as refused:
            refused.path.append(f"[{at}]")
            raise
    return found


def _mapping(value: Mapping[Any, Any], depth: int) -> JSON:
    if TAG in value or not all(type(key) is str and _is_plain(key) for key in value):
        return tagged("mapping", _items([list(pair) for pair in value.items()], depth))
    plain: dict[str, JSON] = {}
    for key, member in value.items():
        # Most values are plain strings, which need no call.
        if type(member) is str and member.isascii():
            plain[key] = member
            continue
        try:
            plain[key] = _encoded(member, depth)
        except _Refused as refused:
            refused.path.append(f".{key}")
            raise
    return plain
