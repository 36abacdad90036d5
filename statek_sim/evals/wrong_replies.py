"""Builds a simulated model's replies: the correct calls, and various kinds of incorrect and damaged replies.

All functions are pure functions of the correct reply. A function in `DAMAGES` takes a call as text, and the call
itself, and returns the damaged text. Rescue parsing can read some of the results, but not a value that is cut off
inside a string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from statek_sim.agent.rescue.rendering import RENDERINGS
from statek_sim.evals.ideal_plan import PlannedCall
from statek_sim.evals.random_draws import picked, uniform
from statek_sim.providers.script import Reply, ScriptedCall, tool_calls
from statek_sim.values import JSON

_LAST_VALUE: Final = re.compile(r'(["\w\]}])(\s*[}\]])')
_KEYS: Final = re.compile(r'"(\w+)"(\s*:)')
_QUOTE: Final = 0.6
"""The fraction of a call's text that the damage `cut` leaves."""


def _json(call: PlannedCall) -> str:
    return json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False)


def _keywords(call: PlannedCall) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in call.arguments.items())


DAMAGES: Final[Mapping[str, Callable[[str, PlannedCall], str]]] = {
    "cut": lambda text, _: text[: max(1, int(len(text) * _QUOTE))],
    "unclosed": lambda _, call: _json(call).rstrip("}"),
    "trailing_comma": lambda _, call: _LAST_VALUE.sub(r"\1,\2", _json(call), count=1),
    "single_quotes": lambda _, call: repr({"name": call.name, "arguments": dict(call.arguments)}),
    "bare_keys": lambda _, call: _KEYS.sub(r"\1\2", _json(call)),
    "prose": lambda _, call: f"Let me do that.\n{_json(call)}\nI will continue when I have the result.",
    "fence": lambda _, call: f"```json\n{_json(call)}\n```",
    "function": lambda _, call: f"[{call.name}({_keywords(call)})]",
    # A server does not recognize its own dialect without the opening mark.
    "lost_opening": lambda text, _: text[min((at for at in map(text.find, "{[<") if at > 0), default=1) :],
}
"""The ways to damage a call, keyed by name."""


Schemas = Mapping[str, Mapping[str, Any]]
"""Each offered tool's parameters, as JSON Schema."""

_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
_NAMES: Final = ("search", "lookup_data", "run_query", "get_result")
"""Names of non-existent tools that models call."""

EARLY: Final = (
    "I will now call {tool} to get what I need.",
    "First I am going to use {tool}, and then I will answer.",
    "Everything was checked. The task is done.",
    "Here is the answer: it has been taken care of, nothing else is needed.",
)
"""What models write instead of a call: plans and made-up answers."""


def early_answer(tool: str, *words: str | int) -> str:
    """Return prose that a model writes instead of calling a tool; `words` determine the choice."""
    return picked(EARLY, *words).format(tool=tool)


def wrong_value(value: JSON) -> JSON:
    """Return a value of the same type that differs from `value`."""
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
    """Return text with its last number increased by one or, if there is no number, its longest word misspelt."""
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
    """Return arguments with one value changed."""
    key = picked(sorted(arguments), *words)
    return {**arguments, key: wrong_value(arguments[key])}


def without_argument(
    arguments: Mapping[str, JSON], required: Sequence[str], *words: str | int, renamed: bool
) -> dict[str, JSON]:
    """Return arguments with one of them (a required one if possible) omitted or renamed."""
    gone = picked([key for key in required if key in arguments] or sorted(arguments), *words)
    if renamed:
        return {(f"{key}_value" if key == gone else key): value for key, value in arguments.items()}
    return {key: value for key, value in arguments.items() if key != gone}


def other_tool(right: str, schemas: Schemas, *words: str | int, invented: bool) -> str:
    """Return the name of another offered tool, or an invented one if `invented` is set or no other is offered."""
    others = sorted(name for name in schemas if name != right)
    return picked(_NAMES if invented or not others else others, *words)


def required_of(tool: str, schemas: Schemas) -> list[str]:
    """Return the names of a tool's required arguments."""
    return list(schemas.get(tool, {}).get("required", ()))


def guessed(tool: str, known: Mapping[str, JSON], schemas: Schemas) -> dict[str, JSON]:
    """Return arguments for a tool: `known` values for arguments with the same name, made-up values for others."""
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


CUT: Final = 0.5
"""The fraction of the arguments' JSON that is left in a damaged native call."""


def called(calls: Sequence[PlannedCall], *, arguments: str | None = None) -> Reply:
    """Return a reply with native calls; `arguments` replaces the JSON of the last call's arguments."""
    reply = tool_calls(*[ScriptedCall(call.name, call.arguments) for call in calls])
    return reply if arguments is None else reply.with_arguments(arguments)


def cut_arguments(call: PlannedCall) -> str:
    """Return a call's JSON arguments, cut off in the middle."""
    text = json.dumps(dict(call.arguments), ensure_ascii=False)
    return text[: max(1, int(len(text) * CUT))]


def rendered(calls: Sequence[PlannedCall], dialect: str, kind: str) -> str:
    """Return calls as text in a dialect, or as JSON if the dialect cannot express them, with the last call damaged."""
    texts = [
        RENDERINGS[dialect](call.name, call.arguments) or RENDERINGS["json"](call.name, call.arguments) or ""
        for call in calls
    ]
    return "\n".join([*texts[:-1], DAMAGES[kind](texts[-1], calls[-1])])


def kind_of_damage(weights: Mapping[str, float], *words: str | int) -> str:
    """Return a kind of damage, drawn by weight; `words` determine the draw."""
    left = uniform(*words) * sum(weights.values())
    for kind in sorted(weights):
        left -= weights[kind]
        if left < 0:
            return kind
    return max(weights, key=lambda kind: (weights[kind], kind))
