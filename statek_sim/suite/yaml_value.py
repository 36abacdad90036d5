"""Expectations and records as plain values, and when two of them are the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from statek_sim.scenario.part import Part
from statek_sim.values import JSON

_PLAIN: Final = frozenset({str, int, bool, float, type(None)})
_encode: Final = json.JSONEncoder(sort_keys=True).encode


def yaml_value(value: Any) -> JSON:
    """Return `value` as a plain YAML value: of a part of a scenario what it says, other objects as text."""
    if type(value) in _PLAIN:
        return value  # type: ignore[no-any-return]  # one of JSON's own
    match value:
        case Part():
            return {key: yaml_value(inner) for key, inner in value.said_items()}
        case Mapping():
            return {str(key): yaml_value(inner) for key, inner in value.items()}
        case list() | tuple():
            return [yaml_value(inner) for inner in value]
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)


def same(first: JSON, second: JSON) -> bool:
    """Return whether two plain values are equal as YAML: 1, 1.0 and true differ, orders of keys do not."""
    if type(first) is str or type(second) is str:
        return first == second
    return _encode(first) == _encode(second)
