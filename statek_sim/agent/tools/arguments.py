"""Validates arguments against a tool's JSON Schema (2020-12), and converts them to its types without loss.

`schema.converted` defines all conversions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from statek_sim.agent.schema import converted, kinds_of
from statek_sim.agent.tools.type_hints import Conversions
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadTool
from statek_sim.providers.mismatch import shorten
from statek_sim.values import JSON

if TYPE_CHECKING:
    from statek_sim.agent.validation import ValidationError, Validator

MOST: Final = 5
"""The maximum number of problems reported per call."""

_SHOWN: Final = 60
_ROUNDS: Final = 8
"""The maximum number of conversion rounds; each converts values inside strings that the previous one converted."""
_OF_TYPES: Final = ("type", "enum", "const", "anyOf", "oneOf")
"""The kinds of validation error for a value of the wrong type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The result of a check: the arguments, and one line in `problems` for each error.

    `missing` is the first missing required argument; `coerced` lists the paths of converted values.
    """

    arguments: Mapping[str, JSON]
    problems: tuple[str, ...] = ()
    missing: str | None = None
    coerced: tuple[str, ...] = ()


class ArgumentCheck:
    """Checks a tool's arguments against its schema."""

    def __init__(self, name: str, schema: Mapping[str, JSON], conversions: Conversions | None = None) -> None:
        """Raise `BadTool` for an invalid schema, or one with an unresolvable `$ref`.

        `conversions` belong to the tool's code, and are used to check type hints after the schema.
        """
        self.conversions: Conversions = conversions or {}
        self._schema = schema
        self._plain = _plain_types(schema) if isinstance(schema, dict) else None
        if self._plain is None:
            self._check_schema(name)

    def _check_schema(self, name: str) -> None:
        from statek_sim.agent.validation import SchemaError, unresolved  # noqa: PLC0415  # jsonschema

        schema = self._schema
        try:
            _ = self._validator
        except TypeError as error:
            raise BadTool(f"tool {name!r}: parameters: invalid JSON Schema: {error}") from error
        except SchemaError as error:
            where = "".join(f"[{step!r}]" for step in error.absolute_path)
            raise BadTool(
                f"tool {name!r}: parameters{where}: invalid JSON Schema: {error.message}"
            ) from error
        if not _takes_objects(schema):
            raise BadTool(
                f"tool {name!r}: parameters: {shorten(json.dumps(schema), _SHOWN)} does not accept "
                "objects; expected the schema of an object"
            )
        reference = unresolved(schema)
        if reference is not None:
            raise BadTool(
                f"tool {name!r}: parameters: $ref {shorten(reference, _SHOWN)!r} cannot be resolved; "
                "expected a reference inside the schema (`#/$defs/NAME`): nothing is fetched"
            )

    def plainly_fits(self, arguments: Mapping[str, JSON]) -> bool:
        """Return whether `arguments` fit a simple schema; if not, `check` decides with JSON Schema."""
        return self._plain is not None and _fits(arguments, *self._plain)

    def check(self, arguments: Mapping[str, JSON], *, coerce: bool) -> Checked:
        """Validate `arguments`, converting them first if `coerce` is set."""
        if self.plainly_fits(arguments):
            return Checked(arguments=arguments)
        errors = self._errors(arguments)
        coerced: list[str] = []
        if coerce:
            arguments, errors, coerced = self._brought_to_types(arguments, errors)
        return Checked(
            arguments=arguments,
            problems=tuple(_problem(error) for error in errors[:MOST]),
            missing=next((_missing(error) for error in errors if error.validator == "required"), None),
            coerced=tuple(coerced),
        )

    @cached_property
    def _validator(self) -> Validator:
        # Created for the first call that does not obviously fit: most calls do.
        from statek_sim.agent.validation import validator_of  # noqa: PLC0415  # jsonschema

        return validator_of(self._schema)

    def _errors(self, arguments: Mapping[str, JSON], *, exact: bool = False) -> list[ValidationError]:
        from statek_sim.agent.validation import errors_of, exact_validator_of  # noqa: PLC0415  # jsonschema

        return errors_of(exact_validator_of(self._schema) if exact else self._validator, arguments)

    def _brought_to_types(
        self, arguments: Mapping[str, JSON], errors: list[ValidationError]
    ) -> tuple[Mapping[str, JSON], list[ValidationError], list[str]]:
        """Return the converted arguments, the remaining problems, and the paths of converted values.

        A string that becomes a list has members that were not checked before, so several rounds may be needed.
        """
        coerced: list[str] = []
        for _ in range(_ROUNDS):
            changed, paths = _coerced(arguments, errors)
            if not paths:
                break
            arguments, errors = changed, self._errors(changed)
            coerced += [path for path in paths if path not in coerced]
        if not errors and _has_whole_floats(arguments):
            # They fit the schema, but Python code cannot use them as integers: `range(4.0)`.
            changed, paths = _coerced(arguments, self._errors(arguments, exact=True))
            if paths and not self._errors(changed):
                return changed, [], [*coerced, *paths]
        return arguments, errors, coerced


def _takes_objects(schema: object) -> bool:
    """Return whether the schema accepts objects. The schema `true` is not allowed for arguments."""
    return isinstance(schema, Mapping) and "object" in (kinds_of(schema) or {"object"})


def _has_whole_floats(arguments: Mapping[str, JSON]) -> bool:
    """Return whether any value is a whole float, such as `4.0`."""
    waiting: list[JSON] = [*arguments.values()]
    while waiting:
        value = waiting.pop()
        if isinstance(value, float) and value.is_integer():
            return True
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return False


_PLAIN: Final[Mapping[str, tuple[type, ...]]] = {"string": (str,), "integer": (int,), "boolean": (bool,)}
_SAID: Final = frozenset({"type", "description", "title", "default"})
_PlainSchema = tuple[Mapping[str, tuple[type, ...]], frozenset[str]]


def _plain_types(schema: Mapping[str, JSON]) -> _PlainSchema | None:
    """Return the exact types of a flat object's properties and the required names; None for any other schema.

    Checking these takes a microsecond rather than 0.2 ms with jsonschema, which still produces the messages.
    """
    properties, required = schema.get("properties", {}), schema.get("required", [])
    known = {"type", "properties", "required", "additionalProperties", "description", "title"}
    if schema.get("type") != "object" or not set(schema) <= known or not isinstance(properties, dict):
        return None
    if not isinstance(schema.get("additionalProperties", True), bool) or not isinstance(required, list):
        return None
    if not _is_described(schema) or not all(isinstance(name, str) for name in required):
        return None
    if len(set(required)) < len(required):
        return None
    types: dict[str, tuple[type, ...]] = {}
    for name, about in properties.items():
        if not isinstance(about, dict) or not set(about) <= _SAID or not _is_described(about):
            return None
        kind = about.get("type")
        if not isinstance(kind, str) or kind not in _PLAIN:
            return None
        types[name] = _PLAIN[kind]
    return types, frozenset(map(str, required))


def _is_described(schema: Mapping[str, JSON]) -> bool:
    """Return whether a schema's description and default are valid in JSON Schema."""
    return (
        isinstance(schema.get("description", ""), str)
        and isinstance(schema.get("title", ""), str)
        and isinstance(schema.get("default"), str | int | float | None)
    )


def _fits(
    arguments: Mapping[str, JSON], types: Mapping[str, tuple[type, ...]], required: frozenset[str]
) -> bool:
    """Return whether all arguments are known and have exactly the right types, with none missing."""
    for name, value in arguments.items():
        if type(value) not in types.get(name, ()):
            return False
    return required <= arguments.keys()


def _coerced(
    arguments: Mapping[str, JSON], errors: Sequence[ValidationError]
) -> tuple[Mapping[str, JSON], list[str]]:
    """Return the arguments with wrongly typed values converted without loss, and the paths of these values."""
    changed: JSON = json.loads(json.dumps(arguments))
    done: list[str] = []
    for error in errors:
        if error.validator not in _OF_TYPES or not error.absolute_path or _path(error) in done:
            continue
        there = _instance(error)
        value = converted(there, kinds_of(error.schema))
        if value is there:
            continue
        *way, last = error.absolute_path
        here: JSON = changed
        for step in way:
            here = here[step]  # type: ignore[index]  # the way that jsonschema went
        here[last] = value  # type: ignore[index]
        done.append(_path(error))
    assert isinstance(changed, dict)
    return changed, done


def _instance(error: ValidationError) -> JSON:
    """Return the value that an error concerns."""
    found: JSON = error.instance  # type: ignore[assignment]  # jsonschema says it may be unset before it is raised
    return found


def _path(error: ValidationError) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
    return "arguments" + "".join(steps)


def _missing(error: ValidationError) -> str:
    wanted = error.validator_value if isinstance(error.validator_value, list) else []
    there = _instance(error)
    name = next((str(name) for name in wanted if isinstance(there, dict) and name not in there), "?")
    prefix = _path(error).removeprefix("arguments").lstrip(".")
    return f"{prefix}.{name}" if prefix else name


def _problem(error: ValidationError) -> str:
    """Format an error on one line: path, expectation, actual value."""
    shown = shorten(json.dumps(_instance(error), ensure_ascii=False, default=str), _SHOWN)
    value = error.validator_value
    match error.validator:
        case "type":
            kinds = value if isinstance(value, list) else [value]
            return f"{_path(error)}: expected {' or '.join(map(str, kinds))}, got {shown}"
        case "required":
            return f"{_path(error)}: required {_missing(error).rpartition('.')[2]!r} is missing"
        case "enum" if isinstance(value, list):
            options = ", ".join(json.dumps(option, ensure_ascii=False) for option in value)
            return f"{_path(error)}: expected one of {options}; got {shown}"
        case "additionalProperties" if isinstance(error.instance, dict) and value is False:
            known = error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
            extra = [name for name in error.instance if name not in known]
            hint = suggestion(extra[0], known) if extra else ""
            problem = (
                f"{_path(error)}: unknown {', '.join(map(repr, extra))}, expected only {', '.join(known)}."
            )
            return (problem + hint).removesuffix(".")
        case _:
            return f"{_path(error)}: {shorten(error.message, 2 * _SHOWN)}"
