"""Parses calls written as JSON, which may also be data, or in Python notation: `f(a=1), g(b='x')`. Executes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from statek_sim.agent.rescue.formats import CLOSERS
from statek_sim.agent.rescue.json_reader import ARGUMENT_KEYS, JsonReader
from statek_sim.agent.rescue.offered_tools import NAME, Offered
from statek_sim.agent.rescue.work_budget import Broken
from statek_sim.values import JSON

Meant = tuple[str, dict[str, JSON], tuple[str, ...]]
"""A call's name, its arguments, and the stages that recognized it."""

_NAME_KEYS: Final = ("name", "tool_name", "function_name", "tool", "recipient_name", "action")
_HARMLESS: Final = frozenset(("id", "type", "tool_call_id", "call_id", "index", "call_type", "status"))
_SAID: Final = {
    "type": frozenset(("function", "function_call", "tool_call", "tool_use", "custom", "call")),
    "status": frozenset(("completed", "in_progress")),
}
"""Members that a call may have only with these values; any other value, such as `example`, marks the JSON as data."""
_OF_NO_CALL: Final = frozenset(("description", "result", "output", "error"))
"""Members found in tool descriptions and in reports about past calls, neither of which are calls."""
_AROUND: Final = ("function", "function_call", "functionCall", "tool_call", "tool_use")
_LISTS: Final = ("tool_calls", "tool_uses", "function_calls", "calls")
_SPACED: Final = re.compile(r"[^\W\d][\w.:/ -]{0,127}")
"""Matches a tool name that may contain spaces. Unwrapped JSON with such a name is data."""
_NO_TOOL: Final = frozenset(("directly-answer", "directly_answer"))
"""The names that Cohere's models use in place of a tool to answer without a call."""


@dataclass(frozen=True, slots=True)
class JsonCalls:
    """Decides which JSON values are calls to offered tools. `read` parses arguments given as JSON in a string."""

    offered: Offered
    read: Callable[[str], tuple[JSON, tuple[str, ...]]]

    def calls_in(self, value: JSON, *, wrapped: bool) -> list[Meant] | None:
        """Return the calls in a JSON value, or None if it is data. `wrapped`: a format marks the value as a call."""
        if isinstance(value, list):
            each = [self.calls_in(member, wrapped=wrapped) for member in value]
            if not each or any(calls is None for calls in each):
                return None
            return [call for calls in each if calls is not None for call in calls]
        if not isinstance(value, dict):
            return None
        for key in _LISTS:
            if isinstance(value.get(key), list) and not set(value) - {key, "content", "role", "refusal"}:
                # A message with text next to its calls, or a message from another speaker.
                said = [value[part] for part in ("content", "refusal") if value.get(part) is not None]
                alone = not any(not isinstance(part, str) or part.strip() for part in said)
                alone = alone and value.get("role", "assistant") == "assistant"
                return self.calls_in(value[key], wrapped=True) if alone else None
        for key in _AROUND:
            inner = value.get(key)
            if isinstance(inner, dict) and not set(value) - {key, *_HARMLESS} and _says_a_call(value):
                return self.calls_in(inner, wrapped=True)
        return self._one_call(value, wrapped=wrapped)

    def _one_call(self, value: dict[str, JSON], *, wrapped: bool) -> list[Meant] | None:
        name_keys = [key for key in (*_NAME_KEYS, "function") if isinstance(value.get(key), str)]
        argument_keys = [key for key in ARGUMENT_KEYS if key in value]
        if not name_keys or not _says_a_call(value):
            return None
        name, key = value[name_keys[0]], argument_keys[0] if argument_keys else None
        extra = set(value) - {name_keys[0], *argument_keys[:1], *_HARMLESS}
        pattern = _SPACED if wrapped else NAME
        if not isinstance(name, str) or pattern.fullmatch(name) is None or len(argument_keys) > 1:
            return None
        if name_keys[0] == "tool_name" and name in _NO_TOOL and name not in self.offered.schemas:
            return []
        if name_keys[0] == "tool_name" and key not in (None, "parameters"):
            return None  # a name in Cohere's format with arguments in another one is ambiguous
        if extra and (
            not wrapped or name not in self.offered.schemas or extra & self.offered.properties(name)
        ):
            # A member with the name of an argument: the closing bracket of the arguments came too early.
            return None
        if extra & _OF_NO_CALL or self._defines(name, None if key is None else value[key]):
            return None
        if key is None:
            if extra:
                # A key like " arguments" may have been meant.
                return None
            return [(name, {}, ("no_arguments",))] if wrapped and self._takes_nothing(name) else None
        return self._with_arguments(name, value[key], wrapped=wrapped)

    def _with_arguments(self, name: str, arguments: JSON, *, wrapped: bool) -> list[Meant] | None:
        stages: tuple[str, ...] = ()
        if isinstance(arguments, str):
            if not wrapped and self.offered.anything and not arguments.lstrip().startswith("{"):
                # {"name": "Alice", "input": "text"}: if any name is accepted, nothing marks this as a call.
                return None
            arguments, stages = self._unquoted(arguments)
        if arguments is None and wrapped:
            arguments, stages = {}, ("no_arguments",)
        return [(name, arguments, stages)] if isinstance(arguments, dict) else None

    def _unquoted(self, arguments: str) -> tuple[JSON, tuple[str, ...]]:
        """Parse arguments given as JSON in a string, as in the OpenAI format."""
        if not arguments.strip():
            return {}, ("no_arguments",)
        value, repairs = self.read(arguments)
        return (arguments, ()) if isinstance(value, str) else (value, ("arguments_in_a_string", *repairs))

    def _defines(self, name: str, arguments: JSON) -> bool:
        """Return whether the arguments are a schema, so that the tool is described rather than called."""
        if not isinstance(arguments, dict) or arguments.get("type") != "object":
            return False
        schema = self.offered.schemas.get(name, {})
        required = schema.get("required")
        if isinstance(required, list) and not set(map(str, required)) <= set(arguments):
            return False  # the check of the arguments reports missing ones
        takes = self.offered.properties(name)
        return isinstance(arguments.get("properties"), dict) and not {"type", "properties"} <= takes

    def _takes_nothing(self, name: str) -> bool:
        schema = self.offered.schemas.get(name)
        return schema is not None and not schema.get("required") and not schema.get("properties")


def _says_a_call(value: dict[str, JSON]) -> bool:
    """Return whether nothing in a value marks it as something other than a call."""
    return all(value.get(key) is None or str(value[key]) in said for key, said in _SAID.items())


PYTHON_CALL: Final = re.compile(r"\s*(?P<name>[^\W\d][\w.-]{0,127})\s*\(")
_PRINT: Final = "print"
"""The function that Gemini wraps around a call in a code block; it is not executed."""
_KEYWORD: Final = re.compile(r"\s*(?P<key>[^\W\d]\w{0,127})\s*=(?!=)\s*")

Measure = Callable[[JSON, int], None]
"""Takes a value and its position; raises `Broken` if the value is too deep or too large."""


@dataclass(frozen=True, slots=True)
class PythonCall:
    """A call in Python notation, and its end position."""

    name: str
    arguments: dict[str, JSON]
    end: int


def read_python(
    reader: JsonReader, at: int, measure: Measure, *, bracket: bool, printed: bool = False
) -> tuple[list[PythonCall], int]:
    """Return the calls at `at` and their end position, after the closing `]` if a `bracket` was opened.

    `printed`: a call may be inside `print(...)`.
    """
    text, taken = reader.text, list[PythonCall]()
    while (call := PYTHON_CALL.match(text, at)) is not None:
        reader.budget.token(at)
        inner = PYTHON_CALL.match(text, call.end()) if printed and call["name"] == _PRINT else None
        call = inner or call
        whole = bracket and text.startswith("{", reader.space(call.end()))
        arguments, end = (_object if whole else _keywords)(reader, call.end(), measure)
        end = end if inner is None else _closed(reader, end)
        taken.append(PythonCall(call["name"], arguments, end))
        at = reader.space(end)
        if text.startswith(",", at):
            at += 1
            end = reader.space(at)
            if bracket and text.startswith("]", end):
                reader.repaired("trailing_commas")
                return taken, end + 1
        elif bracket:
            break
    if not taken:
        raise Broken(at, f"{text[at : at + 12]!r} is not a call")
    end = taken[-1].end
    if bracket:
        end = reader.space(end)
        if text.startswith("]", end):
            end += 1
        elif end >= len(text):
            raise Broken(end, "the reply ends inside a list of calls", cut=True)
        elif CLOSERS.match(text, end) is None:
            raise Broken(end, f"{text[end : end + 12]!r} after a call")
    return taken, end


def _closed(reader: JsonReader, at: int) -> int:
    """Return the end of a `print(...)` call whose only argument ends at `at`."""
    end = reader.space(at)
    if end >= len(reader.text):
        raise Broken(end, "the reply ends inside a print", cut=True)
    if not reader.text.startswith(")", end):
        raise Broken(end, f"{reader.text[end : end + 12]!r} after the printed call")
    reader.repaired("print")
    return end + 1


def _object(reader: JsonReader, at: int, measure: Measure) -> tuple[dict[str, JSON], int]:
    """Return the arguments in `f({"a": 1})`, where a single unnamed argument has named members."""
    value, end = reader.value(at)
    measure(value, at)
    behind = reader.space(end)
    if not isinstance(value, dict) or not reader.text.startswith(")", behind):
        raise Broken(behind, "an argument has no name", cut=behind >= len(reader.text))
    reader.repaired("positional_object")
    return value, behind + 1


def _keywords(reader: JsonReader, at: int, measure: Measure) -> tuple[dict[str, JSON], int]:
    text, made = reader.text, dict[str, JSON]()
    while True:
        at = reader.space(at)
        if text.startswith(")", at):
            return made, at + 1
        if at >= len(text):
            raise Broken(at, "the reply ends inside the call", cut=True)
        word = _KEYWORD.match(text, at)
        unpacked = text.startswith("**", at)
        if word is None and not unpacked:
            raise Broken(at, "an argument has no name")
        value, at = reader.value(reader.space(at + 2 if word is None else word.end()))
        measure(value, at - 1)
        members = {word["key"]: value} if word is not None else value
        if not isinstance(members, dict) or any(key in made for key in members):
            raise Broken(at, "an argument appears twice, or has no name")
        made.update(members)
        at = reader.space(at)
        if text.startswith(",", at):
            at += 1
        elif at >= len(text):
            raise Broken(at, "the reply ends inside the call", cut=True)
        elif not text.startswith(")", at):
            raise Broken(at, f"{text[at : at + 12]!r} after an argument")
