"""Validates values against JSON Schema (2020-12).

Import this module only where needed, because jsonschema takes 40 ms to import.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError as SchemaError
from jsonschema.exceptions import ValidationError as ValidationError
from jsonschema.validators import extend
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # it has none
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from statek_sim.values import JSON

Validator = Draft202012Validator
"""The JSON Schema version used for validation."""


@lru_cache(maxsize=256)
def _validator(schema: str) -> Validator:
    parsed = json.loads(schema)
    Validator.check_schema(parsed)
    # An empty registry: a `$ref` to another document is an error, never a request.
    return Validator(parsed, registry=Registry())


def validator_of(schema: Mapping[str, JSON]) -> Validator:
    """Return a validator for `schema`; raises `SchemaError` if it is invalid.

    Validators are cached by the schema's text, because the same tools are offered in every turn.
    """
    return _validator(json.dumps(schema))


@lru_cache(maxsize=256)
def _exact(schema: str) -> Validator:
    made: Validator = _EXACT(json.loads(schema), registry=Registry())
    return made


def exact_validator_of(schema: Mapping[str, JSON]) -> Validator:
    """Return a validator for a valid schema that does not accept `4.0` as an integer, as in Python."""
    return _exact(json.dumps(schema))


_EXACT: Final = extend(  # type: ignore[no-untyped-call]  # the stubs leave it out
    Validator,
    type_checker=Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ),
)


def unresolved(schema: Mapping[str, JSON]) -> str | None:
    """Return the first `$ref` that leads to a missing part of the schema or to another document, or None.

    The result is cached by the schema's text, because many runs register the same tools.
    """
    return _unresolved(json.dumps(schema))


@lru_cache(maxsize=1024)
def _unresolved(text: str) -> str | None:
    schema = json.loads(text)
    root = DRAFT202012.create_resource(schema)
    registry: Registry[Any] = REGISTRY.with_resource("", root).crawl()
    waiting = [(registry.resolver_with_root(root), root)]
    seen: set[int] = set()
    while waiting:
        resolver, resource = waiting.pop()
        contents = resource.contents
        if id(contents) in seen:
            continue
        seen.add(id(contents))
        for key in ("$ref", "$dynamicRef"):
            reference = contents.get(key) if isinstance(contents, dict) else None
            if isinstance(reference, str):
                try:
                    found = resolver.lookup(reference)
                except Unresolvable:
                    return reference
                waiting.append((found.resolver, DRAFT202012.create_resource(found.contents)))
        waiting += [(resolver.in_subresource(inner), inner) for inner in resource.subresources()]
    return None


def errors_of(validator: Validator, arguments: Mapping[str, JSON] | JSON) -> list[ValidationError]:
    """Return the errors in arguments, ordered by path; a schema that cannot be resolved is one error."""
    try:
        found = validator.iter_errors(dict(arguments) if isinstance(arguments, Mapping) else arguments)
        return sorted(found, key=lambda error: [str(step) for step in error.absolute_path])
    except RecursionError:
        return [ValidationError("nested too deeply", validator="depth")]
    except Unresolvable as error:
        return [
            ValidationError(f"a reference in the schema cannot be resolved: {error.ref}", validator="$ref")
        ]
