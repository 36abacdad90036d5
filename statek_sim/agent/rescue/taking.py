"""Taking calls: one reader per family of formats, each called at an opening of its format.

A reader takes one or more calls and returns where it ended, or raises `Broken`. Nothing is completed: arguments that
are cut are no arguments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Final

from statek_sim.agent.rescue import markup, nested
from statek_sim.agent.rescue.brackets import closed, nothing_more, one_place
from statek_sim.agent.rescue.hints import Hint
from statek_sim.agent.rescue.meaning import Meaning, Meant
from statek_sim.agent.rescue.meter import Broken, Meter, measure, strict
from statek_sim.agent.rescue.offered import NAME, Argument, Offered, TypedText
from statek_sim.agent.rescue.openings import REACT_BEHIND
from statek_sim.agent.rescue.pythonic import PYTHON_CALL, After, PythonCall, read_python
from statek_sim.agent.rescue.reader import ARGUMENT_KEYS, CALL_STYLE, JSON_STYLE, Reader, Style
from statek_sim.agent.rescue.tags import read_tags
from statek_sim.agent.rescue.values import Limits, Reason
from statek_sim.agent.rescue.variants import RescueRules
from statek_sim.values import JSON

_ID: Final = re.compile(r"\s*(?:\[CALL_ID\]\s*[\w-]*\s*)?(?:\[ARGS\])?\s*")
_MISTRAL_NEXT: Final = re.compile(
    rf"\s{{0,40}}(?P<name>{NAME.pattern})\s{{0,8}}(?:\[CALL_ID\]\s{{0,8}}[\w-]{{0,128}}\s{{0,8}})?\[ARGS\]\s{{0,40}}(?=\{{)"
)
_REACT_NEXT: Final = re.compile(rf"\s{{0,40}}Action:\s{{0,40}}(?P<name>{NAME.pattern}){REACT_BEHIND}")
GEMMA_NEXT: Final = re.compile(rf"\s{{0,40}}call:(?P<name>{NAME.pattern})\s{{0,40}}(?=\{{)")
"""How a further call begins behind another."""
_KEYED: Final = re.compile(r"\(\s{0,40}\w{1,128}\s{0,8}:")
"""Gemma's arguments in round brackets."""
_CALLING_ENDS: Final = re.compile(r"\s{0,40}\)\s{0,40}\]")
_MEMBER: Final = re.compile(r"\s{1,40}(?P<key>[^\W\d]\w{0,127})=\"(?P<value>[^\"\\\n]*+)\"(?=[\s\]])")
_KEYED_ENDS: Final = re.compile(r"\s{0,40}\]")
_JSON: Final = re.compile(r"\s{0,40}(?=\{)")
_SAID: Final = re.compile(r"[.,;:!?)]{1,3}\s(?!\s{0,40}<(?:parameter|/function))")
_KIMI3_JSON: Final = re.compile(r"\s{0,40}<\|open\|>json\b[^<>\n]{0,80}<\|sep\|>\s{0,40}(?=\{)")
_KIMI3_ENDS: Final = re.compile(r"\s{0,40}<\|close\|>json<\|sep\|>\s{0,40}<\|close\|>call<\|sep\|>")
_DEEPSEEK_SEP: Final = re.compile(r"tool[▁_ ]sep[|｜]>|>function=")
_KIMI_NUMBER: Final = re.compile(r":\d{1,18}\Z|\Afunctions_[\w.-]+_\d{1,18}\Z")
_KIMI_SECTION: Final = "<|tool_calls_section_begin|>"
_GEMINI_MODULE: Final = "default_api."
"""The module in which Gemini is told that its tools are."""
_M3_SECTION: Final = "]<]minimax[>[<tool_call>"
_MADE_PLAIN: Final = re.compile(r"functions_(?P<name>[\w.-]+)_\d+")
"""Kimi's number of a call, where only letters, digits and `_` were allowed in one."""
_MARGIN: Final = 200
"""Characters of white space before a reply's first word, at most."""


@dataclass(slots=True)
class Found:
    """A call as it was read: `stages` say how."""

    name: str
    arguments: Mapping[str, Argument]
    stages: tuple[str, ...]
    start: int
    end: int


@dataclass(slots=True)
class Taker:
    """What is taken from one reply: calls, and refusals as (reason, sentence, start, end)."""

    text: str
    offered: Offered
    rules: RescueRules
    limits: Limits
    meter: Meter
    hint: Hint | None = None
    found: list[Found] = field(default_factory=list)
    refused: list[tuple[Reason, str, int, int]] = field(default_factory=list)
    thinking: list[tuple[int, int]] = field(default_factory=list)
    first: dict[str, int] = field(default_factory=dict)
    """Where the reply first has a token that was looked for, negative for nowhere."""
    sure: int = 0
    """How many of `found` stay, whatever becomes of the format that is being read."""

    def forget(self, since: int) -> None:
        """Take back the calls from number `since` on."""
        del self.found[since:]
        self.sure = min(self.sure, since)

    # What the readers are made of

    def reader(self, style: Style) -> Reader:
        """Return a tolerant reader of the reply."""
        return Reader(self.text, self.meter, self.rules.max_depth or 64, style)

    def json(self, at: int, style: Style) -> tuple[JSON, int, tuple[str, ...]]:
        """Return the value at `at`, where it ends, and what was repaired."""
        if not (style.bare or style.python):
            clean = strict(self.text, at, self.meter)
            if clean is not None:
                self._measured(clean[0], at)
                return *clean, ()
        reader = self.reader(style)
        value, end = reader.value(at)
        self._measured(value, at)
        return value, end, tuple(reader.repairs)

    def _measured(self, value: JSON, at: int) -> None:
        """Refuse what is too deep or too much, and text that is no Unicode."""
        measure(value, at, depth=self.rules.max_depth or 64, values=self.limits.max_values)

    def arguments(
        self,
        at: int,
        name: str,
        dialect: str,
        start: int,
        style: Style,
        next_one: re.Pattern[str] | None = None,
    ) -> Found:
        """Read `{...}` at `at` as the arguments of `name`; `next_one` opens a further call behind them."""
        value, end, repairs = self._whole_json(at, style)
        made = value if isinstance(value, dict) else None
        if made is None:
            raise Broken(at, f"the arguments of {name!r} are no object")
        if "bare_strings" in repairs and made.get("name") == name and set(made) & set(ARGUMENT_KEYS):
            # A call inside the call, whose own arguments are a word: they cannot be read.
            raise Broken(at, f"the arguments of {name!r} are a call whose arguments are no object")
        if next_one is None or next_one.match(self.text, end) is None:
            nothing_more(self.text, end, [made])
        return Found(name, made, (dialect, *repairs), start, closed(self.text, end))

    def _whole_json(self, at: int, style: Style) -> tuple[JSON, int, tuple[str, ...]]:
        """Read arguments: a bracket that is missing in them is missing for good."""
        shorthand = Style(python=style.python, bare=style.bare, shorthand=True, meant=style.meant)
        value, end, repairs = self.json(at, shorthand)
        if "closed_brackets" in repairs:
            raise Broken(end, "the arguments end before they are closed", cut=end >= len(self.text))
        return value, end, repairs

    # What a value says

    def calls_in(self, value: JSON, *, wrapped: bool, shorthand: bool = False) -> list[Meant] | None:
        """Return the calls that a JSON value is, or None when it is data. `wrapped`: a format says that it is one."""
        return Meaning(self.offered, self._unquoted, shorthand).calls_in(value, wrapped=wrapped)

    def _arguments_of(self, name: str) -> frozenset[str]:
        properties = self.offered.schemas.get(name, {}).get("properties")
        return frozenset(properties if isinstance(properties, dict) else ())

    def _unquoted(self, arguments: str) -> tuple[JSON, tuple[str, ...]]:
        """Read the JSON that a string holds; the string itself when it holds more than that."""
        inner = Taker(arguments, self.offered, self.rules, self.limits, self.meter)
        start = len(arguments) - len(arguments.lstrip())
        try:
            value, end, repairs = inner._whole_json(start, Style())
        except Broken as error:
            why = f"the arguments are a string that is no JSON: {error.why}"
            raise Broken(-1, why, limit=error.limit) from None
        return (arguments, ()) if arguments[end:].strip() else (value, repairs)

    # Readers of one opening each. They return where the pass goes on.

    def take(
        self,
        calls: list[Meant],
        stages: tuple[str, ...],
        start: int,
        end: int,
    ) -> None:
        """Take the calls that one JSON value says, unless a bracket of theirs may be missing elsewhere."""
        for name, arguments, more in calls:
            if "closed_brackets" in stages and "no_arguments" in more:
                raise Broken(end, "the reply ends before the arguments", cut=True)
            if "closed_brackets" in stages and not one_place(arguments):
                raise Broken(
                    end, "a bracket is missing, and it cannot be told where", cut=end >= len(self.text)
                )
            self.found.append(Found(name, arguments, (*stages, *more), start, end))

    def python(self, at: int, dialect: str, start: int, *, bracket: bool) -> int:
        """Read `f(a=1), g(b='x')` at `at`."""
        reader = self.reader(Style(python=True))
        try:
            printed = dialect == "tool_code" and "print" not in self.offered.schemas
            calls, end = read_python(reader, at, self._measured, bracket=bracket, printed=printed)
        except After as error:
            if error.cut and dialect == "python":
                raise
            self._take_python(error.taken, (dialect, "python", *reader.repairs), start, error.taken[-1].end)
            self.sure = len(self.found)
            raise
        end = closed(self.text, end)
        self._take_python(calls, (dialect, "python", *reader.repairs), start, end)
        return end

    def _take_python(self, calls: list[PythonCall], stages: tuple[str, ...], start: int, end: int) -> None:
        for call in calls:
            name = call.name.removesuffix(".call") if stages[0] == "python_tag" else call.name
            if stages[0] == "tool_code" and name not in self.offered.schemas:
                name = name.removeprefix(_GEMINI_MODULE)
            self.found.append(Found(name, dict(call.arguments), stages, start, end))

    def mistral(self, opening: re.Match[str]) -> int:
        """Read `[TOOL_CALLS]name[ARGS]{...}`."""
        name, at, start = opening["mistral_name"], opening.end(), opening.start()
        behind = _ID.match(self.text, at + len(name))
        at = behind.end() if behind else at
        return self._each(at, name, "mistral", start, CALL_STYLE, _MISTRAL_NEXT)

    def _each(
        self, at: int, name: str, dialect: str, start: int, style: Style, next_one: re.Pattern[str]
    ) -> int:
        """Read the arguments at `at` of `name`, and the calls that follow in the same wrapper."""
        while True:
            one = self.arguments(at, name, dialect, start, style, next_one)
            self.found.append(one)
            self.sure = len(self.found)
            more = next_one.match(self.text, one.end)
            if more is None or len(self.found) > self.limits.max_calls:
                return one.end
            self.meter.steps += more.end() - one.end + 1
            at, name, start = more.end(), more["name"], one.end

    def named(self, opening: re.Match[str], dialect: str, at: int, style: Style = CALL_STYLE) -> int:
        """Read the arguments at `at` of the call that the opening names."""
        one = self.arguments(at, opening[f"{dialect}_name"], dialect, opening.start(), style)
        self.found.append(one)
        return one.end

    def deepseek(self, opening: re.Match[str]) -> int:
        """Read a name with the token that separates it, from its type or from its arguments, and these."""
        if _DEEPSEEK_SEP.search(opening.group()) is None:
            raise Broken(opening.end(), "the token between a name and its arguments is missing")
        return self.named(opening, "deepseek", opening.end())

    def react(self, opening: re.Match[str]) -> int:
        """Read `Action: name` and `Action Input: {...}`, and the like behind it."""
        name, start = opening["react_name"], opening.start()
        return self._each(opening.end(), name, "react", start, CALL_STYLE, _REACT_NEXT)

    def kimi(self, opening: re.Match[str]) -> int:
        """Read `functions.N:0<|tool_call_argument_begin|>{...}`, also where a client made `functions_N_0` of that."""
        name = opening["kimi_name"]
        if not _KIMI_NUMBER.search(name) and self._in_a_section(opening, name):
            raise Broken(opening.end(), f"{name[:40]!r} has no number, and this format numbers its calls")
        written = _MADE_PLAIN.fullmatch(name)
        if written is not None and name not in self.offered.schemas:
            name = written["name"]
        one = self.arguments(opening.end(), name, "kimi", opening.start(), CALL_STYLE)
        self.found.append(one)
        return one.end

    def _in_a_section(self, opening: re.Match[str], name: str) -> bool:
        """Whether Kimi's format is written in full around a name: with its namespace, or with its section's token."""
        return name.startswith("functions.") or self._behind(_KIMI_SECTION, opening.start())

    def _behind(self, token: str, at: int) -> bool:
        """Whether a token stands before `at`, anywhere in the reply."""
        if token not in self.first:
            self.first[token] = self.text.find(token)
            self.meter.steps += len(self.text) if self.first[token] < 0 else self.first[token]
        return 0 <= self.first[token] < at

    def gemma(self, opening: re.Match[str]) -> int:
        """Read `call:name{key:<|"|>value<|"|>}` and its like behind it, or `call:name(key="value")`."""
        at, name = opening.end(), opening["gemma_name"]
        if _KEYED.match(self.text, at) is not None:
            return self._round(opening, at, name)
        if self.text.startswith("(", at):
            return self.python(opening.start("gemma_name"), "gemma", opening.start(), bracket=False)
        return self._each(at, name, "gemma", opening.start(), Style(bare=True), GEMMA_NEXT)

    def _round(self, opening: re.Match[str], at: int, name: str) -> int:
        """Read `(key:<|"|>value<|"|>)`."""
        reader = self.reader(Style(bare=True, shorthand=True))
        value, end = reader.object(at, 0, ")")
        self._measured(value, at)
        if not isinstance(value, dict) or "closed_brackets" in reader.repairs:
            raise Broken(end, "the arguments end before they are closed", cut=end >= len(self.text))
        end = closed(self.text, end)
        self.found.append(Found(name, value, ("gemma", *reader.repairs), opening.start(), end))
        return end

    def calling(self, opening: re.Match[str]) -> int:
        """Read `[Calling tool: name({...})]` or `[Calling tool="name" key="text"]`."""
        if opening["calling_name"] is not None:
            one = self.arguments(
                opening.end(), opening["calling_name"], "calling", opening.start(), JSON_STYLE
            )
            behind = _CALLING_ENDS.match(self.text, one.end)
        else:
            one, behind = self._keyed(opening)
        if behind is None:
            rest = self.text[one.end : one.end + 40].strip()
            raise Broken(one.end, "the call is not closed", cut=rest in ("", ")"))
        one.end = behind.end()
        self.found.append(one)
        return one.end

    def _keyed(self, opening: re.Match[str]) -> tuple[Found, re.Match[str] | None]:
        made: dict[str, Argument] = {}
        at = opening.end()
        while (member := _MEMBER.match(self.text, at)) is not None:
            self.meter.token(at)
            self.meter.steps += member.end() - at
            if member["key"] in made:
                raise Broken(at, f"the argument {member['key'][:40]!r} is there twice")
            made[member["key"]] = TypedText(member["value"])
            at = member.end()
        one = Found(opening["calling_keyed"], made, ("calling",), opening.start(), at)
        return one, _KEYED_ENDS.match(self.text, at)

    def elements(self, opening: re.Match[str], dialect: str, element: markup.Element) -> int:
        """Read a call that is written as one element per argument, or as JSON between its tags."""
        at, name = opening.end(), opening[f"{dialect}_name"]
        if dialect == "function" and _SAID.match(self.text, at) is not None:
            return at  # the tag is a word of a sentence
        if opening.group().startswith("<|DSML"):
            raise Broken(at, "DeepSeek's tags have full-width bars, these have ASCII's")
        if dialect in ("function", "invoke", "param") and (json := _JSON.match(self.text, at)) is not None:
            if dialect != "invoke":
                return self.named(opening, dialect, json.end())
            one = self.arguments(json.end(), name, dialect, opening.start(), CALL_STYLE, element.ends)
            return self._ended(one, element.ends)
        if opening.group().endswith("/>"):
            self.found.append(Found(name, {}, (dialect,), opening.start(), closed(self.text, at)))
            return closed(self.text, at)
        if dialect == "invoke" and nested.PLAIN_FIRST.match(self.text, at) is not None:
            return self.plain_elements(name, ("invoke", "elements"), opening.start(), at, nested.PLAIN)
        if dialect == "kimi3":
            name = unescape(name)
            json_inside = _KIMI3_JSON.match(self.text, at)
            if json_inside is not None:
                return self._kimi3(opening, name, json_inside.end())
        arguments, end = markup.read_elements(self.text, at, element, self.meter, self._arguments_of(name))
        markup.nothing_closes(self.text, end, element, self.meter)
        self.found.append(Found(name, arguments, (dialect,), opening.start(), closed(self.text, end)))
        return closed(self.text, end)

    def _kimi3(self, opening: re.Match[str], name: str, at: int) -> int:
        """Read Kimi K3's call with all its arguments as JSON."""
        return self._ended(self.arguments(at, name, "kimi3", opening.start(), CALL_STYLE), _KIMI3_ENDS)

    def _ended(self, one: Found, ends: re.Pattern[str]) -> int:
        """Take a call whose arguments are JSON, when its closing tag stands behind them."""
        behind = ends.match(self.text, one.end)
        if behind is None:
            rest = self.text[one.end : one.end + 40].strip()
            raise Broken(one.end, f"{rest[:24]!r} behind the arguments of a call", cut=not rest)
        one.end = behind.end()
        self.found.append(one)
        return one.end

    def tags(self, opening: re.Match[str]) -> int:
        """Read a call whose tag is the name of an offered tool, and whose arguments are tags in it."""
        name = opening["tag_name"]
        arguments, end = read_tags(self.text, opening.end(), name, self._arguments_of(name), self.meter)
        self.found.append(Found(name, arguments, ("tags",), opening.start(), end))
        return end

    def minimax(self, opening: re.Match[str]) -> int:
        """Read MiniMax M3's nested elements, in the section that its marks are written for."""
        if not self._behind(_M3_SECTION, opening.start()):
            raise Broken(opening.end(), "the section of the call is missing, and this format writes one")
        return self._nested(
            opening["minimax_name"], ("minimax",), opening.start(), opening.end(), nested.MINIMAX
        )

    def plain_elements(
        self, name: str, stages: tuple[str, ...], start: int, at: int, style: nested.Nested
    ) -> int:
        """Read arguments that are elements without a mark of their own, all of them the tool's where it says some."""
        return self._nested(name, stages, start, at, style, self._arguments_of(name))

    def _nested(
        self,
        name: str,
        stages: tuple[str, ...],
        start: int,
        at: int,
        style: nested.Nested,
        known: frozenset[str] = frozenset(),
    ) -> int:
        depth = self.rules.max_depth or 64
        arguments, end = nested.read_nested(self.text, at, style, self.meter, depth, known)
        self.found.append(Found(name, arguments, stages, start, end))
        return end

    def bare(self, at: int, stage: str = "json", *, shown: bool = False) -> int:
        """Read JSON that nothing wraps. Data is no call; its members are none either."""
        value, end, repairs = self.json(at, Style())
        calls = self.calls_in(value, wrapped=False)
        if calls and shown:
            self.refused.append((Reason.QUOTED, "the call is shown as an example", at, end))
        elif calls:
            nothing_more(self.text, end, [arguments for _, arguments, _ in calls])
            self.take(calls, (stage, *repairs), at, end)
        return end

    def block(self, at: int, start: int) -> int:
        """Read a block of code that holds Python calls, with brackets around them or without."""
        bracket = self.text.startswith("[", at)
        return (
            self.python(at + bracket, "tool_code", start, bracket=bracket)
            if PYTHON_CALL.match(self.text, at + bracket)
            else at
        )

    def bracket(self, at: int, *, shown: bool) -> int:
        """Read a list without a wrapper: of JSON calls, or of Python calls to offered tools."""
        call = PYTHON_CALL.match(self.text, at + 1)
        if call is None:
            return self.bare(at, shown=shown)
        before_it = self.thinking[-1][1] if self.thinking else 0
        whole = at - before_it < _MARGIN and not self.text[before_it:at].strip()
        expected = self.hint is not None and self.hint.python == "anywhere"
        known = call["name"] in self.offered.schemas
        if shown or not (known or (self.offered.anything and (whole or expected))):
            return call.end()
        before = len(self.found)
        try:
            end = self.python(at + 1, "python", at, bracket=True)
        except Broken as error:
            if error.cut and not known:
                # Any name is accepted, and the reply is nothing but this list: it was meant as calls.
                self.refused.append((Reason.CUT, error.why, at, len(self.text)))
                return len(self.text)
            raise
        if self.offered.anything and not expected and self.text[end:].strip():
            self.forget(before)
        return end
