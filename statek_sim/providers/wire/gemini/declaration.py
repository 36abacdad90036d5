"""A function as a request declares it to Gemini, which takes JSON Schema in one of two members."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from statek_sim.values import JSON

SCHEMA_FIELDS: Final = frozenset(
    {
        "additionalProperties", "anyOf", "default", "defs", "description", "enum", "example", "format", "items",
        "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum",
        "nullable", "pattern", "properties", "propertyOrdering", "ref", "required", "title", "type",
    }
)  # fmt: skip
"""What `Schema`, the API's own kind, has (google-genai's type); any other member is a 400."""

_NAMED: Final = ("properties", "defs")


def declaration(name: JSON, description: JSON, parameters: JSON) -> dict[str, JSON]:
    """Return the entry of `functionDeclarations`.

    Parameters stand under `parameters`, as STATEK sends them, and under `parametersJsonSchema` where they say what the
    API's own `Schema` has no word for: `$ref`, `$schema`, `const`, `oneOf`, a list of types.
    """
    plain = isinstance(parameters, dict) and all(_plain(part) for part in _schemas(parameters))
    member = "parameters" if plain else "parametersJsonSchema"
    return {"name": name, "description": description, member: parameters}


def _plain(schema: Mapping[str, JSON]) -> bool:
    return schema.keys() <= SCHEMA_FIELDS and not isinstance(schema.get("type"), list)


def _schemas(schema: Mapping[str, JSON]) -> Iterator[Mapping[str, JSON]]:
    """Yield a schema and those inside it."""
    yield schema
    inner: list[JSON] = [schema.get("items"), schema.get("additionalProperties")]
    for key in _NAMED:
        named = schema.get(key)
        inner += list(named.values()) if isinstance(named, dict) else []
    either = schema.get("anyOf")
    inner += either if isinstance(either, list) else []
    for part in inner:
        if isinstance(part, dict):
            yield from _schemas(part)
