"""Calls and answers that are wrong in one way: plain functions of the right ones and a number between 0 and 1."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from statek_sim.evals.models.chance import picked
from statek_sim.values import JSON

Schemas = Mapping[str, Mapping[str, Any]]
"""The parameters of each offered tool, as JSON Schema."""

_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
_NAMES: Final = ("search", "lookup_data", "run_query", "get_result")
"""What models call that no tool is called."""

EARLY: Final = (
    "I will now call {tool} to get what I need.",
    "First I am going to use {tool}, and then I will answer.",
    "Everything was checked. The task is done.",
    "Here is the answer: it has been taken care of, nothing else is needed.",
)
"""What models say where a call is due: plans, and answers that are made up."""


def early_answer(tool: str, *words: str | int) -> str:
    """Return prose in the place of a call."""
    return picked(EARLY, *words).format(tool=tool)


def wrong_value(value: JSON) -> JSON:
    """Return a value of the same type that is not the same."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return round(value * 1.1 + 0.1, 4)
        case str():
            return wrong_text(value)
        case list():
            return value[:-1] if value else ["unknown"]
        case dict() if value:
            key = next(iter(value))
            return {**value, key: wrong_value(value[key])}
        case _:
            return "unknown"


def wrong_text(text: str) -> str:
    """Return a text with its last number one higher, or its longest word misspelt where it has none."""
    numbers = list(_NUMBER.finditer(text))
    if numbers:
        last = numbers[-1]
        return text[: last.start()] + _next(last[0]) + text[last.end() :]
    words = sorted(_WORD.finditer(text), key=lambda found: (-len(found[0]), found.start()))
    if not words:
        return f"{text}?"
    found = words[0][0]
    return text.replace(
        found, found[0] + found[2] + found[1] + found[3:] if found[1] != found[2] else found[:-1]
    )


def _next(number: str) -> str:
    if "." in number:
        whole, _, part = number.partition(".")
        return f"{int(whole) + 1}.{part}"
    return str((int(number) + 1) % 10 ** len(number)).zfill(len(number))


def with_wrong_value(arguments: Mapping[str, JSON], *words: str | int) -> dict[str, JSON]:
    """Return arguments of which one has another value."""
    key = picked(sorted(arguments), *words)
    return {**arguments, key: wrong_value(arguments[key])}


def without_argument(
    arguments: Mapping[str, JSON], required: Sequence[str], *words: str | int, renamed: bool
) -> dict[str, JSON]:
    """Return arguments of which one is left out, a required one where there is one, or goes by another name."""
    gone = picked([key for key in required if key in arguments] or sorted(arguments), *words)
    if renamed:
        return {(f"{key}_value" if key == gone else key): value for key, value in arguments.items()}
    return {key: value for key, value in arguments.items() if key != gone}


def other_tool(right: str, schemas: Schemas, *words: str | int, invented: bool) -> str:
    """Return the name of another tool: one that is offered, or where there is none or it is invented, of none."""
    others = sorted(name for name in schemas if name != right)
    return picked(_NAMES if invented or not others else others, *words)


def required_of(tool: str, schemas: Schemas) -> list[str]:
    """Return the names of the arguments that a tool cannot do without."""
    return list(schemas.get(tool, {}).get("required", ()))


def guessed(tool: str, known: Mapping[str, JSON], schemas: Schemas) -> dict[str, JSON]:
    """Return arguments for a tool by one who does not know them: what is known by the name, the rest made up."""
    schema = schemas.get(tool, {})
    properties = schema.get("properties", {})
    return {
        key: known[key] if key in known else _made_up(properties.get(key, {}))
        for key in schema.get("required", sorted(properties))
    }


def _made_up(schema: Mapping[str, Any]) -> JSON:
    if schema.get("enum"):
        return schema["enum"][0]  # type: ignore[no-any-return]  # a value of a JSON Schema
    kind = schema.get("type", "string")
    made: Mapping[str, JSON] = {
        "integer": 1,
        "number": 1.0,
        "boolean": True,
        "array": [],
        "object": {},
        "null": None,
    }
    return made.get(kind if isinstance(kind, str) else kind[0], "unknown")
