"""Calls that are written as Python: `f(a=1), g(b='x')`. Nothing is evaluated."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from statek_sim.agent.rescue.formats import CLOSERS
from statek_sim.agent.rescue.json_reader import JsonReader
from statek_sim.agent.rescue.work_budget import Broken
from statek_sim.values import JSON

PYTHON_CALL: Final = re.compile(r"\s*(?P<name>[^\W\d][\w.-]{0,127})\s*\(")
_PRINT: Final = "print"
"""What Gemini writes around a call in a block of code: nobody runs that code, so nothing is printed."""
_KEYWORD: Final = re.compile(r"\s*(?P<key>[^\W\d]\w{0,127})\s*=(?!=)\s*")

Measure = Callable[[JSON, int], None]
"""Refuses a value that is too deep or too much; it is told where the value stands."""


@dataclass(frozen=True, slots=True)
class PythonCall:
    """One call, and where it ends."""

    name: str
    arguments: dict[str, JSON]
    end: int


def read_python(
    reader: JsonReader, at: int, measure: Measure, *, bracket: bool, printed: bool = False
) -> tuple[list[PythonCall], int]:
    """Return the calls at `at` and where they end, behind the closing `]` when a `bracket` was opened.

    `printed`: a call may stand in a `print(...)`.
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
        raise Broken(at, f"{text[at : at + 12]!r} is no call")
    end = taken[-1].end
    if bracket:
        end = reader.space(end)
        if text.startswith("]", end):
            end += 1
        elif end >= len(text):
            raise Broken(end, "the reply ends inside a list of calls", cut=True)
        elif CLOSERS.match(text, end) is None:
            raise Broken(end, f"{text[end : end + 12]!r} behind a call")
    return taken, end


def _closed(reader: JsonReader, at: int) -> int:
    """Return where the print ends whose only argument ended at `at`."""
    end = reader.space(at)
    if end >= len(reader.text):
        raise Broken(end, "the reply ends inside a print", cut=True)
    if not reader.text.startswith(")", end):
        raise Broken(end, f"{reader.text[end : end + 12]!r} behind the call that is printed")
    reader.repaired("print")
    return end + 1


def _object(reader: JsonReader, at: int, measure: Measure) -> tuple[dict[str, JSON], int]:
    """Return the arguments of `f({"a": 1})`: an only argument without a name, whose members have one each."""
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
            raise Broken(at, "an argument is there twice, or has no name")
        made.update(members)
        at = reader.space(at)
        if text.startswith(",", at):
            at += 1
        elif at >= len(text):
            raise Broken(at, "the reply ends inside the call", cut=True)
        elif not text.startswith(")", at):
            raise Broken(at, f"{text[at : at + 12]!r} behind an argument")
