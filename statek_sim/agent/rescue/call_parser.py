"""Parses calls with one method per family of formats, starting where a call in that format begins.

A method adds one or more calls to `found` and returns the position where they end, or raises `Broken`. Truncated
arguments are never completed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from statek_sim.agent.rescue import elements
from statek_sim.agent.rescue.calls import PYTHON_CALL, JsonCalls, Meant, read_python
from statek_sim.agent.rescue.elements import read_tags
from statek_sim.agent.rescue.formats import REACT_BEHIND, closed
from statek_sim.agent.rescue.json_reader import JSON_STYLE, JsonReader, Style
from statek_sim.agent.rescue.offered_tools import NAME, Argument, Offered
from statek_sim.agent.rescue.values import Limits
from statek_sim.agent.rescue.work_budget import Broken, WorkBudget, measure, strict
from statek_sim.values import JSON

_ID: Final = re.compile(r"\s*(?:\[CALL_ID\]\s*[\w-]*\s*)?(?:\[ARGS\])?\s*")
_MISTRAL_NEXT: Final = re.compile(
    rf"\s{{0,40}}(?P<name>{NAME.pattern})\s{{0,8}}(?:\[CALL_ID\]\s{{0,8}}[\w-]{{0,128}}\s{{0,8}})?\[ARGS\]\s{{0,40}}(?=\{{)"
)
_REACT_NEXT: Final = re.compile(rf"\s{{0,40}}Action:\s{{0,40}}(?P<name>{NAME.pattern}){REACT_BEHIND}(?=\{{)")
_GEMMA_NEXT: Final = re.compile(rf"\s{{0,40}}call:(?P<name>{NAME.pattern})\s{{0,40}}(?=\{{)")
"""The start of another call after the first one, in three formats."""
_JSON: Final = re.compile(r"\s{0,40}(?=\{)")
_DEEPSEEK_SEP: Final = re.compile(r"tool[▁_ ]sep[|｜]>|>function=")
_KIMI_NUMBER: Final = re.compile(r":\d{1,18}\Z|\Afunctions_[\w.-]+_\d{1,18}\Z")
_KIMI_SECTION: Final = "<|tool_calls_section_begin|>"
_GEMINI_MODULE: Final = "default_api."
"""The module name that Gemini puts in front of its tools."""
_MADE_PLAIN: Final = re.compile(r"functions_(?P<name>[\w.-]+)_\d+")
"""Matches a name with Kimi's call number in which a client replaced everything but letters and digits with `_`."""
_ELEMENTS: Final = {"function": elements.FUNCTION, "invoke": elements.INVOKE, "param": elements.PARAM}


@dataclass(slots=True)
class Found:
    """A parsed call; `stages` lists the parsing steps."""

    name: str
    arguments: Mapping[str, Argument]
    stages: tuple[str, ...]
    start: int
    end: int


@dataclass(slots=True)
class CallParser:
    """Parses a reply's calls into `found`."""

    text: str
    offered: Offered
    limits: Limits
    budget: WorkBudget
    found: list[Found] = field(default_factory=list)
    _first: dict[str, int] = field(default_factory=dict)
    """Each token's first position in the reply, or a negative number if the token is absent."""

    # Values

    def reader(self, style: Style) -> JsonReader:
        """Return a tolerant reader for the reply."""
        return JsonReader(self.text, self.budget, self.limits.max_depth, style)

    def json(self, at: int, style: Style) -> tuple[JSON, int, tuple[str, ...]]:
        """Return the value at `at`, its end position, and the repairs made."""
        if not (style.bare or style.python):
            clean = strict(self.text, at, self.budget)
            if clean is not None:
                self._measured(clean[0], at)
                return *clean, ()
        reader = self.reader(style)
        value, end = reader.value(at)
        self._measured(value, at)
        return value, end, tuple(reader.repairs)

    def _measured(self, value: JSON, at: int) -> None:
        """Reject values that are too deep or too large, and invalid Unicode."""
        measure(value, at, depth=self.limits.max_depth, values=self.limits.max_values)

    def arguments(self, at: int, name: str, dialect: str, start: int, style: Style = JSON_STYLE) -> Found:
        """Parse `{...}` at `at` as arguments for `name`."""
        value, end, repairs = self._whole_json(at, style)
        if not isinstance(value, dict):
            raise Broken(at, f"the arguments of {name!r} are not an object")
        return Found(name, value, (dialect, *repairs), start, closed(self.text, end))

    def _whole_json(self, at: int, style: Style) -> tuple[JSON, int, tuple[str, ...]]:
        """Parse arguments as JSON; raise `Broken` if a closing bracket is missing."""
        shorthand = Style(python=style.python, bare=style.bare, shorthand=True)
        value, end, repairs = self.json(at, shorthand)
        if "closed_brackets" in repairs:
            raise Broken(end, "the arguments are unterminated", cut=end >= len(self.text))
        return value, end, repairs

    def calls_in(self, value: JSON, *, wrapped: bool) -> list[Meant] | None:
        """Return the calls in a JSON value, or None if it is data. `wrapped`: a format marks the value as a call."""
        return JsonCalls(self.offered, self._unquoted).calls_in(value, wrapped=wrapped)

    def _unquoted(self, arguments: str) -> tuple[JSON, tuple[str, ...]]:
        """Parse JSON inside a string, or return the string itself if it contains anything besides JSON."""
        inner = CallParser(arguments, self.offered, self.limits, self.budget)
        start = len(arguments) - len(arguments.lstrip())
        try:
            value, end, repairs = inner._whole_json(start, Style())
        except Broken as error:
            why = f"the arguments are a string that is not JSON: {error.why}"
            raise Broken(-1, why, limit=error.limit) from None
        return (arguments, ()) if arguments[end:].strip() else (value, repairs)

    # One method per format. `opening` is the match in `formats.OPENINGS`

    def take(self, calls: list[Meant], stages: tuple[str, ...], start: int, end: int) -> int:
        """Add the calls in one JSON value; return the position after its closing token.

        Raises `Broken` if a bracket may be missing in them.
        """
        behind = closed(self.text, end)
        for name, arguments, more in calls:
            if "closed_brackets" in stages and "no_arguments" in more:
                raise Broken(end, "the reply ends where arguments were expected", cut=True)
            if "closed_brackets" in stages and not _one_place(arguments):
                why = "a bracket is missing, but it is unclear where"
                raise Broken(end, why, cut=end >= len(self.text))
            self.found.append(Found(name, arguments, (*stages, *more), start, behind))
        return behind

    def bare(self, opening: re.Match[str]) -> int | None:
        """Parse JSON without a wrapper, which may be data rather than a call."""
        at = opening.start()
        value, end, repairs = self.json(at, Style())
        calls = self.calls_in(value, wrapped=False)
        return self.take(calls, ("json", *repairs), at, end) if calls else None

    def python(self, at: int, dialect: str, start: int, *, bracket: bool) -> int:
        """Parse calls in Python notation at `at`: `f(a=1), g(b='x')`."""
        reader = self.reader(Style(python=True))
        printed = dialect == "tool_code" and "print" not in self.offered.schemas
        calls, end = read_python(reader, at, self._measured, bracket=bracket, printed=printed)
        end = closed(self.text, end)
        for call in calls:
            name = call.name.removesuffix(".call") if dialect == "python_tag" else call.name
            if dialect == "tool_code" and name not in self.offered.schemas:
                name = name.removeprefix(_GEMINI_MODULE)
            stages = (dialect, "python", *reader.repairs)
            self.found.append(Found(name, dict(call.arguments), stages, start, end))
        return end

    def bracket(self, opening: re.Match[str]) -> int | None:
        """Parse an unwrapped list of calls in JSON or Python notation; return None if it is only text."""
        at = opening.start()
        call = PYTHON_CALL.match(self.text, at + 1)
        if call is None:
            return self.bare(opening)
        try:
            return self.python(at + 1, "python", at, bracket=True)
        except Broken as error:
            if error.limit or call["name"] in self.offered.schemas or (self.offered.anything and error.cut):
                raise
            return None

    def unwrapped_python(self, opening: re.Match[str]) -> int | None:
        """Parse unbracketed calls to offered tools in Python notation; None for other words before parentheses."""
        if opening["python_name"] not in self.offered.schemas:
            return None
        try:
            return self.python(opening.start(), "python", opening.start(), bracket=False)
        except Broken as error:
            if error.cut or error.limit:
                raise
            return None

    def tool_code(self, opening: re.Match[str]) -> int:
        """Parse a code block of Python calls."""
        bracket = self.text.startswith("[", opening.end())
        return self.python(opening.end() + bracket, "tool_code", opening.start(), bracket=bracket)

    def mistral(self, opening: re.Match[str]) -> int:
        """Parse `[TOOL_CALLS]name[ARGS]{...}`."""
        behind = _ID.match(self.text, opening.end())
        at = behind.end() if behind else opening.end()
        return self._each(at, opening["mistral_name"], "mistral", opening.start(), JSON_STYLE, _MISTRAL_NEXT)

    def react(self, opening: re.Match[str]) -> int:
        """Parse `Action: name` and `Action Input: {...}`, and any calls that follow."""
        return self._each(
            opening.end(), opening["react_name"], "react", opening.start(), JSON_STYLE, _REACT_NEXT
        )

    def _each(
        self, at: int, name: str, dialect: str, start: int, style: Style, next_one: re.Pattern[str]
    ) -> int:
        """Parse the arguments for `name` at `at`, and the arguments for any further calls in the same wrapper."""
        while True:
            one = self.arguments(at, name, dialect, start, style)
            self.found.append(one)
            more = next_one.match(self.text, one.end)
            if more is None or len(self.found) > self.limits.max_calls:
                return one.end
            self.budget.steps += more.end() - one.end + 1
            at, name, start = more.end(), more["name"], one.end

    def named(self, opening: re.Match[str], at: int | None = None) -> int:
        """Parse the arguments after the opening, or at `at`; the opening contains the name."""
        dialect = opening.lastgroup or ""
        at = opening.end() if at is None else at
        one = self.arguments(at, opening[f"{dialect}_name"], dialect, opening.start())
        self.found.append(one)
        return one.end

    def recipient_only(self, opening: re.Match[str]) -> int | None:
        """Parse a Harmony call without its namespace."""
        known = opening["recipient_only_name"] in self.offered.schemas
        return self.named(opening) if known else None

    def deepseek(self, opening: re.Match[str]) -> int:
        """Parse a DeepSeek call: a name, or a type, a token and a name; then arguments."""
        if _DEEPSEEK_SEP.search(opening.group()) is None:
            raise Broken(opening.end(), "the token between a name and its arguments is missing")
        return self.named(opening)

    def kimi(self, opening: re.Match[str]) -> int:
        """Parse `functions.N:0<|tool_call_argument_begin|>{...}`, even if the name became `functions_N_0`."""
        name = opening["kimi_name"]
        numbered = name.startswith("functions.") or self._stands_before(_KIMI_SECTION, opening.start())
        if numbered and not _KIMI_NUMBER.search(name):
            raise Broken(opening.end(), f"{name[:40]!r} has no number, but this format numbers its calls")
        written = _MADE_PLAIN.fullmatch(name)
        if written is not None and name not in self.offered.schemas:
            name = written["name"]
        one = self.arguments(opening.end(), name, "kimi", opening.start())
        self.found.append(one)
        return one.end

    def _stands_before(self, token: str, at: int) -> bool:
        """Return whether a token occurs anywhere in the reply before `at`."""
        if token not in self._first:
            self._first[token] = self.text.find(token)
            self.budget.steps += len(self.text) if self._first[token] < 0 else self._first[token]
        return 0 <= self._first[token] < at

    def gemma(self, opening: re.Match[str]) -> int:
        """Parse `call:name{key:<|"|>value<|"|>}` and any calls that follow, or `call:name(key="value")`."""
        at, name = opening.end(), opening["gemma_name"]
        if self.text.startswith("(", at):
            return self.python(opening.start("gemma_name"), "gemma", opening.start(), bracket=False)
        return self._each(at, name, "gemma", opening.start(), Style(bare=True), _GEMMA_NEXT)

    def _ended(self, one: Found, ends: re.Pattern[str]) -> int:
        """Add a call; raise `Broken` if it is not followed by its closing tag."""
        behind = ends.match(self.text, one.end)
        if behind is None:
            rest = self.text[one.end : one.end + 40].strip()
            raise Broken(one.end, f"{rest[:24]!r} after the arguments of a call", cut=rest in ("", ")"))
        one.end = behind.end()
        self.found.append(one)
        return one.end

    def elements(self, opening: re.Match[str]) -> int:
        """Parse a call with one element per argument, or with JSON between its tags."""
        dialect = opening.lastgroup or ""
        at, name, start = opening.end(), opening[f"{dialect}_name"], opening.start()
        element = _ELEMENTS[dialect]
        if opening.group().startswith("<|DSML"):
            raise Broken(at, "DeepSeek's tags have full-width bars, but these have ASCII ones")
        json = _JSON.match(self.text, at)
        if json is not None and dialect != "invoke":
            return self.named(opening, json.end())
        if json is not None:
            return self._ended(self.arguments(json.end(), name, dialect, start), element.ends)
        if opening.group().endswith("/>"):
            self.found.append(Found(name, {}, (dialect,), start, closed(self.text, at)))
            return closed(self.text, at)
        arguments, end = elements.read_elements(self.text, at, element, self.budget)
        end = closed(self.text, end)
        self.found.append(Found(name, arguments, (dialect,), start, end))
        return end

    def tags(self, opening: re.Match[str]) -> int | None:
        """Parse a call whose tag is an offered tool's name and whose inner tags are arguments, or return None."""
        name = opening["tag_name"]
        if name not in self.offered.schemas:
            return None
        arguments, end = read_tags(self.text, opening.end(), name, self.offered.properties(name), self.budget)
        self.found.append(Found(name, arguments, ("tags",), opening.start(), end))
        return end


def _one_place(arguments: Mapping[str, JSON]) -> bool:
    """Return whether a call's missing bracket can only belong after its arguments.

    In `{"a": {"b": 1, "c": 2}` a bracket is missing, and `c` may be inside `a` or next to it.
    """
    last: JSON = dict(arguments)
    while isinstance(last, dict | list) and last:
        last = last[-1] if isinstance(last, list) else list(last.values())[-1]
        if isinstance(last, dict) and len(last) > 1:
            return False
    return True
