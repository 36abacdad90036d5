"""Request body checks shared by all formats: lists of objects, and objects with a `type`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from statek_sim.providers.wire.parameters import Refusal
from statek_sim.values import JSON

Refusals = Iterator[Refusal]
Body = Mapping[str, Any]


def typed(parts: JSON, where: str, parameter: str) -> Refusals:
    """Yield the errors in a list of objects that must have a `type`: message parts, blocks, tools.

    `where` is the path to the list, and `parameter` is the rejected parameter.
    """
    for number, part in numbered_objects(parts):
        place = f"{where}[{number}]"
        if not isinstance(part.get("type"), str):
            yield Refusal(parameter, no_string(f"{place}.type", part, "type"))
        elif part["type"] == "text" and parameter != "tools" and not isinstance(part.get("text"), str):
            yield Refusal(parameter, no_string(f"{place}.text", part, "text"))


def typed_contents(body: Body, parameter: str) -> Refusals:
    """Yield the errors in `body[parameter]`, a list of messages or items."""
    for number, message in numbered_objects(body.get(parameter)):
        yield from typed(message.get("content"), f"{parameter}[{number}].content", parameter)


def no_string(where: str, given: Body, member: str) -> str:
    """Return the error message for a value that is missing or not a string; `where` is its path."""
    found = f"{str(given[member])[:80]!r}" if member in given else "nothing"
    return f"{where}: expected a string, got {found}"


def numbered_objects(values: JSON) -> list[tuple[int, dict[str, Any]]]:
    """Return the objects in a list with their numbers; empty if the value is not a list."""
    given = values if isinstance(values, list) else []
    return [(number, value) for number, value in enumerate(given) if isinstance(value, dict)]
