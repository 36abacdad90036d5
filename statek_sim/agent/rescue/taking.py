"""Taking calls: one reader per family of formats, each called at an opening of its format.

A reader takes one or more calls and returns where it ended, or raises `Broken`. Nothing is completed: arguments that
are cut are no arguments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from statek_sim.agent.rescue import markup
from statek_sim.agent.rescue.extent import extent
from statek_sim.agent.rescue.hints import Hint
from statek_sim.agent.rescue.meaning import Meaning, Meant
from statek_sim.agent.rescue.meter import Broken, Meter, strict
from statek_sim.agent.rescue.offered import NAME, Argument, Offered
from statek_sim.agent.rescue.openings import CLOSERS
from statek_sim.agent.rescue.reader import JSON_STYLE, Reader, Style
from statek_sim.agent.rescue.values import Limits, Reason
from statek_sim.agent.rescue.variants import RescueRules
from statek_sim.values import JSON

PYTHON_CALL: Final = re.compile(r"\s*(?P<name>[^\W\d][\w.]{0,127})\s*\(")
_KEYWORD: Final = re.compile(r"\s*(?P<key>[^\W\d]\w{0,127})\s*=(?!=)\s*")
_ID: Final = re.compile(r"\s*(?:\[CALL_ID\]\s*[\w-]*\s*)?(?:\[ARGS\])?\s*")
_MARGIN: Final = 200
"""Characters of white space before a reply's first word, at most."""
_SEPARATOR: Final = re.compile(r"[\s,;]*")
_NAMED: Final = re.compile(
    rf"\s*(?P<name>{NAME.pattern})\s*(?P<behind><tool_sep>|<(?:ifm\|)?arg_key>|</(?:ifm\|)?tool_call>|\{{)"
)
_INSIDE: Final = re.compile(r"\s{0,40}\{")
_EXTRA: Final = re.compile(r"[\s}\]]{1,8}")


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
    sure: int = 0
    """How many of `found` stay, whatever becomes of the format that is being read."""

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
        most = self.rules.max_depth or 64
        todo: list[tuple[JSON, int]] = [(value, 0)]
        for number in count():
            if not todo:
                return
            one, depth = todo.pop()
            if number > self.limits.max_values:
                raise Broken(at + 1, f"it has more than {self.limits.max_values} values", limit=True)
            if depth > most:
                raise Broken(at + 1, f"it is nested more than {most} deep", limit=True)
            if isinstance(one, dict):
                todo += [(member, depth + 1) for member in one.values()]
                todo += [(key, depth) for key in one]
            elif isinstance(one, list):
                todo += [(member, depth + 1) for member in one]
            elif isinstance(one, str) and not _is_text(one):
                raise Broken(at + 1, "a string holds half of a surrogate pair")

    def arguments(self, at: int, name: str, dialect: str, start: int, style: Style) -> Found:
        """Read `{...}` at `at` as the arguments of `name`."""
        value, end, repairs = self._whole_json(at, style)
        made = value if isinstance(value, dict) else None
        if made is None:
            raise Broken(at, f"the arguments of {name!r} are no object")
        return Found(name, made, (dialect, *repairs), start, self._closed(end))

    def _whole_json(self, at: int, style: Style) -> tuple[JSON, int, tuple[str, ...]]:
        """Read arguments: a bracket that is missing in them is missing for good."""
        shorthand = Style(python=style.python, bare=style.bare, shorthand=True)
        value, end, repairs = self.json(at, shorthand)
        if "closed_brackets" in repairs:
            raise Broken(end, "the arguments end before they are closed", cut=end >= len(self.text))
        return value, end, repairs

    def _closed(self, at: int) -> int:
        """Return the place behind brackets too many and the closing token, where they are."""
        extra = _EXTRA.match(self.text, at)
        if extra is not None and (closer := CLOSERS.match(self.text, extra.end())) is not None:
            return closer.end()
        closer = CLOSERS.match(self.text, at)
        return at if closer is None else closer.end()

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
            raise Broken(-1, error.why, limit=error.limit) from None
        return (arguments, ()) if arguments[end:].strip() else (value, repairs)

    # Readers of one opening each. They return where the pass goes on.

    def wrapper(self, opening: re.Match[str]) -> int:
        """Read the calls in a wrapper: JSON, Python, or names with keys. Prose behind the token is prose.

        What was complete stays, whatever follows; what cannot be read and can be seen to end is refused by itself.
        """
        at, taken = opening.end(), False
        dialect = _label(opening.group())
        shorthand = "prefix" in opening.group()
        while True:
            self.meter.token(at)
            here = _SEPARATOR.match(self.text, at).end()  # type: ignore[union-attr]  # it matches nothing, too
            self.meter.steps += here - at
            end = self._wrapped(here, dialect, opening.start() if not taken else here, shorthand=shorthand)
            if end is None:
                break
            at, taken, self.sure = end, True, len(self.found)
        return at

    def _wrapped(self, at: int, dialect: str, start: int, *, shorthand: bool) -> int | None:
        """Take one item of a wrapper, and return where it ends; None: what stands there is none."""
        head = self.text[at : at + 1]
        if head == "[" and PYTHON_CALL.match(self.text, at + 1):
            return self.python(at + 1, dialect, start, bracket=True)
        if head == "[":
            return self._list(at, dialect, start, Style(shorthand=shorthand))
        if head == "{":
            return self._closed(self._item(at, dialect, start, Style(shorthand=shorthand), ()))
        if PYTHON_CALL.match(self.text, at):
            return self.python(at, dialect, start, bracket=False)
        named = _NAMED.match(self.text, at)
        if named is None or "keys" not in self.rules.dialects:
            return None
        if named["behind"] == "{":
            one = self.arguments(named.end() - 1, named["name"], dialect, start, Style())
            self.found.append(one)
            return one.end
        arguments, end = markup.read_elements(self.text, named.end("name"), markup.KEYS, self.meter)
        self.found.append(Found(named["name"], arguments, (dialect, "keys"), start, end))
        return end

    def _list(self, at: int, dialect: str, start: int, style: Style) -> int:
        """Take the calls of a JSON list in a wrapper, one by one."""
        here = at + 1
        repairs: dict[str, None] = {}
        first, reader = len(self.found), self.reader(style)
        comma = True
        while True:
            self.meter.token(here)
            here = reader.space(here)
            if self.text.startswith("]", here):
                end = here + 1
                break
            if self.text.startswith("{", here) and not comma:
                repairs["missing_commas"] = None
            elif not comma or not self.text.startswith(("{", "["), here):
                ends = here >= len(self.text) or CLOSERS.match(self.text, here) is not None
                if not ends or len(self.found) == first:
                    why = f"{self.text[here : here + 12]!r} in a list of calls"
                    raise Broken(here, why, cut=here >= len(self.text))
                repairs["closed_brackets"], end = None, here
                break
            here = reader.space(
                self._item(here, dialect, start if len(self.found) == first else here, style, ())
            )
            self.sure = len(self.found)
            comma = self.text.startswith(",", here)
            here += comma
        end = self._closed(end)
        for one in self.found[first:]:
            one.stages, one.end = (*one.stages, *repairs, *reader.repairs), max(one.end, end)
        return end

    def _item(self, at: int, dialect: str, start: int, style: Style, before: tuple[str, ...]) -> int:
        """Take what one JSON value in a wrapper says, and return where it ends."""
        try:
            value, end, repairs = self.json(at, style)
        except Broken as error:
            behind = None if error.limit else extent(self.text, at, self.meter)
            if behind is None:
                raise
            self.refused.append((Reason.BROKEN, error.why, at, behind))
            return behind
        calls = self.calls_in(value, wrapped=True, shorthand=style.shorthand)
        if calls is None:
            why = "what stands in the wrapper is JSON, but no call with a name and arguments"
            self.refused.append((Reason.BROKEN, why, at, end))
            return end
        self._take(calls, (dialect, *before, *repairs), start, end)
        return end

    def _take(
        self,
        calls: list[Meant],
        stages: tuple[str, ...],
        start: int,
        end: int,
    ) -> None:
        for name, arguments, more in calls:
            if "no_arguments" in more and "closed_brackets" in stages:
                raise Broken(end, "the reply ends before the arguments", cut=True)
            self.found.append(Found(name, arguments, (*stages, *more), start, end))

    def python(self, at: int, dialect: str, start: int, *, bracket: bool) -> int:
        """Read `f(a=1), g(b='x')` at `at`."""
        reader = self.reader(Style(python=True))
        taken: list[Found] = []
        while (call := PYTHON_CALL.match(self.text, at)) is not None:
            self.meter.token(at)
            arguments, end = self._keywords(reader, call.end())
            name = call["name"].removesuffix(".call") if dialect == "python_tag" else call["name"]
            taken.append(Found(name, arguments, (dialect, "python", *reader.repairs), start, end))
            at = reader.space(end)
            if self.text.startswith(",", at):
                at += 1
            elif bracket:
                break
        end = taken[-1].end
        if bracket:
            end = reader.space(end)
            if self.text.startswith("]", end):
                end += 1
            elif end < len(self.text) and CLOSERS.match(self.text, end) is None:
                raise Broken(end, f"{self.text[end : end + 12]!r} behind a call")
        end = self._closed(end)
        for one in taken:
            one.end = end
        self.found += taken
        return end

    def _keywords(self, reader: Reader, at: int) -> tuple[dict[str, JSON], int]:
        made: dict[str, JSON] = {}
        while True:
            at = reader.space(at)
            if self.text.startswith(")", at):
                return made, at + 1
            word = _KEYWORD.match(self.text, at)
            if word is None:
                raise Broken(at, "an argument has no name", cut=at >= len(self.text))
            if word["key"] in made:
                raise Broken(at, f"the argument {word['key']!r} is there twice")
            value, at = reader.value(word.end())
            self._measured(value, at - 1)
            made[word["key"]] = value
            at = reader.space(at)
            if self.text.startswith(",", at):
                at += 1
            elif not self.text.startswith(")", at):
                raise Broken(at, f"{self.text[at : at + 12]!r} behind an argument", cut=at >= len(self.text))

    def mistral(self, opening: re.Match[str]) -> int:
        """Read `[TOOL_CALLS]name[ARGS]{...}`."""
        name = opening["mistral_name"]
        behind = _ID.match(self.text, opening.end() + len(name))
        return self.named(opening, "mistral", behind.end() if behind else opening.end())

    def named(self, opening: re.Match[str], dialect: str, at: int, style: Style = JSON_STYLE) -> int:
        """Read the arguments at `at` of the call that the opening names."""
        one = self.arguments(at, opening[f"{dialect}_name"], dialect, opening.start(), style)
        self.found.append(one)
        return one.end

    def gemma(self, opening: re.Match[str]) -> int:
        """Read `call:name{key:<|"|>value<|"|>}`."""
        return self.named(opening, "gemma", opening.end(), Style(bare=True))

    def elements(self, opening: re.Match[str], dialect: str, element: markup.Element) -> int:
        """Read a call that is written as one element per argument, or as JSON between its tags."""
        at, name = opening.end(), opening[f"{dialect}_name"]
        if dialect == "function" and self.text[at : at + 40].lstrip().startswith("{"):
            return self.named(
                opening, dialect, at + len(self.text[at : at + 40]) - len(self.text[at : at + 40].lstrip())
            )
        arguments, end = markup.read_elements(self.text, at, element, self.meter, self._arguments_of(name))
        self.found.append(Found(name, arguments, (dialect,), opening.start(), self._closed(end)))
        return self._closed(end)

    def minimax(self, opening: re.Match[str]) -> int:
        """Read MiniMax M3's nested elements."""
        depth = self.rules.max_depth or 64
        arguments, end = markup.read_minimax(self.text, opening.end(), self.meter, depth)
        self.found.append(Found(opening["minimax_name"], arguments, ("minimax",), opening.start(), end))
        return end

    def bare(self, at: int, stage: str = "json", *, shown: bool = False) -> int:
        """Read JSON that nothing wraps. Data is no call; its members are none either."""
        value, end, repairs = self.json(at, Style())
        calls = self.calls_in(value, wrapped=False)
        if calls and shown:
            self.refused.append((Reason.QUOTED, "the call is shown as an example", at, end))
        elif calls:
            self._take(calls, (stage, *repairs), at, end)
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
            del self.found[before:]
        return end


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _label(token: str) -> str:
    word = re.sub(r"\W+", "_", token).strip("_").lower()
    return "functools" if word.startswith("functools") else word
