"""The published JSON Schema of scenario files (draft 2020-12), for editors and `statek-sim list schema`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from pydantic import JsonValue

from statek_sim.scenario.problem import Keypath
from statek_sim.scenario.schema import FORMAT, ScenarioFile

Schema = dict[str, JsonValue]


def json_schema() -> Schema:
    """Return the JSON Schema of a scenario file; a fresh copy on every call."""
    described: Schema = ScenarioFile.model_json_schema()
    _give_titles(described)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{FORMAT.replace('/', ':').replace('@', ':')}",
        **described,
        "title": f"{FORMAT}: scenarios for STATEK agents",
    }


def _give_titles(node: JsonValue) -> None:
    """Give every key a title; pydantic omits it for keys that refer to a definition."""
    if isinstance(node, list):
        for inner in node:
            _give_titles(inner)
    elif isinstance(node, dict):
        properties = node.get("properties")
        # Only part of the schema: conditions on keys have `properties` too.
        if node.get("type") == "object" and isinstance(properties, dict):
            for name, key in properties.items():
                if isinstance(key, dict):
                    key.setdefault("title", name.replace("_", " ").title())
        for inner in node.values():
            _give_titles(inner)


@cache
def _schema() -> Schema:
    return json_schema()


def options_at(keypath: Keypath) -> tuple[str, ...]:
    """Return the options at `keypath` of a scenario file: a mapping's keys or an enumeration's values."""
    return options_of(_schema(), keypath)


def options_of(schema: Schema, keypath: Keypath) -> tuple[str, ...]:
    """Return the options at `keypath` of a file with this schema."""
    nodes = list(_resolved(schema, schema))
    for part in keypath:
        nodes = [inner for node in nodes for child in _step(node, part) for inner in _resolved(child, schema)]
    names: list[str] = []
    for node in nodes:
        properties, values = node.get("properties"), node.get("enum")
        names += properties if isinstance(properties, dict) else []
        names += [value for value in values if isinstance(value, str)] if isinstance(values, list) else []
        names += [value] if isinstance(value := node.get("const"), str) else []
    return tuple(dict.fromkeys(names))


def _resolved(node: JsonValue, schema: Schema) -> Iterator[Schema]:
    """Yield `node` itself, its referenced definition and its alternatives."""
    if not isinstance(node, dict):
        return
    yield node
    reference = node.get("$ref")
    if isinstance(reference, str):
        definitions = schema["$defs"]
        assert isinstance(definitions, dict)
        yield from _resolved(definitions[reference.removeprefix("#/$defs/")], schema)
    for key in ("anyOf", "oneOf", "allOf"):
        members = node.get(key)
        for member in members if isinstance(members, list) else []:
            yield from _resolved(member, schema)


def _step(node: Schema, part: str | int) -> Iterator[JsonValue]:
    if isinstance(part, int):
        yield node.get("items")
        return
    properties = node.get("properties")
    if isinstance(properties, dict) and part in properties:
        yield properties[part]
    else:
        yield node.get("additionalProperties")
        patterns = node.get("patternProperties")
        yield from patterns.values() if isinstance(patterns, dict) else ()
