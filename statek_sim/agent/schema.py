"""Parses JSON written by a model, and a tool's JSON Schema (2020-12).

Both native calls (`replies.calls`, `tools.arguments`) and calls in text (`rescue`) are validated here, so that the same
text gives the same arguments in both.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NoReturn

from statek_sim.values import JSON

_INTEGERS: Final = (-(2**63), 2**64 - 1)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_WORDS: Final[dict[str, JSON]] = {"true": True, "false": False}
_FOLLOWED: Final = 16
"""The maximum number of chained references to follow."""
_NULLS: Final = ("null", "None")
_ALIASES: Final = {
    "str": "string", "text": "string", "int": "integer", "float": "number", "double": "number", "bool": "boolean",
    "dict": "object", "list": "array", "tuple": "array", "none": "null",
}  # fmt: skip
"""Other common names for JSON Schema types."""
JSON_ESCAPES: Final = {
    '"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip
"""The characters that JSON escapes with a single letter, keyed by that letter."""


# -- JSON -------------------------------------------------------------------------------------------------------


class NoJSON(ValueError):
    """Raised for text that only looks like JSON: a duplicate key, NaN, a number out of range."""


def whole(digits: str) -> int:
    """Return an integer of at most 64 bits; raises `NoJSON` for larger ones."""
    number = int(digits) if len(digits) <= 20 else None
    if number is None or not _INTEGERS[0] <= number <= _INTEGERS[1]:
        raise NoJSON(f"the integer {digits[:24]} has more than 64 bits")
    return number


def real(digits: str) -> float:
    """Return a finite number; raises `NoJSON` if it is too large."""
    number = float(digits)
    if not math.isfinite(number):
        raise NoJSON(f"the number {digits[:24]} is too large")
    return number


def once(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    """Return an object's members; raises `NoJSON` for a duplicate key."""
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise NoJSON(f"the key {name[:40]!r} appears twice")
            seen.add(name)
    return found


def no_constant(name: str) -> NoReturn:
    """Raise `NoJSON` for NaN and Infinity."""
    raise NoJSON(f"{name} is not JSON")


STRICT: Final = json.JSONDecoder(
    object_pairs_hook=once, parse_int=whole, parse_float=real, parse_constant=no_constant
)
"""The strict decoder, created once because `json.loads` with options creates a new one for each text."""


# The scanner of CPython's `json`, which typeshed omits.
_SCAN: Final[Callable[[str, int], tuple[Any, int]]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def _flat(text: str) -> dict[str, JSON] | None:
    """Return an object of plain strings, integers and booleans, or None if a full parser is needed.

    A duplicate key shows as extra quotes: without backslashes there are no other quotes, so not every member needs to
    be checked.
    """
    if text[:1] != "{" or "\\" in text:
        return None
    try:
        found, end = _SCAN(text, 0)
    except (StopIteration, ValueError, RecursionError):
        return None
    quotes = 2 * len(found)
    for value in found.values():
        kind = type(value)
        if kind is str:
            quotes += 2
        elif kind is int:
            if not _INTEGERS[0] <= value <= _INTEGERS[1]:
                return None
        elif kind is not bool:
            return None
    return found if end == len(text) and text.count('"') == quotes else None


def read_json(text: str) -> JSON:
    """Return the value of a JSON text; raises `ValueError` (such as `NoJSON`) with the reason if it is invalid."""
    flat = _flat(text)
    if flat is not None:
        return flat
    try:
        # `loads` reports a byte order mark with its own message.
        found: JSON = json.loads(text) if text.startswith("\ufeff") else STRICT.decode(text)
    except RecursionError:
        raise NoJSON("it is nested too deeply") from None
    return found


def changed_arguments(before: Mapping[str, JSON], text: str) -> Mapping[str, JSON]:
    """Return the arguments in `text`, or the previous arguments if it is invalid."""
    try:
        found = read_json(text)
    except ValueError:
        return before
    return found if isinstance(found, dict) else before


# -- types ------------------------------------------------------------------------------------------------------


def followed(schema: object, root: Mapping[str, JSON]) -> object:
    """Return the part of `root` that a schema's `$ref` names (`#/$defs/NAME`), or the schema if it has no `$ref`."""
    for _ in range(_FOLLOWED):
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(reference, str) or not reference.startswith("#"):
            break
        schema = root
        for step in reference[1:].split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            schema = schema.get(name) if isinstance(schema, Mapping) else None
    return schema


def aliased(schema: JSON) -> JSON:
    """Return a schema with `float`, `dict` and the like replaced by JSON Schema's type names."""
    if isinstance(schema, list):
        return [aliased(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: aliased(member) for key, member in schema.items() if key != "type"}
    if "type" not in schema:
        return made
    kind_names = schema["type"]
    if isinstance(kind_names, dict):  # an argument named "type"
        return {**made, "type": aliased(kind_names)}
    kinds = [
        _ALIASES.get(kind.lower(), kind) if isinstance(kind, str) else kind for kind in _listed(kind_names)
    ]
    return {**made, "type": kinds if isinstance(kind_names, list) else kinds[0]}


def _listed(kind_names: JSON) -> list[JSON]:
    return kind_names if isinstance(kind_names, list) else [kind_names]


def kinds_of(schema: object) -> set[str]:
    """Return the JSON types that a schema accepts, or an empty set if it does not restrict them."""
    if not isinstance(schema, Mapping):
        return set()
    kinds = set(_kinds(schema))
    if schema.get("nullable") is True:
        kinds.add("null")
    return kinds


def _kinds(schema: Mapping[str, object]) -> Iterator[str]:
    named = schema.get("type")
    if isinstance(named, str | list):
        for kind in [named] if isinstance(named, str) else named:
            if isinstance(kind, str):
                yield _ALIASES.get(kind.lower(), kind)
    elif "enum" in schema or "const" in schema:
        choices = schema["enum"] if isinstance(schema.get("enum"), list) else [schema.get("const")]
        yield from map(_kind, choices if isinstance(choices, list) else ())
    else:
        parts = [schema[key] for key in ("anyOf", "oneOf") if isinstance(schema.get(key), list)]
        inner = [kind for part in parts for choice in part for kind in kinds_of(choice)]  # type: ignore[attr-defined]
        yield from inner
        if not inner and ("properties" in schema or "additionalProperties" in schema):
            yield "object"
        elif not inner and "items" in schema:
            yield "array"


def _kind(value: object) -> str:
    match value:
        case bool():
            return "boolean"
        case None:
            return "null"
        case str():
            return "string"
        case int():
            return "integer"
        case float():
            return "number"
        case list():
            return "array"
        case _:
            return "object"


def converted(value: JSON, kinds: set[str]) -> JSON:
    """Return a value converted to one of `kinds` without loss, or `value` itself.

    A string is parsed by `from_text` if strings are not accepted; an integer becomes a string if strings are accepted
    but numbers are not; `4.0` becomes 4 where an integer is accepted, since JSON Schema treats them as equal, unlike
    Python.
    """
    if isinstance(value, str) and "string" not in kinds:
        return from_text(value, kinds)
    if isinstance(value, float) and "integer" in kinds and "number" not in kinds:
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, int) and not isinstance(value, bool) and "string" in kinds:
        return value if kinds & {"integer", "number"} else str(value)
    return value


def from_text(text: str, kinds: set[str]) -> JSON:
    """Return `text` as the first of `kinds` that fits without loss, or unchanged.

    The order is: null (`null`, `None`), boolean (`true`, `false` in any letter case), integer and number (in JSON
    notation; `1.0` and `1e3` are integers, as in JSON Schema), object and array (JSON).
    """
    word = text.strip()
    if "null" in kinds and word in _NULLS:
        return None
    if "boolean" in kinds and word.lower() in _WORDS:
        return _WORDS[word.lower()]
    if kinds & {"integer", "number"} and _NUMBER.fullmatch(word):
        number = _read(word)
        if isinstance(number, int) or (isinstance(number, float) and "number" in kinds):
            return number
        if isinstance(number, float) and number.is_integer() and abs(number) < 2**53:
            return int(number)
    if kinds & {"object", "array"} and word[:1] in ("{", "["):
        made = _read(word)
        if (isinstance(made, dict) and "object" in kinds) or (isinstance(made, list) and "array" in kinds):
            return made
    return text


def _read(word: str) -> JSON:
    try:
        return read_json(word)
    except ValueError:
        return None
