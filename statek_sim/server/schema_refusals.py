"""The rules by which providers reject JSON Schemas for tools and structured output.

Each rule links to a public source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from statek_sim.values import JSON

Schema = Mapping[str, Any]

NOT_AT_THE_TOP: Final = ("oneOf", "anyOf", "allOf", "enum", "not")
"""https://github.com/chatanywhere/GPT_API_free/issues/403"""

_NOT_STRICT: Final = ("oneOf", "allOf")
"""https://github.com/openai/openai-agents-python/pull/1884, https://github.com/makenotion/notion-mcp-server/issues/102"""

_KINDS: Final = ("type", "anyOf", "enum", "const", *_NOT_STRICT)


def openai_problem(schema: Schema, *, strict: bool) -> str | None:
    """Return the first reason why OpenAI rejects a schema, or None if it is accepted."""
    if any(word in schema for word in NOT_AT_THE_TOP):
        listed = "/".join(map(repr, NOT_AT_THE_TOP))
        return f"schema must have type 'object' and not have {listed} at the top level."
    kind = schema.get("type")
    if kind != "object" and schema:
        # https://github.com/openai/openai-node/issues/1540
        return f"""schema must be a JSON Schema of 'type: "object"', got 'type: "{kind}"'."""
    return next(
        (why for context, part in _parts(schema, ()) for why in _problems(part, context, strict)), None
    )


def _problems(part: Schema, context: tuple[str, ...], strict: bool) -> Iterator[str]:
    where, kind = f"In context={context!r}, ", part.get("type")
    if _is_kind(kind, "array") and "items" not in part:
        # https://github.com/streamnative/streamnative-mcp-server/issues/26
        yield f"{where}array schema missing items."
    if not strict:
        return
    if "$ref" in part:
        if beside := part.keys() - {"$ref"}:
            # https://github.com/camel-ai/camel/issues/3001
            listed = ", ".join(map(repr, sorted(beside)))
            yield f"context={context!r}, $ref cannot have keywords {{{listed}}}."
        return
    yield from (f"{where}{word!r} is not permitted." for word in _NOT_STRICT if word in part)
    if part.keys().isdisjoint(_KINDS):
        # https://github.com/openai/openai-node/issues/1597
        yield f"{where}schema must have a 'type' key."
    if _is_kind(kind, "object"):
        yield from (f"{where}{why}" for why in _open_object(part))


def _open_object(part: Schema) -> Iterator[str]:
    properties, required = part.get("properties"), part.get("required")
    if not isinstance(properties, dict):
        # https://github.com/spring-projects/spring-ai/issues/4776
        yield "object schema missing properties."
        return
    if part.get("additionalProperties") is not False:
        # https://github.com/lastmile-ai/openai-agents-mcp/issues/2
        yield "'additionalProperties' is required to be supplied and to be false."
    named = required if isinstance(required, list) else []
    wrong = [f"Missing '{name}'." for name in properties if name not in named]
    # https://github.com/kevinwatt/mysql-mcp/issues/5, https://github.com/camel-ai/camel/issues/2629
    wrong += [f"Extra required key '{name}' supplied." for name in named if name not in properties]
    if wrong:
        yield (
            "'required' is required to be supplied and to be an array including every key in properties. "
            f"{wrong[0]}"
        )


def _is_kind(kinds: JSON, kind: str) -> bool:
    return kind in kinds if isinstance(kinds, list) else kinds == kind


def _parts(schema: Schema, context: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Schema]]:
    """Yield the schema and its subschemas, each with its path, which OpenAI calls the context."""
    yield context, schema
    for table in ("properties", "$defs", "definitions"):
        inner = schema.get(table)
        for name, part in inner.items() if isinstance(inner, dict) else ():
            if isinstance(part, dict):
                yield from _parts(part, (*context, table, name))
    if isinstance(schema.get("items"), dict):
        yield from _parts(schema["items"], (*context, "items"))
    either = schema.get("anyOf")
    for number, part in enumerate(either if isinstance(either, list) else ()):
        if isinstance(part, dict):
            yield from _parts(part, (*context, "anyOf", str(number)))


def gemini_arrays(schema: Schema, where: str) -> Iterator[str]:
    """Yield the path of each array schema without `items`, as Gemini writes it: `parameters.properties[tags].items`.

    `where` is the path of `schema`. Source: https://github.com/cline/cline/issues/7926.
    """
    if str(schema.get("type")).upper() == "ARRAY" and "items" not in schema:
        yield f"{where}.items"
    inner = schema.get("properties")
    named = [(f"properties[{name}]", part) for name, part in inner.items()] if isinstance(inner, dict) else []
    either = schema.get("anyOf")
    named += [
        (f"any_of[{number}]", part) for number, part in enumerate(either if isinstance(either, list) else [])
    ]
    for name, part in [*named, ("items", schema.get("items"))]:
        if isinstance(part, dict):
            yield from gemini_arrays(part, f"{where}.{name}")
