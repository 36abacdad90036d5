"""Rescue parsing: finds the calls in a reply's text, and accepts them only if they make up the whole reply.

`rescue` reads a reply from start to end: thinking, then calls, then nothing. `_Reply` decides what may surround calls;
`CallParser` parses the calls in each format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from statek_sim.agent.rescue.call_parser import CallParser, Found
from statek_sim.agent.rescue.formats import (
    CALL_MARK,
    CHANNEL,
    FENCE,
    MESSAGE_MARK,
    OPENING,
    OPENINGS,
    SPACE,
    THINK,
    THINK_ENDS,
    UNNAMED,
    Dialect,
    dialect_called,
    line_opening,
)
from statek_sim.agent.rescue.offered_tools import Misfit, Offered, Tools, Unclear
from statek_sim.agent.rescue.surroundings import (
    Wrapper,
    quoted_end,
    shown_call,
    stands_in_another,
    think_ends,
)
from statek_sim.agent.rescue.values import Call, Limits, Reason, Refusal, Rescued, Span
from statek_sim.agent.rescue.work_budget import Broken, WorkBudget

Reformat = Callable[[str], str | None]
"""The optional last stage (strategy 4 in the agent document): returns a better version of a rejected reply, or None."""

_Read = Callable[[CallParser, re.Match[str]], int | None]
"""Parses the calls after an opening and returns their end position, or None if there are none; raises `Broken`."""


READERS: Final[Mapping[str, _Read]] = {
    **dict.fromkeys(("function", "invoke", "param"), CallParser.elements),
    "harmony": CallParser.named,
    "wrapper": lambda parser, opening: Wrapper(parser, opening).read(),
    "mistral": CallParser.mistral,
    "deepseek": CallParser.deepseek,
    "kimi": CallParser.kimi,
    "recipient_only": CallParser.recipient_only,
    "gemma": CallParser.gemma,
    "react": CallParser.react,
    "tag": CallParser.tags,
    "code": CallParser.tool_code,
    "brace": CallParser.bare,
    "bracket": CallParser.bracket,
    "python": CallParser.unwrapped_python,
}
"""The parser for each format in `OPENINGS`."""
_BARE: Final = ("brace", "bracket")
_NAME_FIRST: Final = re.compile(r"[{\[\s]*[\"'“]?(?:name|tool|function|tool_name|action|tool_calls)\b")
_PYTHON_FIRST: Final = re.compile(r"\[\s*(?P<name>[^\W\d][\w.-]*)\(")
"""Matches text that starts like a Python call in a list."""
_ANY_LINE: Final = frozenset(OPENINGS) - UNNAMED


def rescue(
    text: str,
    tools: Tools | None = None,
    *,
    limits: Limits | None = None,
    reformat: Reformat | None = None,
    dialect: str | None = None,
    coerce: bool = False,
    read_only: Collection[str] = (),
) -> Rescued:
    """Return the calls in `text`, or the reason why what looks like a call is rejected.

    `tools` are the offered tools, as names or specs; None accepts any name. `dialect` is the format that the model is
    known to use (a name in `DIALECTS`): text may then precede a call if the format's token starts a line. `read_only`
    names tools that change nothing: text may precede their calls if a format's token starts a line, and text may follow
    them. `reformat` is called once, if no call was found and something was rejected; the text it returns is parsed by
    the same rules, and calls found in it have `reformat` as their first stage. `coerce`: in a format that writes JSON
    or Python, a string where the schema does not accept one is converted to the schema's type, as the registry does for
    native calls; otherwise such a call is rejected. Raises `BadInput` for invalid tools or an unknown dialect.
    """
    offered, bounds = Offered(tools, coerce=coerce), limits or Limits()
    known, lenient = dialect_called(dialect), frozenset(read_only)
    found = _once(text, offered, bounds, known, lenient)
    if reformat is None or not found.refused:
        return found
    better = reformat(text)
    again = None if better is None else _once(better, offered, bounds, known, lenient)
    if again is not None and again.calls:
        calls = tuple(replace(call, stages=("reformat", *call.stages)) for call in again.calls)
        return replace(again, calls=calls, steps=found.steps + again.steps)
    why = "the model asked to reformat the reply did not return a call either"
    last = Refusal(reason=Reason.REFORMAT, why=why, span=Span(0, _size(text)))
    return replace(found, refused=(*found.refused, last))


def _once(
    text: str, offered: Offered, limits: Limits, dialect: Dialect | None, read_only: frozenset[str]
) -> Rescued:
    size = _size(text)
    if size > limits.max_bytes:
        why = f"the reply has {size} bytes; at most {limits.max_bytes} are read"
        return Rescued(refused=(Refusal(reason=Reason.LIMIT, why=why, span=Span(0, size)),), steps=1)
    return _Reply(text, offered, limits, dialect, read_only).read()


class _Stop(Exception):
    """Raised to stop parsing a reply and reject all of its calls; contains the reason."""

    def __init__(self, reason: Reason, why: str, start: int, end: int, name: str = "") -> None:
        super().__init__(why)
        self.reason, self.why, self.start, self.end, self.name = reason, why, start, end, name


@dataclass(slots=True)
class _Reply:
    """A reply being parsed; `read` returns the result."""

    text: str
    offered: Offered
    limits: Limits
    dialect: Dialect | None
    read_only: frozenset[str]
    budget: WorkBudget = field(init=False)
    parser: CallParser = field(init=False)
    thinking: list[tuple[int, int]] = field(default_factory=list)
    before: tuple[int, int] = (0, 0)
    """The text before the calls."""
    behind: int = 0
    """Where the text after the calls starts; the reply's end if there is none."""
    marked: bool = False
    """Whether a call's token was read."""

    def __post_init__(self) -> None:
        self.budget = WorkBudget(self.limits.max_repaired_tokens)
        self.parser = CallParser(self.text, self.offered, self.limits, self.budget)
        self.behind = len(self.text)

    def read(self) -> Rescued:
        """Return the reply's calls, or the refusal."""
        try:
            self._calls()
            if not self.parser.found:
                return self._rescued(())
            calls = tuple(map(self._checked, self.parser.found))
            self._alone()
        except _Stop as stop:
            span = Span(_size(self.text[: stop.start]), _size(self.text[: stop.end]))
            return self._rescued((), Refusal(reason=stop.reason, why=stop.why, span=span, name=stop.name))
        return self._rescued(calls)

    def _rescued(self, calls: tuple[Call, ...], *refused: Refusal) -> Rescued:
        text, thought = self.text, self.thinking[-1][1] if self.thinking else 0
        beside = text[slice(*self.before)].strip() + text[self.behind :].rstrip()
        said = beside if calls else text[thought:]
        return Rescued(
            calls=calls,
            text=said.strip(),
            thinking="\n".join(text[start:end] for start, end in self.thinking),
            refused=refused,
            steps=self.budget.steps,
        )

    # Around calls

    def _calls(self) -> None:
        """Parse calls up to the end of the reply; raises `_Stop` to reject them."""
        at = 0
        while True:
            at = self._skipped(at)
            if at >= len(self.text):
                break
            if len(self.parser.found) > self.limits.max_calls:
                why = f"more than {self.limits.max_calls} calls in one reply"
                raise _Stop(Reason.LIMIT, why, at, len(self.text))
            end = self._one(at)
            if end is None and (end := self._thought(at)) is None and (end := self._line(at)) is None:
                return self._text(at)
            at = end
        if self.marked and not self.parser.found:
            raise _Stop(Reason.CUT, "the reply ends before the call", 0, len(self.text))
        return None

    def _skipped(self, at: int) -> int:
        """Return the start of the next call or text, skipping space, tokens, thinking and code block markers."""
        text = self.text
        while True:
            start = at
            at = SPACE.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing, too
            if (think := THINK.match(text, at) or CHANNEL.match(text, at)) is not None:
                at = self._thinking(think)
            elif THINK_ENDS.match(text, at) is not None and not self.thinking:
                at = self._thought(at) or at
            elif (mark := MESSAGE_MARK.match(text, at)) is not None:
                at = mark.end()
            elif OPENING.match(text, at) is None and CALL_MARK.match(text, at) is not None:
                self.marked = True
                while OPENING.match(text, at) is None and (mark := CALL_MARK.match(text, at)) is not None:
                    at = mark.end()
            elif not self.before[1]:
                while (fence := FENCE.match(text, at)) is not None:
                    at = fence.end()
            self.budget.steps += at - start + 1
            if at == start:
                return at

    def _thinking(self, opening: re.Match[str]) -> int:
        closing = think_ends(opening).search(self.text, opening.end())
        end = len(self.text) if closing is None else closing.end()
        self.thinking.append((opening.start(), end))
        if closing is None and (name := self._shown(opening.end())) is not None:
            raise _Stop(Reason.CUT, "the reply ends inside its thinking", opening.start(), end, name)
        return end

    def _thought(self, at: int) -> int | None:
        """Return the end of thinking that the prompt opened and that is closed at or after `at`, or None."""
        closing = None if self.thinking else THINK_ENDS.search(self.text, at)
        if closing is None or quoted_end(self.text, closing):
            return None
        self.thinking.append((0, closing.end()))
        self.parser.found.clear()
        self.marked, self.before = False, (0, 0)
        return closing.end()

    def _line(self, at: int) -> int | None:
        """Return the start of the first line after `at` with a token in the model's format, if text may precede it."""
        readers = _ANY_LINE if self.read_only else self.dialect.readers if self.dialect else frozenset()
        if self.parser.found or self.marked or self.before[1] or not readers:
            return None
        # The text at `at` itself is not a call, so it continues.
        line = line_opening(readers).search(self.text, at + 1)
        if line is None or CALL_MARK.search(self.text, at, line.end()):
            return None
        self.budget.steps += line.end() - at
        if stands_in_another(self.text, self.thinking[-1][1] if self.thinking else 0, line.end()):
            return None
        self.before = (at, line.end())
        return line.end()

    def _one(self, at: int) -> int | None:
        """Parse the calls starting at `at` and return their end, or None if there is other text. Raises `_Stop`."""
        opening = OPENING.match(self.text, at)
        if opening is None:
            return None
        kind, before = opening.lastgroup or "", len(self.parser.found)
        try:
            end = READERS[kind](self.parser, opening)
        except Broken as error:
            if kind in _BARE and not self._looks_like_a_call(at):
                return None
            reason = Reason.LIMIT if error.limit else Reason.CUT if error.cut else Reason.BROKEN
            end = min(max(error.at, opening.end()), len(self.text))
            raise _Stop(reason, error.why, at, end, _name_in(opening)) from None
        if end is not None and len(self.parser.found) == before:
            self.marked = True
        if self.before[1] and before == 0 and len(self.parser.found) > 0:
            self._expected(kind)
        return end

    def _expected(self, kind: str) -> None:
        """Reject a call after text unless it is in the model's own format."""
        if self.dialect is not None and kind not in self.dialect.readers and not self.read_only:
            self._refuse_text("before")

    def _looks_like_a_call(self, at: int) -> bool:
        head = self.text[at : at + 60]
        python = _PYTHON_FIRST.match(head)
        return _NAME_FIRST.match(head) is not None or (
            python is not None and self.offered.knows(python["name"])
        )

    # Text around calls

    def _text(self, at: int) -> None:
        """Reject the reply if the text at `at` contains a call, or is next to a call or one of its tokens."""
        if self.parser.found:
            self.behind = at
            return
        if self.marked and not self.before[1]:
            raise _Stop(Reason.BROKEN, "a call begins, but what follows cannot be read as one", 0, at)
        start = self.thinking[-1][1] if self.thinking else 0
        if (name := self._shown(start)) is not None:
            why = f"a call to {name!r} is next to other text"
            raise _Stop(Reason.NOT_ALONE, why, start, len(self.text), name)

    def _alone(self) -> None:
        """Reject calls that come with text, unless the tools are read-only."""
        lenient, last = (
            all(found.name in self.read_only for found in self.parser.found),
            self.parser.found[-1],
        )
        self.behind = min((self.behind, *(start for start, _ in self.thinking if start >= last.end)))
        if self.behind < len(self.text) and not lenient:
            self._refuse_text("after")
        if self.before[1] and self.dialect is None and not lenient:
            self._refuse_text("before")

    def _refuse_text(self, where: str) -> None:
        first, last = self.parser.found[0], self.parser.found[-1]
        why = f"there is text {where} the call to {first.name!r}"
        raise _Stop(Reason.NOT_ALONE, why, first.start, last.end, first.name)

    def _shown(self, at: int) -> str | None:
        self.budget.steps += len(self.text) - at
        tools = None if self.offered.anything else self.offered.schemas
        return shown_call(self.text[at:], tools)

    # Interpreting calls

    def _checked(self, found: Found) -> Call:
        try:
            return _call(self.offered, found, self.text)
        except Misfit as misfit:
            reason = _reason(self.offered, found, misfit)
            raise _Stop(reason, str(misfit), found.start, found.end, found.name) from None


def _name_in(opening: re.Match[str]) -> str:
    names = (value for key, value in opening.groupdict().items() if key.endswith("_name"))
    return next((name for name in names if name), "")


def _call(offered: Offered, found: Found, text: str) -> Call:
    """Return a call with its name and typed arguments, checked against the tool's schema. Raises `Misfit`."""
    name = offered.the_name(found.name)
    arguments = offered.typed(name, found.arguments)
    stages = found.stages
    if set(arguments) != set(found.arguments):
        stages = (*stages, "unwrapped_arguments")
    elif any(arguments[key] != value for key, value in found.arguments.items() if _is_typed(value)):
        stages = (*stages, "typed_by_schema")
    if offered.unchecked(name):
        stages = (*stages, "unchecked_schema")
    offered.check(name, arguments)
    start = _size(text[: found.start])
    span = Span(start, start + _size(text[found.start : found.end]))
    return Call(name=name, arguments=arguments, stages=stages, span=span)


def _is_typed(value: object) -> bool:
    """Return whether a format declares the types of all its values."""
    return isinstance(value, str | int | float | None)


def _reason(offered: Offered, found: Found, misfit: Misfit) -> Reason:
    if isinstance(misfit, Unclear):
        return Reason.BROKEN
    try:
        offered.the_name(found.name)
    except Misfit:
        return Reason.NOT_OFFERED
    return Reason.SCHEMA


def _size(text: str) -> int:
    """Return the size of `text` in bytes, as UTF-8."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


class RescueStream:
    """Reads a reply in pieces of any size; `finish` returns the same as `rescue` would for the whole reply.

    Nothing is returned earlier, because only the end shows whether the call is the whole reply. Stores at most about
    `limits.max_bytes`.
    """

    def __init__(
        self,
        tools: Tools | None = None,
        *,
        limits: Limits | None = None,
        dialect: str | None = None,
        coerce: bool = False,
        read_only: Collection[str] = (),
    ) -> None:
        bounds = limits or Limits()
        self._rescue = partial(
            rescue, tools=tools, limits=bounds, dialect=dialect, coerce=coerce, read_only=read_only
        )
        self._left = bounds.max_bytes
        self._pieces: list[str] = []

    def feed(self, piece: str) -> None:
        """Add the reply's next piece."""
        if self._left >= 0:
            self._pieces.append(piece)
            self._left -= len(piece)

    def finish(self, *, reformat: Reformat | None = None) -> Rescued:
        """Return the calls in the whole reply, or the refusal."""
        return self._rescue("".join(self._pieces), reformat=reformat)
