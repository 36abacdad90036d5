"""The tools that a rescued call may name. Converts arguments and validates them against the tools' schemas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from statek_sim.agent.rescue.json_reader import ARGUMENT_KEYS, JSON_STYLE, JsonReader, Style
from statek_sim.agent.rescue.work_budget import Broken, WorkBudget
from statek_sim.agent.schema import (
    aliased,
    converted,
    followed,
    from_text,
    kinds_of,
)
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.values import JSON

if TYPE_CHECKING:
    from statek_sim.agent.validation import Validator

Tools = Sequence[str | Mapping[str, JSON]] | Mapping[str, Mapping[str, JSON]]
"""Tool names, or specs (`{"type": "function", "function": {"name", "parameters"}}`, or just that function), or a
mapping from names to schemas.
"""

NAME: Final = re.compile(r"[^\W\d][\w.:/-]{0,127}")


_CONTAINERS: Final = frozenset(("object", "array", "null"))
_QUOTED: Final = re.compile(r'".*"', re.DOTALL)
_MOST_PARTS: Final = 64
_UNIONS: Final = ("anyOf", "oneOf")
_NO_TEXTS: Final = {"number", "boolean", "object", "array"}
_KNOWN: Final = frozenset(("string", "integer", "number", "boolean", "object", "array", "null"))
_ENTITY: Final = re.compile(r"&(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});")
"""Matches an XML character reference."""
_PLAIN_KEY: Final = re.compile(r"\w[\w.-]*+")
"""Matches an undamaged argument name; a name that is not in the tool's schema may be damaged."""


class Misfit(Exception):
    """Raised for a call to a tool that is not offered, or with arguments that do not fit."""


class Unclear(Misfit):
    """Raised for an argument that can be read in two ways."""


@dataclass(frozen=True, slots=True)
class TypedText:
    """An argument written as text between tags.

    `kind` is `text` for a string (whatever the schema), `json` for a JSON value, or empty if the type is not declared.
    """

    text: str
    kind: str = ""
    said: bool = False
    """Whether the format declares this value's type."""
    unsure: bool = False
    """Whether a newline at either end may belong to either the format or the text."""


Argument = JSON | TypedText
"""An argument's value before it is converted according to the schema."""


class Offered:
    """The tools that a reply may call. If None, any name is accepted, and arguments are not checked.

    With `coerce`, strings in formats that write JSON are converted to the types in the schema, as in a native call.
    Raises `BadInput` for a tool without a name. If a schema is invalid, arguments are not checked.
    """

    def __init__(self, tools: Tools | None, *, coerce: bool = False) -> None:
        self.anything = tools is None
        self.coerce = coerce
        self.schemas: dict[str, Mapping[str, JSON]] = {}
        if isinstance(tools, Mapping):
            tools = [{"name": name, "parameters": dict(schema)} for name, schema in tools.items()]
        for number, tool in enumerate(tools or (), 1):
            name, schema = _tool(tool, number)
            self.schemas[name] = schema
        self._validators: dict[str, Validator | None] = {}

    def properties(self, name: str) -> frozenset[str]:
        """Return the argument names listed in a tool's schema; none for an unknown tool."""
        properties = self.schemas.get(name, {}).get("properties")
        return frozenset(properties if isinstance(properties, dict) else ())

    def knows(self, name: str) -> bool:
        """Return whether `name` may be called."""
        return self.anything or name in self.schemas

    def the_name(self, said: str) -> str:
        """Return the tool's name: `functions.N:0` and `functions.N` become N if that is offered. Raises `Misfit`."""
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
            f"there is no tool {said[:80]!r}; offered: {known}.{suggestion(said[:80], self.schemas)}"
        )

    def typed(self, name: str, arguments: Mapping[str, Argument]) -> dict[str, JSON]:
        """Return the arguments with strings converted to the types in the schema; raises `Unclear`."""
        if self.anything:
            _sure_of_types(arguments.values())
        root = self.schemas.get(name, {})
        known = _properties(root)
        if known and len(arguments) == 1 and not set(arguments) & set(known):
            inner = _unwrapped(*arguments.items(), known=set(known))
            arguments = arguments if inner is None else inner
        _sure_of_types(
            value
            for key, value in arguments.items()
            if isinstance(value, TypedText) and key not in known and not _PLAIN_KEY.fullmatch(key)
        )
        meant = _Meant(root, self.coerce)
        return {key: meant.value(value, known.get(key)) for key, value in arguments.items()}

    def unchecked(self, name: str) -> bool:
        """Return whether the tool's parameters are not a valid JSON Schema, so that arguments are not checked."""
        return bool(self.schemas.get(name)) and self._validator(name) is None

    def _validator(self, name: str) -> Validator | None:
        # Created for the first call to the tool: most replies call few of the offered tools.
        if name not in self._validators:
            schema = self.schemas.get(name)
            self._validators[name] = _validator_of(schema) if schema else None
        return self._validators[name]

    def check(self, name: str, arguments: Mapping[str, JSON]) -> None:
        """Raise `Misfit`, with the path and the reason, if the arguments do not fit the tool's schema."""
        validator = self._validator(name)
        if validator is None:
            return
        from statek_sim.agent.validation import errors_of  # noqa: PLC0415  # jsonschema, only when a call is checked

        for error in errors_of(validator, arguments)[:1]:
            where = "".join(f"[{part!r}]" for part in error.path) or "the arguments"
            raise Misfit(f"{name!r}: {where}: {error.message[:200]}")


def _sure_of_types(arguments: Iterable[Argument]) -> None:
    """Raise `Unclear` for a string that may also be a number or another value, because there is no schema to decide.

    Parsers disagree about `<parameter=count>42`: it may be a number or a string.
    """
    for value in arguments:
        match value:
            case TypedText(kind="") if not isinstance(_from_text(value, set()), str):
                shown = value.text.strip()[:24]
                raise Unclear(f"cannot tell whether {shown!r} is a string: no tool schema was given")
            case TypedText(kind=kind, text=text) if kind != "text" and _has_two_spellings(text):
                raise Unclear(
                    f"cannot tell whether {text[:24]!r} is meant literally: no tool schema was given"
                )


def _has_two_spellings(text: str) -> bool:
    """Return whether other parsers may read a string between tags differently: with `&amp;`, or with only spaces."""
    return _ENTITY.search(text) is not None or (text != "" and not text.strip(" "))


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
        raise BadInput(
            f"tool {spec['name']!r}: expected `parameters` to be a JSON Schema object, got {schema!r}"
        )
    return spec["name"], schema


def _validator_of(schema: Mapping[str, JSON]) -> Validator | None:
    """Return a validator for a schema, or None if the schema is invalid; non-standard type names are accepted."""
    from statek_sim.agent.validation import SchemaError, validator_of  # noqa: PLC0415  # as above

    for one in (schema, aliased(dict(schema))):
        try:
            return validator_of(one) if isinstance(one, Mapping) else None
        except SchemaError:
            continue
    return None


def _properties(root: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return each argument's schema, including those from parts such as `allOf` and `anyOf` of the tool's schema."""
    found: dict[str, list[JSON]] = {}
    todo, seen = [followed(root, root)], 0
    while todo and seen < _MOST_PARTS:
        part, seen = todo.pop(0), seen + 1
        if not isinstance(part, Mapping):
            continue
        said = part.get("properties")
        for key, schema in (said if isinstance(said, Mapping) else {}).items():
            found.setdefault(key, []).append(schema)
        for word in ("allOf", *_UNIONS):
            parts = part.get(word)
            todo += [followed(one, root) for one in parts] if isinstance(parts, list) else []
    return {key: each[0] if len(each) == 1 else {"anyOf": each} for key, each in found.items()}


def _unwrapped(item: tuple[str, Argument], *, known: set[str]) -> Mapping[str, Argument] | None:
    """Return the arguments wrapped in a single argument with a name such as `arguments`, or None."""
    key, value = item
    if key not in (*ARGUMENT_KEYS, "properties", "kwargs"):
        return None
    if isinstance(value, TypedText):
        value = _read(value.text.strip(), JSON_STYLE)
    return value if isinstance(value, dict) and value and set(value) <= known else None


def _sure_of_text(value: TypedText, made: JSON, kinds: set[str]) -> None:
    """Raise `Unclear` for a string that other parsers would read differently: a quoted string, or `null`."""
    if not isinstance(made, str) or value.kind not in ("json", ""):
        return
    if value.kind == "json" and _QUOTED.fullmatch(value.text) is not None and made == value.text:
        raise Unclear(f"cannot tell whether the quotes in {value.text[:24]} are part of the string")
    if value.kind == "" and kinds and value.text.lower() == "null":
        raise Unclear("cannot tell whether 'null' is a string or null")


@dataclass(frozen=True, slots=True)
class _Meant:
    """Converts arguments to the types in the schema `root`, unless the format declares their types."""

    root: Mapping[str, JSON]
    coerce: bool

    def value(self, value: Argument, schema: object) -> JSON:
        """Return a value converted to the types in `schema`; raises `Unclear` if it can be read in two ways."""
        schema = followed(schema, self.root)
        if isinstance(value, TypedText):
            return self._text(value, schema)
        if isinstance(value, dict):
            properties = schema.get("properties") if isinstance(schema, Mapping) else None
            known = properties if isinstance(properties, dict) else {}
            return {key: self.value(member, known.get(key)) for key, member in value.items()}
        if isinstance(value, list):
            items = schema.get("items") if isinstance(schema, Mapping) else None
            return [self.value(member, items) for member in value]
        kinds = kinds_of(schema)
        if isinstance(value, str) and not self.coerce:
            # The format declares a string; if the schema does not accept strings, the call does not fit.
            return value
        return converted(value, kinds) if kinds else value

    def _text(self, value: TypedText, schema: object) -> JSON:
        kinds = kinds_of(schema)
        made = _from_text(value, kinds)
        _sure_of_text(value, made, kinds)
        if value.unsure and isinstance(made, str):
            raise Unclear(f"cannot tell whether {value.text[:24]!r} begins or ends with a newline")
        if value.kind != "" or (kinds and kinds <= _KNOWN):
            return made
        # The tool's schema gives no type, or an unknown one.
        if made is not None and not isinstance(_literal(value.text) if isinstance(made, str) else made, str):
            raise Unclear(
                f"cannot tell whether {value.text.strip()[:24]!r} is a string: the schema does not say"
            )
        return made if made is None else value.text


def _literal(text: str) -> JSON:
    """Return the object or list that a string contains in Python notation (`{'a': True}`), or else the string."""
    word = text.strip()
    made = _read(word, Style(python=True)) if word.startswith(("{", "[")) else None
    return made if isinstance(made, dict | list) else text


def _read(text: str, style: Style) -> JSON:
    """Return a string's value, read tolerantly; None if it is not a value or lacks a bracket."""
    reader = JsonReader(text, WorkBudget(1_000), 64, style)
    try:
        value, end = reader.value(0)
    except Broken:
        return None
    return value if end == len(text) and "closed_brackets" not in reader.repairs else None


def _without_quotes(value: TypedText, kinds: set[str]) -> str:
    """Return an argument's text, without quotes if it is JSON and the schema does not accept strings."""
    quoted = value.kind == "json" and "string" not in kinds and value.text.strip().startswith(('"', '\\"'))
    word = value.text.strip().replace('\\"', '"') if quoted else ""
    return word[1:-1] if len(word) > 1 and word[-1] == '"' else value.text


def _from_text(value: TypedText, kinds: set[str]) -> JSON:
    if value.kind == "text":
        return value.text
    if kinds:
        if kinds == {"string"}:
            if value.said and value.kind == "json" and not isinstance(from_text(value.text, _NO_TEXTS), str):
                raise Unclear(
                    f"the format says that {value.text[:24]!r} is not a string, but the tool's schema says that it is"
                )
            return value.text
        made = from_text(_without_quotes(value, kinds), kinds)
        if isinstance(made, str):
            made = value.text
        return _literal(value.text) if made is value.text and kinds <= _CONTAINERS else made
    if value.kind == "json" and value.text.lstrip().startswith('"'):
        made = _read(value.text.strip(), JSON_STYLE)
        return value.text if made is None else made
    return from_text(value.text, {"number", "boolean", "null", "object", "array", "string"})
