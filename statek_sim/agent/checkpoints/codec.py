"""Values as JSON text and back, without loss: what JSON has no word for is tagged; never pickle.

The text is canonical (sorted keys, no spaces), so that equal values have equal text, also after a way through a
database that keeps JSON as it likes: numbers that it would write anew and characters that it refuses are tagged too.
"""

from __future__ import annotations

import base64
import functools
import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from statek_sim.errors import BadInput, Damaged
from statek_sim.values import JSON

TAG: Final = "$"
"""A mapping with this key is a tagged value: `{"$": kind, "v": text}`."""

ORDER: Final = "$order"
"""The keys of a mapping in their order, where that is not the alphabet's."""

DEEPEST: Final = 200
"""Levels of nesting that are taken."""

_LONG_INTEGER: Final = 2_000
"""Bits; `sys.set_int_max_str_digits` refuses no integer that is shorter."""


class _Unholdable(Exception):
    """A value that cannot be held; its path grows on the way up, so that no other value pays for it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.path: list[str] = []


def encoded(value: object, *, path: str = "state") -> JSON:
    """Return a value as JSON; `BadInput`, with its path, for one that cannot be held."""
    try:
        return _encoded(value, 0)
    except _Unholdable as refused:
        raise BadInput(f"{path}{''.join(reversed(refused.path))}: {refused}") from None


def _encoded(value: object, depth: int) -> JSON:
    kind = type(value)
    if kind is str:
        return value if _is_plain(value) else _tagged("text", value.encode("utf-8", "surrogatepass"))  # type: ignore[return-value,attr-defined,arg-type]  # a str
    if value is None or kind is bool:
        return value  # type: ignore[return-value]  # None, True or False
    if depth > DEEPEST:
        raise _Unholdable(f"more than {DEEPEST} levels deep, which no checkpoint holds")
    if kind is dict:
        return _mapping(value, depth + 1)  # type: ignore[arg-type]  # a dict
    if kind is list:
        return _items(value, depth + 1)  # type: ignore[arg-type]  # a list
    return _other(value, depth)


def _other(value: object, depth: int) -> JSON:
    match value:
        case Enum():
            raise _Unholdable(f"{value!r} is an enum's member; save its value")
        case str():
            return _encoded(str(value), depth)
        case int():
            return int(value) if abs(value) < 2**53 else {TAG: "int", "v": _digits(value)}
        case float():
            return float(value) if _is_plain_float(value) else {TAG: "float", "v": repr(value)}
        case bytes():
            return _tagged("bytes", value)
        case Decimal():
            return {TAG: "decimal", "v": str(value)}
        case list():
            return _items(value, depth + 1)
        case tuple():
            return {TAG: "tuple", "v": _items(value, depth + 1)}
        case Mapping():
            return _mapping(value, depth + 1)
        case _:
            raise _Unholdable(
                f"a {type(value).__name__} cannot be held by a checkpoint; expected texts, numbers, bytes, Decimals, "
                "lists, tuples and mappings of them"
            )


def _items(values: Sequence[object], depth: int) -> list[JSON]:
    found: list[JSON] = []
    for at, item in enumerate(values):
        try:
            found.append(_encoded(item, depth))
        except _Unholdable as refused:
            refused.path.append(f"[{at}]")
            raise
    return found


def _mapping(value: Mapping[Any, Any], depth: int) -> JSON:
    keys = tuple(value)
    # Keys that are equal to plain texts and are none have no order of their own in the cache.
    order = _order(keys) if {*map(type, keys)} <= {str} else None
    if order is None:
        return {TAG: "mapping", "v": _items([list(pair) for pair in value.items()], depth)}
    plain: dict[str, JSON] = {ORDER: list(keys)} if order else {}
    for key, member in value.items():
        # Most values are plain texts: they need no call.
        if type(member) is str and member.isascii() and "\0" not in member:
            plain[key] = member
            continue
        try:
            plain[key] = _encoded(member, depth)
        except _Unholdable as refused:
            refused.path.append(f".{key}")
            raise
    return plain


def _digits(value: int) -> str:
    """Return an integer as text: in hexadecimal where Python may refuse to write or read its decimal digits."""
    return hex(value) if value.bit_length() > _LONG_INTEGER else str(value)


@functools.lru_cache(4096)
def _order(keys: tuple[str, ...]) -> bool | None:
    """Return whether the order of keys has to be told, which databases do not keep; None: they are not plain."""
    if TAG in keys or ORDER in keys or not all(map(_is_plain, keys)):
        return None
    return list(keys) != sorted(keys)


def decoded(value: JSON) -> Any:
    """Return the value that `encoded` made JSON of; `Damaged` for a tag that it never writes."""
    if isinstance(value, list):
        return [decoded(member) for member in value]
    if not isinstance(value, dict):
        return value
    try:
        if TAG not in value:
            order = value[ORDER] if ORDER in value else sorted(value)
            if (
                not isinstance(order, list)
                or {*order} != value.keys() - {ORDER}
                or len(order) != len({*order})
            ):
                raise ValueError(order)
            return {str(key): decoded(value[str(key)]) for key in order}
        return _untagged(str(value[TAG]), value["v"])
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise Damaged(f"a checkpoint holds a value that was never written so: {value!r}") from error


def _untagged(kind: str, content: Any) -> object:
    match kind:
        case "text":
            return base64.b64decode(content, validate=True).decode("utf-8", "surrogatepass")
        case "bytes":
            return base64.b64decode(content, validate=True)
        case "int":
            return int(content, 16 if "x" in content else 10)
        case "float":
            return float(content)
        case "decimal":
            return Decimal(content)
        case "tuple":
            return tuple(decoded(member) for member in content)
        case "mapping":
            return {decoded(key): decoded(member) for key, member in content}
        case _:
            raise ValueError(kind)


def canonical(value: JSON) -> str:
    """Return JSON as its one canonical text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def from_bytes(content: bytes, *, what: str) -> Any:
    """Return the JSON of a file; `Damaged` says that `what` is none, and in which line, where it is no text either."""
    try:
        return from_text(content.decode(), what=what)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{content[error.start]:02x} in line {line} is no UTF-8"
        raise Damaged(f"{what} is no JSON: {byte}; it was damaged, or is not one of ours") from None


def from_text(text: str, *, what: str) -> Any:
    """Return the JSON of a text; `Damaged` says that `what` is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{what} is no JSON: {error}; it was damaged, or is not one of ours") from None


def _tagged(kind: str, data: bytes) -> JSON:
    return {TAG: kind, "v": base64.b64encode(data).decode("ascii")}


def _is_plain(text: str) -> bool:
    """Return whether every database takes a text: PostgreSQL takes no NUL, and none takes half a surrogate pair."""
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_plain_float(number: float) -> bool:
    """Return whether a database gives a number back as it was: as a float, and with its sign."""
    return math.isfinite(number) and "e" not in repr(number) and (number != 0 or math.copysign(1, number) > 0)
