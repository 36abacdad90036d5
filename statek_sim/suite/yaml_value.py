"""Expectations and records as plain values, and when two of them are the same."""

from __future__ import annotations

import json
from collections.abc import Mapping

from statek_sim.scenario.part import Part
from statek_sim.values import JSON


def yaml_value(value: object) -> JSON:
    """Return `value` as a plain YAML value: of a part of a scenario what it says, other objects as text."""
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


def same(one: JSON, other: JSON) -> bool:
    """Return whether two plain values are equal as YAML: 1, 1.0 and true differ, orders of keys do not."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
