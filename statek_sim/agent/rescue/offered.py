"""The tools that were offered: which names there are, what type a text is meant to be, whether arguments fit."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable

from statek_sim.agent.rescue.reader import ARGUMENT_KEYS, Broken, Meter, Reader, strict
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.values import JSON

Tools = Sequence[str | Mapping[str, JSON]] | Mapping[str, Mapping[str, JSON]]
"""Names, or specs: `{"type": "function", "function": {"name", "parameters"}}` or that function alone. Or schemas by
name."""

NAME: Final = re.compile(r"[^\W\d][\w.:/-]{0,127}")
_JSON_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_WORDS: Final[dict[str, JSON]] = {"true": True, "false": False, "True": True, "False": False}
_ALIASES: Final = {
    "str": "string", "text": "string", "int": "integer", "float": "number", "double": "number", "bool": "boolean",
    "dict": "object", "list": "array", "tuple": "array", "none": "null",
}  # fmt: skip
"""What people write for JSON Schema's types."""
_NULLS: Final = ("null", "None")
_NO_NETWORK: Final = Registry()  # nothing is fetched for a `$ref`


class Misfit(Exception):
    """A call that names no offered tool, or whose arguments do not fit."""


@dataclass(frozen=True, slots=True)
class TypedText:
    """An argument that a dialect writes as text. `kind`: what the dialect says it is, `string`, `json`, or nothing."""

    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class NestedText:
    """An argument that is written as elements inside it: a `value`, or `text` where the schema wants a string."""

    text: str
    value: Argument


Argument = JSON | TypedText | NestedText | list["Argument"] | dict[str, "Argument"]
"""An argument as it was read."""


class Offered:
    """The tools that a reply may call. None: any name is accepted, and arguments are not checked.

    Raises `BadInput` for a tool without a name. Arguments are not checked against a schema that is none.
    """

    def __init__(self, tools: Tools | None) -> None:
        self.anything = tools is None
        self.schemas: dict[str, Mapping[str, JSON]] = {}
        if isinstance(tools, Mapping):
            tools = [{"name": name, "parameters": dict(schema)} for name, schema in tools.items()]
        for number, tool in enumerate(tools or (), 1):
            name, schema = _tool(tool, number)
            self.schemas[name] = schema
        self._validators: dict[str, Draft202012Validator | None] = {}

    def knows(self, name: str) -> bool:
        """Whether `name` may be called."""
        return self.anything or name in self.schemas

    def the_name(self, said: str) -> str:
        """Return the tool's name: `functions.N:0` and `functions.N` are N when that is meant. Raises `Misfit`."""
        for name in (
            said,
            said.removeprefix("functions."),
            re.sub(r":\d+$", "", said.removeprefix("functions.")),
        ):
            if name in self.schemas:
                return name
        if self.anything:
            return re.sub(r":\d+$", "", said.removeprefix("functions."))
        known = ", ".join(sorted(self.schemas)[:20]) or "none"
        raise Misfit(
            f"no tool is called {said[:80]!r}; offered: {known}.{suggestion(said[:80], self.schemas)}"
        )

    def typed(self, name: str, arguments: Mapping[str, Argument]) -> dict[str, JSON]:
        """Return the arguments with texts made what the schema says they are. What has two meanings stays text."""
        properties = self.schemas.get(name, {}).get("properties")
        known = properties if isinstance(properties, dict) else {}
        if known and len(arguments) == 1 and not set(arguments) & set(known):
            inner = _unwrapped(*arguments.items(), known=set(known))
            arguments = arguments if inner is None else inner
        return {key: _as_meant(value, known.get(key)) for key, value in arguments.items()}

    def unchecked(self, name: str) -> bool:
        """Whether the tool has a schema that is no JSON Schema."""
        return bool(self.schemas.get(name)) and self._validator(name) is None

    def _validator(self, name: str) -> Draft202012Validator | None:
        # Made when the first call of the tool is found: most replies call few of the tools they may.
        if name not in self._validators:
            schema = self.schemas.get(name)
            self._validators[name] = _validator(json.dumps(schema)) if schema else None
        return self._validators[name]

    def check(self, name: str, arguments: Mapping[str, JSON]) -> None:
        """Raise `Misfit` with path and expectation when the arguments do not fit the schema."""
        validator = self._validator(name)
        if validator is None:
            return
        try:
            error = min(
                validator.iter_errors(dict(arguments)),
                key=lambda found: list(map(str, found.path)),
                default=None,
            )
        except (Unresolvable, RecursionError) as problem:
            raise Misfit(f"the schema of {name!r} cannot be followed: {type(problem).__name__}") from None
        if error is not None:
            where = "".join(f"[{part!r}]" for part in error.path) or "the arguments"
            raise Misfit(f"{name!r}: {where}: {error.message[:200]}")


def _place(error: ValidationError) -> list[str]:
    return [str(part) for part in error.path]


def _tool(tool: object, number: int) -> tuple[str, Mapping[str, JSON]]:
    if isinstance(tool, str) and tool:
        return tool, {}
    spec = tool.get("function", tool) if isinstance(tool, Mapping) else None
    if not isinstance(spec, Mapping) or not isinstance(spec.get("name"), str) or not spec["name"]:
        raise BadInput(
            f"tool {number} has no name: expected a name, or an object with `name` and `parameters`"
        )
    schema: object = next(
        (spec[key] for key in ("parameters", "inputSchema", "input_schema") if spec.get(key)), {}
    )
    if not isinstance(schema, Mapping):
        raise BadInput(f"tool {spec['name']!r}: its parameters are a JSON Schema object, not {schema!r}")
    return spec["name"], schema


@lru_cache(maxsize=256)
def _validator(schema: str) -> Draft202012Validator | None:
    """Return what checks arguments, or None for a schema that is none: then nothing can be said about them.

    `schema` is JSON text. It is kept, since the same tools are offered turn after turn.
    """
    parsed = json.loads(schema)
    try:
        Draft202012Validator.check_schema(parsed)
    except SchemaError:
        return None
    return Draft202012Validator(parsed, registry=_NO_NETWORK)


def _unwrapped(item: tuple[str, Argument], *, known: set[str]) -> Mapping[str, Argument] | None:
    """Return the arguments that stand inside an only argument called `arguments` or the like, or None."""
    key, value = item
    if key not in (*ARGUMENT_KEYS, "properties", "kwargs"):
        return None
    if isinstance(value, TypedText):
        reader = Reader(value.text.strip(), Meter(1_000, 1_000), 64)
        try:
            value, end = reader.value(0)
        except Broken:
            return None
        if end != len(reader.text):
            return None
    return value if isinstance(value, dict) and value and set(value) <= known else None


def _kinds(schema: object) -> set[str]:
    """Return the JSON types that a schema takes; empty: it does not say."""
    if not isinstance(schema, Mapping):
        return set()
    said = schema.get("type")
    if isinstance(said, str):
        kinds = {_ALIASES.get(said.lower(), said)}
    elif isinstance(said, list):
        kinds = {_ALIASES.get(kind.lower(), kind) for kind in said if isinstance(kind, str)}
    elif "enum" in schema or "const" in schema:
        choices = schema["enum"] if isinstance(schema.get("enum"), list) else [schema.get("const")]
        kinds = {_kind(choice) for choice in choices} if isinstance(choices, list) else set()
    else:
        kinds = set()
        for key in ("anyOf", "oneOf"):
            parts = schema.get(key)
            for part in parts if isinstance(parts, list) else ():
                kinds |= _kinds(part)
        if not kinds and ("properties" in schema or "additionalProperties" in schema):
            kinds = {"object"}
        elif not kinds and "items" in schema:
            kinds = {"array"}
    if schema.get("nullable") is True:
        kinds.add("null")
    return kinds


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


def _as_meant(value: Argument, schema: object) -> JSON:
    kinds = _kinds(schema)
    if isinstance(value, NestedText):
        as_text = "string" in kinds and not kinds & {"object", "array"}
        return value.text if as_text else _as_meant(value.value, schema)
    if isinstance(value, TypedText):
        return _from_text(value, kinds)
    if isinstance(value, str) and kinds and "string" not in kinds:
        return _convert(value, kinds)
    if isinstance(value, dict):
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        known = properties if isinstance(properties, dict) else {}
        return {key: _as_meant(member, known.get(key)) for key, member in value.items()}
    if isinstance(value, list):
        items = schema.get("items") if isinstance(schema, Mapping) else None
        return [_as_meant(member, items) for member in value]
    return value


def _from_text(value: TypedText, kinds: set[str]) -> JSON:
    if kinds:
        if kinds == {"string"}:
            return value.text
        return _convert(value.text, kinds)
    if value.kind == "string":
        return value.text
    return _convert(value.text, {"number", "boolean", "null", "object", "array", "string"})


def _convert(text: str, kinds: set[str]) -> JSON:
    """Return `text` as the first of `kinds` that it can be without loss, or as the text that it is."""
    word = text.strip()
    if "null" in kinds and word in _NULLS:
        return None
    if "boolean" in kinds and word in _WORDS:
        return _WORDS[word]
    if kinds & {"integer", "number"} and _JSON_NUMBER.fullmatch(word):
        number = _parsed(word)
        if isinstance(number, int) or (isinstance(number, float) and "number" in kinds):
            return number
        if isinstance(number, float) and number.is_integer() and abs(number) < 2**53:
            return int(number)
    if kinds & {"object", "array"} and word[:1] in ("{", "["):
        made = _parsed(word)
        if (isinstance(made, dict) and "object" in kinds) or (isinstance(made, list) and "array" in kinds):
            return made
    return text


def _parsed(word: str) -> JSON:
    try:
        found = strict(word, 0, Meter(0, 1_000))
    except Broken:
        return None
    return found[0] if found is not None and found[1] == len(word) else None
