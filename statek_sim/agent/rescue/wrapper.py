"""Calls inside a wrapper: `<tool_call>`, `[TOOL_CALLS]`, `functools` and their like.

A wrapper holds JSON, a list of it, Python, or names with keys.
"""

from __future__ import annotations

import re
from typing import Final

from statek_sim.agent.rescue import elements
from statek_sim.agent.rescue.call_parser import CallParser, Found
from statek_sim.agent.rescue.json_reader import Style
from statek_sim.agent.rescue.offered import NAME
from statek_sim.agent.rescue.python_calls import PYTHON_CALL
from statek_sim.agent.rescue.work_budget import Broken

_SEPARATOR: Final = re.compile(r"[\s,;]*+")
_NAMED: Final = re.compile(rf"\s*(?P<name>{NAME.pattern})(?:\s|\\n)*+(?P<behind>\{{|<arg_key>|</tool_call>)")
_OUTER: Final = re.compile(r"<tool_calls>\s{0,40}\Z")
_NEAR: Final = 100
_TOKENS: Final = ("[TOOL_", "[/")
"""How tokens in square brackets begin that are no list."""


class Wrapper:
    """The wrapper whose token `opening` is."""

    def __init__(self, parser: CallParser, opening: re.Match[str]) -> None:
        self.parser = parser
        self.text = parser.text
        self.opening = opening
        self.dialect = _label(opening.group())

    def read(self) -> int:
        """Parse the calls in the wrapper, and return where the last one ends, the token's end where there is none."""
        at, parser, start = self.opening.end(), self.parser, self.opening.start()
        while len(parser.found) <= parser.limits.max_calls:
            parser.budget.token(at)
            here = _SEPARATOR.match(self.text, at).end()  # type: ignore[union-attr]  # it matches nothing, too
            parser.budget.steps += here - at
            end = self._one(here, start)
            if end is None:
                break
            at = start = end
        return at

    def _one(self, at: int, start: int) -> int | None:
        """Parse one item of the wrapper, and return where it ends; None: what stands there is none."""
        text, parser = self.text, self.parser
        if text.startswith(_TOKENS, at):
            return None  # another call begins, or thinking ends
        if text.startswith("[", at) and PYTHON_CALL.match(text, at + 1):
            return parser.python(at + 1, self.dialect, start, bracket=True)
        if text.startswith(("{", "["), at):
            return self._json(at, start)
        if PYTHON_CALL.match(text, at):
            return parser.python(at, self.dialect, start, bracket=False)
        return self._named(at, start)

    def _json(self, at: int, start: int) -> int:
        """Parse the calls of a JSON value."""
        value, end, repairs = self.parser.json(at, Style())
        if "closed_brackets" in repairs and end >= len(self.text):
            raise Broken(end, "the reply ends inside the call", cut=True)
        calls = self.parser.calls_in(value, wrapped=True)
        if calls is None:
            raise Broken(at, "what stands in the wrapper is JSON, but no call with a name and arguments")
        return self.parser.take(calls, (self.dialect, *repairs), start, end)

    def _named(self, at: int, start: int) -> int | None:
        """Parse a call that is a name with JSON or with keys behind it."""
        named = _NAMED.match(self.text, at)
        if named is None:
            return None
        name, behind = named["name"], named["behind"]
        if name.startswith("call:"):
            raise Broken(at, "a call in Gemma's format, whose token is damaged")
        if behind.startswith("</") and not (self.dialect.endswith("tool_call") and self._is_name(name)):
            return None
        if behind.endswith("{"):
            one = self.parser.arguments(named.end() - 1, name, self.dialect, start)
        else:
            arguments, end = elements.read_elements(
                self.text, named.end("name"), elements.KEYS, self.parser.budget
            )
            one = Found(name, arguments, (self.dialect, "keys"), start, end)
        self.parser.found.append(one)
        return one.end

    def _is_name(self, word: str) -> bool:
        """Whether a word and nothing else is a call without arguments.

        It is where such a tool was offered. Where any name is accepted, one that only programs have is, outside of two
        wrappers, about which parsers of others are divided.
        """
        offered = self.parser.offered
        if word in offered.schemas:
            return True
        start = self.opening.start()
        twice = _OUTER.search(self.text, max(0, start - _NEAR), start) is not None
        return offered.anything and "_" in word.strip("_") and not twice


def _label(token: str) -> str:
    word = re.sub(r"\W+", "_", token).strip("_").lower()
    return "functools" if word.startswith("functools") else word
