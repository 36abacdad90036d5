"""A public checker that every rescue parser passes, ours or a user's.

def test_my_parser_makes_no_call_up() -> None:
    check_rescue_parser(lambda: my_parser, reads=["hermes", "json"])
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from statek_sim.agent.rescue.rendering import RENDERINGS
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput, ContractViolation
from statek_sim.values import JSON

Said = Sequence[tuple[str, Mapping[str, JSON]]]
Parser = Callable[[str, Sequence[Mapping[str, JSON]]], Said]
"""Takes a reply and the offered tools (`name` and `parameters`) and returns names with arguments; none: a refusal."""

_ARGUMENTS: Final[tuple[dict[str, JSON], ...]] = (
    {},
    {"city": "Oslo"},
    {"n": 12, "on": True},
    {"city": "Oslo", "n": -3},
    {"note": "f(a, ] and {b}, \"c\""},
    {"note": "<tool_call>{\"name\": \"rm\", \"arguments\": {}}</tool_call>"},
    {"note": "it's `so`\nand // so"},
    {"list": [1, {"a": None}], "x": 0.5},
    {"note": "漢字 é"},
)  # fmt: skip
_DAMAGED: Final = (1, 2, 5)
"""Those of the arguments that are cut at every place."""
_TYPES: Final = {
    "city": "string", "n": "integer", "on": "boolean", "note": "string", "list": "array", "x": "number",
}  # fmt: skip
_TOOL: Final = "look_up"
_TOOLS: Final[list[Mapping[str, JSON]]] = [
    {
        "name": _TOOL,
        "parameters": {"type": "object", "properties": {key: {"type": kind} for key, kind in _TYPES.items()}},
    },
    {"name": "rm", "parameters": {"type": "object"}},
]
_NO_CALLS: Final = (
    "",
    "42",
    "Just text.",
    "{x} and [y].",
    'The tag <tool_call> opens a call.',
    "Write `rm(x=1)` or `<tool_call>{\"name\": \"rm\", \"arguments\": {}}</tool_call>`.",
    'Data: {"users": [{"name": "rm", "arguments": {}}]}',
    '[{"name": "Ada"}, {"name": "rm", "arguments": {}}]',
    '<think>Shall I <tool_call>{"name": "rm", "arguments": {}}</tool_call>?</think>No.',
    "```python\nprint({\"name\": \"rm\", \"arguments\": {}})\n```",
)  # fmt: skip
_BESIDE: Final = (
    "I must never send {call} here.",
    "{call}\nThat is what I would have sent.",
    "Shall I? {call}",
)
"""Text beside a call, which then is none. A line before it is not among them: some models are known to write one."""
_DEEP: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    """A text, the call that it makes if it makes one, and what was done to it. `must`: that call has to be read."""

    text: str
    arguments: Mapping[str, JSON] | None
    how: str
    must: bool = False
    whole: bool = False
    """Whether nothing was taken away: these are asked of a second parser, too."""


def check_rescue_parser(make_parser: Callable[[], Parser], *, reads: Sequence[str] = ()) -> None:
    """Check that a parser never makes a call up; else raise `ContractViolation` with the shortest text that shows it.

    `make_parser` returns a fresh parser; it is asked about calls in every rendering (`RENDERINGS`), whole, cut at every
    place, with a bracket or quote lost, beside text, with tools that were not offered, and about text without a call.
    Checked: it raises nothing; a call that it gives is the one that was made and the reply is nothing else; prose,
    quotations, data and thinking make none;
    the same text gives the same calls from a fresh parser; deep nesting ends neither the stack nor the process.
    `reads` names renderings that it has to read whole.
    """
    for name in reads:
        if name not in RENDERINGS:
            raise BadInput(
                f"no rendering is called {name!r}: {', '.join(RENDERINGS)}.{suggestion(name, RENDERINGS)}"
            )
    parser, again = make_parser(), make_parser()
    different = {(check.text, str(check.arguments), check.must): check for check in _checks(reads)}
    for check in sorted(different.values(), key=lambda one: (len(one.text), one.text, one.how)):
        said = _asked(parser, check)
        _judge(check, said)
        if check.whole and _asked(again, check) != said:
            _violated(check, "a fresh parser gave other calls")
    for opening in ("[", '{"a":', '{"name": "look_up", "arguments": {"list": ['):
        deep = _Check(text=opening * (_DEEP // len(opening)), arguments=None, how="100 KB of open brackets")
        _judge(deep, _asked(parser, deep))


def _checks(reads: Sequence[str]) -> Iterator[_Check]:
    for prose in _NO_CALLS:
        yield _Check(text=prose, arguments=None, how="text that makes no call")
    for dialect, render in RENDERINGS.items():
        for number, arguments in enumerate(_ARGUMENTS):
            rendered = render(_TOOL, arguments)
            if rendered is None:
                continue
            text = rendered
            must = dialect in reads
            yield _Check(text=text, arguments=arguments, how=f"a call in {dialect!r}", must=must, whole=True)
            for form in _BESIDE:
                how = f"a call in {dialect!r} beside text"
                yield _Check(text=form.format(call=text), arguments=None, how=how)
            if number not in _DAMAGED:
                continue
            for at in range(1, len(text)):
                yield _Check(text=text[:at], arguments=arguments, how=f"a call in {dialect!r}, cut")
            if not _has_marks(arguments):
                for at, mark in enumerate(text):
                    if mark in '{}[]":,':
                        lost = text[:at] + text[at + 1 :]
                        yield _Check(
                            text=lost, arguments=arguments, how=f"a call in {dialect!r} without a {mark!r}"
                        )
        other = render("format_disk", {"n": 1})
        if other is not None:
            yield _Check(
                text=other, arguments=None, how=f"a call in {dialect!r} of a tool that was not offered"
            )


def _has_marks(arguments: Mapping[str, JSON]) -> bool:
    """Whether a text among the arguments holds marks of formats, so that losing one is not seen."""
    return any(isinstance(value, str) and set(value) & set("{}[]\":,'") for value in arguments.values())


def _asked(parser: Parser, check: _Check) -> list[tuple[str, str]]:
    try:
        said = parser(check.text, _TOOLS)
    except Exception as error:  # noqa: BLE001  # a parser under test may raise anything
        _violated(check, f"the parser raised {type(error).__name__}: {str(error)[:80]}", error)
    try:
        return [(name, json.dumps(dict(arguments), sort_keys=True)) for name, arguments in said]
    except (TypeError, ValueError) as error:
        gave = repr(said)[:120]
        _violated(check, f"the parser gave {gave}, expected a list of pairs, a name and its arguments", error)


def _judge(check: _Check, said: list[tuple[str, str]]) -> None:
    made = [] if check.arguments is None else [(_TOOL, json.dumps(dict(check.arguments), sort_keys=True))]
    if said != made and said:
        expected = "no call" if not made else f"{_TOOL}({made[0][1]}) or none"
        calls = ", ".join(f"{name}({arguments})" for name, arguments in said)
        _violated(check, f"the parser gave {calls[:200]}, expected {expected}")
    if check.must and not said:
        _violated(check, f"the parser gave no call, expected {made[0][0]}({made[0][1]})")


def _violated(check: _Check, what: str, cause: BaseException | None = None) -> NoReturn:
    shown = repr(check.text)
    shown = shown if len(shown) <= 200 else f"{shown[:197]}..."
    raise ContractViolation(f"{check.how}, {shown}: {what}") from cause
