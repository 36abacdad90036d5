"""Converts pydantic's validation errors to readable findings: key path, what was wrong, what was expected."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from statek_sim.did_you_mean import suggestion
from statek_sim.scenario.part import PATTERN_WORDS
from statek_sim.scenario.problem import MAX_PROBLEMS, Finding, Keypath, dotted, shown
from statek_sim.scenario.schema import FORMAT, ScenarioFile
from statek_sim.values import JSON

Schema = dict[str, JsonValue]


def json_schema() -> Schema:
    """Return the JSON Schema for scenario files; every call returns a new copy."""
    described: Schema = ScenarioFile.model_json_schema()
    _give_titles(described)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{FORMAT.replace('/', ':').replace('@', ':')}",
        **described,
        "title": f"{FORMAT}: scenarios for STATEK agents",
    }


def _give_titles(node: JsonValue) -> None:
    """Give every key a title; pydantic gives none to keys that refer to a definition."""
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
    """Return the keys or values that a scenario file may have at `keypath`."""
    return options_of(_schema(), keypath)


def options_of(schema: Schema, keypath: Keypath) -> tuple[str, ...]:
    """Return a mapping's keys, or an enumeration's values, that `schema` allows at `keypath`."""
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
    """Yield `node`, the definition that it refers to, and its alternatives."""
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


_EXPECTED: Final = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "finite_number": "a finite number",
}
_BOUNDS: Final = {
    "greater_than_equal": "ge",
    "greater_than": "gt",
    "less_than_equal": "le",
    "less_than": "lt",
}
_BOUND_WORDS: Final = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}


FEW: Final = 10
"""Maximum number of keys that an error lists; a longer list would hide the problem."""

_OUR_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "agents": ("role", "roles"),
    "code": ("python_code", "program"),
    "error": ("failure",),
    "exit": ("exit_status", "output", "result", "return", "returns"),
    "expect": ("assert", "asserts", "assertions", "checks", "expectations", "expected", "then"),
    "http": ("http_status", "status_code"),
    "id": ("name", "scenario"),
    "latency": ("delay", "sleep", "wait"),
    "limits": ("max_turns", "max_exceptions", "max_consecutive_exceptions", "max_token_usage"),
    "llm_calls": ("model_calls", "num_calls", "requests"),
    "locals": ("args", "inputs", "params", "state", "variables", "vars"),
    "max_concurrency": ("concurrency", "max_workers", "workers"),
    "message": ("input", "prompt", "query", "question", "task", "user", "user_message"),
    "parent": ("delegated_by",),
    "prompt": ("instructions", "system", "system_message", "system_prompt"),
    "repeat": ("count", "n", "times"),
    "script": ("answers", "fake", "llm", "mock", "model_replies", "replies", "responses"),
    "seed": ("random_seed",),
    "settings": ("config", "environment", "env", "options"),
    "stop": ("reason", "stop_reason", "stopped"),
    "text": ("answer", "content", "message", "response"),
    "title": ("desc", "description", "summary"),
    "tools": ("functions", "tool_calls"),
    "until": ("deadline", "duration", "end"),
    "when": ("condition", "if", "match"),
}
"""For keys in the format, other tools' names that a similarity search would not find."""


Options = Callable[[Keypath], Sequence[str]]
"""A function that returns the keys or values that a file may have at a key path."""


def findings_of(
    error: ValidationError, value: JSON, *, prefix: Keypath, options: Options = options_at
) -> list[Finding]:
    """Return the problems in `value`, which is at `prefix` in a file; the findings' key paths start at `value`.

    `options` returns the format's allowed keys and values, by default those for scenario files.
    """
    return [
        _finding(details, value, prefix, options)
        for details in error.errors(include_url=False)[:MAX_PROBLEMS]
        # A list counts as too short if its entries are wrong; those have their own findings.
        if details["type"] != "too_short" or not details["input"]
    ]


def _finding(details: ErrorDetails, value: JSON, prefix: Keypath, options: Options) -> Finding:
    keypath = _keypath(details["loc"], value)
    subject = dotted(keypath)
    match details["type"]:
        case "extra_forbidden":
            known = options((*prefix, *keypath[:-1]))
            hint = _meant(str(keypath[-1]), known)
            where = f" in {dotted(keypath[:-1])}" if keypath[1:] else ""
            if not hint and 0 < len(known) <= FEW:
                where += f", expected {' or '.join(known)}"
            return Finding(keypath, f"unknown key {keypath[-1]!r}{where}.{hint}".removesuffix("."))
        case "missing":
            where = f" in {dotted(keypath)}" if keypath else ""
            return Finding(keypath, f"missing key {str(details['loc'][-1])!r}{where}")
        case "refused":
            return Finding(keypath, f"{subject}: {details['msg']}{_but_got(details)}")
        case _:
            expected = _expected(details, (*prefix, *keypath))
            return Finding(
                keypath, f"{subject}: expected {expected}, got {shown(details['input'])}{_hint(details)}"
            )


def _meant(key: str, known: Sequence[str]) -> str:
    """Return ` Did you mean 'x'?` for another tool's name for a key, or a similar key; otherwise an empty string."""
    ours = next((own for own, words in _OUR_WORDS.items() if own in known and key.casefold() in words), None)
    return suggestion(key, known) if ours is None else f" Did you mean {ours!r}?"


def _but_got(details: ErrorDetails) -> str:
    # An error with a message in its context was raised by a whole part's validator, not by a single value.
    return "" if "message" in details.get("ctx", {}) else f", got {shown(details['input'])}"


def _keypath(loc: tuple[int | str, ...], value: JSON) -> Keypath:
    """Return the parts of pydantic's `loc` that exist in `value`; pydantic adds union tags."""
    keypath: list[str | int] = []
    for part in loc:
        match value:
            case dict() if isinstance(part, str) and part in value:
                value = value[part]
            case list() if isinstance(part, int) and part < len(value):
                value = value[part]
            case _:
                continue
        keypath.append(part)
    return tuple(keypath)


def _expected(details: ErrorDetails, keypath: Keypath) -> str:
    kind, ctx = details["type"], details.get("ctx", {})
    if kind in _EXPECTED:
        return _EXPECTED[kind]
    if kind in _BOUNDS:
        bound = _BOUNDS[kind]
        return f"a number of {_BOUND_WORDS[bound]} {ctx[bound]}"
    if kind == "literal_error":
        return str(ctx["expected"])
    if kind == "string_pattern_mismatch":
        return PATTERN_WORDS.get(str(ctx["pattern"]), f"a string that matches {ctx['pattern']}")
    if kind in ("too_short", "string_too_short"):
        return "at least one entry" if kind == "too_short" else "a non-empty string"
    return f"something else ({details['msg']})"


def _hint(details: ErrorDetails) -> str:
    given = details["input"]
    # Texts among the options are quoted.
    expected = str(details.get("ctx", {}).get("expected", ""))
    if details["type"] == "literal_error" and isinstance(given, str):
        hint = suggestion(given, [part.strip("'") for part in expected.replace(" or ", ", ").split(", ")])
        return f".{hint}" if hint else ""
    wants_text = details["type"] == "string_type" or "'" in expected
    if wants_text and isinstance(given, int | float):
        return f'; write "{str(given).lower() if isinstance(given, bool) else given}" in quotes'
    return ""
