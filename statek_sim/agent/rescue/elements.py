"""Parses formats with one element per argument: `<function=N><parameter=K>V`, `<invoke name="N">`, GLM's keys.

Each reader starts after a call's opening and returns the call's arguments as strings and its end position. A value ends
at a closing tag that is followed by the format's next element, so a value may itself contain the closing tag.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from statek_sim.agent.rescue.offered_tools import TypedText
from statek_sim.agent.rescue.work_budget import Broken, WorkBudget

_NS: Final = r"(?:[|｜][A-Z]{2,12}[|｜] ?|[A-Za-z_]\w*:)?"
_SP: Final = r"[\sĠ]*"


_STRINGS: Final = ("true", "string", "str", "text")


@dataclass(frozen=True, slots=True)
class Element:
    """The patterns for an argument in one format. `opening` has the group `key`, and possibly `kind` and `quote`."""

    opening: re.Pattern[str]
    closing: re.Pattern[str]
    goes_on: re.Pattern[str]
    """Matches the text after the tag that actually closes a value."""
    ends: re.Pattern[str]
    """Matches the call's closing tag."""
    remains: re.Pattern[str]
    """Matches the beginning of a damaged closing tag of a value."""
    one_newline: bool = True
    """Whether a newline after the opening and a newline before the closing tag belong to the format."""
    lines: Literal["own", "maybe", "never"] = "never"
    """Whether the format puts newlines around a value: always, in some models and parsers, or never."""
    writes_json: bool = False
    """Whether all values except strings are written as JSON, so that a quoted value is a string."""

    @property
    def inside(self) -> re.Pattern[str]:
        """`opening` as a search pattern that starts before leading white space, which is scanned only once."""
        return re.compile(r"(?<!\s)(?<!\\n)" + self.opening.pattern)

    def kind(self, said: str | None) -> str:
        """Return the `TypedText.kind` for a value whose declared type is `said` (None: not declared)."""
        if said is None:
            return "json" if self.writes_json else ""
        return "text" if said in _STRINGS else "json"


_WRAPPED_END: Final = rf"</{_NS}(?:tool_calls?|function_calls|calls)>"
FUNCTION: Final = Element(
    opening=re.compile(r"\s*<parameter=(?P<key>[^<>\n]{1,200})>"),
    closing=re.compile(r"</parameter>"),
    goes_on=re.compile(rf"\s*(?:<parameter=|</function>|{_WRAPPED_END}|\Z)"),
    ends=re.compile(rf"\s*</function>(?:\s*{_WRAPPED_END})?|\s*{_WRAPPED_END}"),
    remains=re.compile(r"</parameter(?!>)"),
    lines="own",
)
INVOKE: Final = Element(
    opening=re.compile(
        rf'\s*<{_NS}parameter\s+(?:type="(?P<first_kind>\w+)"\s+)?name=(?P<quote>["\']?)(?P<key>[^<>"\'\n]{{1,200}})(?P=quote)'
        r'(?:\s+(?:string|type)="(?P<kind>\w+)")?\s*>'
    ),
    closing=re.compile(rf"</{_NS}parameter>"),
    goes_on=re.compile(rf"\s*(?:<{_NS}parameter\s|</{_NS}invoke>|{_WRAPPED_END}|\Z)"),
    ends=re.compile(rf"\s*</{_NS}invoke>|\s*{_WRAPPED_END}"),
    remains=re.compile(rf"</{_NS}parameter(?!>)"),
    lines="maybe",
)
PARAM: Final = Element(
    opening=re.compile(
        rf'\s*<param(?:eter)?{_SP}name=(?P<quote>["\'])(?P<key>[^<>"\'\n]{{1,200}})(?P=quote)\s*>'
    ),
    closing=re.compile(r"</param(?:eter)?>"),
    goes_on=re.compile(rf"\s*(?:<param(?:eter)?{_SP}|</function>|\Z)"),
    ends=re.compile(r"\s*</function>"),
    remains=re.compile(r"</param(?!(?:eter)?>)"),
    lines="maybe",
)
_KEYS_END: Final = rf"</{_NS}tool_call>"
_GAP: Final = r"(?:\s|\\n)*+"
"""White space between GLM's tags; some models write newlines as a two-character escape."""
KEYS: Final = Element(
    opening=re.compile(
        rf"{_GAP}<{_NS}arg_key>\s*+(?P<key>[^<>\s](?:[^<>\n]{{0,198}}[^<>\s])?)\s*+</{_NS}arg_key>"
        rf"{_GAP}(?:<{_NS}arg_type>(?P<kind>\w+)</{_NS}arg_type>\s*)?<{_NS}arg_value>"
    ),
    closing=re.compile(rf"</{_NS}arg_value>"),
    goes_on=re.compile(rf"{_GAP}(?:<{_NS}arg_key>|{_KEYS_END}|\Z)"),
    ends=re.compile(rf"{_GAP}{_KEYS_END}"),
    remains=re.compile(rf"</{_NS}arg_value(?!>)"),
    one_newline=False,
    writes_json=True,
)
_ATTRIBUTE: Final = re.compile(r"\s?(?:string|type|name|key)=\"\w{1,40}\"\s?>")
"""Remnants of an argument's opening tag that was closed too early."""
CDATA: Final = re.compile(r"\s*<!\[CDATA\[")
"""The start of a verbatim value, which extends to `]]>`."""


def read_elements(
    text: str, at: int, element: Element, budget: WorkBudget
) -> tuple[dict[str, TypedText], int]:
    """Return a call's arguments, which start at `at`, and the call's end position."""
    made: dict[str, TypedText] = {}
    while True:
        budget.token(at)
        opening = element.opening.match(text, at)
        if opening is None:
            break
        budget.steps += opening.end() - at
        if _ATTRIBUTE.match(text, opening.end()) is not None:
            raise Broken(at, "cannot tell where an argument's opening tag ends")
        key = opening["key"].strip()
        if key in made:
            raise Broken(at, f"the argument {key[:40]!r} appears twice")
        made[key] = TypedText("")
        value, at = _value(text, opening.end(), element, budget)
        groups = opening.groupdict()
        said = groups.get("kind") or groups.get("first_kind")
        kind = element.kind(said)
        unsure = _unsure(element, text[opening.end() : at], said=said is not None)
        made[key] = TypedText(value, kind, said=said is not None, unsure=unsure)
    end = element.ends.match(text, at)
    if end is None:
        rest = text[at : at + 200].strip()
        raise Broken(
            at, "the reply ends inside the call" if not rest else f"{rest[:24]!r} inside a call", cut=not rest
        )
    budget.steps += end.end() - at
    return made, end.end()


def _unsure(element: Element, written: str, *, said: bool) -> bool:
    """Return whether newlines around a value may belong to the format or the text; `written` includes the closing tag.

    `said`: the format declares a string, which is then written verbatim.
    """
    body, tag, _ = written.rpartition("</")
    if element.lines == "never" or not tag or CDATA.match(body):
        return False
    if element.lines == "own":
        return half_lined(body)
    # A single newline at the end belongs to the text in all formats.
    return body.startswith(_NEWLINES) and (said or half_lined(body))


def half_lined(body: str) -> bool:
    """Return whether the string between two tags has a newline at its start or its end, but not both."""
    return body in _NEWLINES or body.startswith(_NEWLINES) != (_LINE.search(body[-_NEAR:]) is not None)


def _value(text: str, at: int, element: Element, budget: WorkBudget) -> tuple[str, int]:
    """Return the value at `at` and its end position."""
    cdata = CDATA.match(text, at)
    if cdata is not None:
        return kept(text, cdata.end(), element.closing, budget)
    lined, here = element.one_newline and _NEWLINE.match(text, at) is not None, at
    inline = False
    while True:
        budget.token(here)
        closing = element.closing.search(text, here)
        if closing is None:
            raise Broken(len(text), "the reply ends inside an argument", cut=True)
        budget.steps += closing.end() - here
        begins = _LINE.search(text, max(at, closing.start() - _NEAR), closing.start()) is not None
        if (
            here > at
            and not inline
            and _TAG_LEFT.search(text, here, min(closing.start(), here + _NEAR)) is not None
        ):
            # Either the value continues after its own closing tag, or the tag that opens there is damaged.
            raise Broken(here, "cannot tell where an argument ends")
        if element.goes_on.match(text, closing.end()) is not None:
            break
        # If tags are on separate lines, a tag in the middle of a line is text.
        inline = lined and not begins
        here = closing.end()
    value = text[at : closing.start()]
    end = closing.end()
    remains = element.remains.search(value)
    if half_kept(value):
        raise Broken(end, "cannot tell where a verbatim text begins")
    if (remains is not None and _OPENING_LEFT.search(value, remains.end()) is not None) or (
        inline and not begins
    ):
        raise Broken(end, "cannot tell where an argument ends")
    for inner in element.inside.finditer(value):
        own_line = inner.group().startswith(_NEWLINES)
        in_a_line = lined and begins and not own_line
        # An argument closes and the next one opens on the same line, which may be text or two arguments.
        if not in_a_line or element.closing.search(value, 0, inner.start()) is not None:
            raise Broken(end, "cannot tell where an argument ends")
    return lines_of(value) if element.one_newline else value, end


def kept(text: str, at: int, closing: re.Pattern[str], budget: WorkBudget) -> tuple[str, int]:
    """Return the value from `at` to `]]>`, and the end of the closing tag after it.

    Raises `Broken` if there is no such end, or if other text follows, which may belong to the value.
    """
    end = text.find("]]>", at)
    budget.steps += (len(text) if end < 0 else end) - at
    if end < 0:
        raise Broken(len(text), "the reply ends inside an argument", cut=True)
    behind = _MARGIN.match(text, end + 3).end()  # type: ignore[union-attr]  # it matches nothing, too
    budget.steps += behind - end
    tag = closing.match(text, behind)
    if tag is None:
        raise Broken(len(text), "cannot tell where an argument ends", cut=behind == len(text))
    return text[at:end], tag.end()


def half_kept(value: str) -> bool:
    """Return whether a value outside a CDATA section ends with `]]>`, as if its start were damaged."""
    return value.rstrip().endswith("]]>")


_LINE: Final = re.compile(r"\n[ \t]*\Z")
_NEWLINES: Final = ("\n", "\r\n")
_NEWLINE: Final = re.compile(r"\r?\n")
_NEAR: Final = 60
_MARGIN: Final = re.compile(r"\s*+")
_OPENING_LEFT: Final = re.compile(r"param|arg")
"""Remnants of an argument's damaged opening tag."""
_TAG_LEFT: Final = re.compile(r"[<>/|=]|param|arg_|\bname\b")
"""Remnants of a damaged tag."""


def lines_of(value: str) -> str:
    """Return a value without the newlines and indentation that belong to the format."""
    mark = "\r\n" if value.startswith("\r\n") else "\n"
    if not value.startswith(mark):
        return value
    value = value[len(mark) :]
    margin = value[value.rfind("\n") + 1 :]
    if margin and not margin.strip(" \t"):
        lines = value.split("\n")
        if all(line.startswith(margin) or not line.strip() for line in lines):
            value = "\n".join(line.removeprefix(margin) for line in lines)
    return value.removesuffix(mark)


# -- tags that are names: `<read_file><path>a.py</path></read_file>`, as Cline and Roo ask models to write them ------

# Such tags may also be quoted XML or HTML. They are a call only if a tool with that name was offered, every
# tag in it is one of its arguments, and all of them are closed.

_TAG: Final = re.compile(r"\s*<(?P<key>[A-Za-z_][\w-]{0,127})>")


def read_tags(
    text: str, at: int, call: str, known: frozenset[str], budget: WorkBudget
) -> tuple[dict[str, TypedText], int]:
    """Return the arguments starting at `at`, and the end of `</call>`. `known` lists the names of allowed arguments.

    Raises `Broken` if a tag is not an argument or is not closed, or if a value may contain one of the call's tags.
    """
    made: dict[str, TypedText] = {}
    tags = _tags_of(call, tuple(sorted(known)))
    while True:
        budget.token(at)
        opening = _TAG.match(text, at)
        if opening is None:
            break
        key = opening["key"]
        if key not in known or key in made:
            raise Broken(at, f"<{key[:40]}> is not an argument of {call[:40]!r}, or appears twice")
        made[key], at = _tag_value(text, opening.end(), key, tags, budget)
    end = text.find(f"</{call}>", at, at + len(call) + 200)
    between = text[at : at + 200] if end < 0 else text[at:end]
    if end < 0 or between.strip():
        rest = between.strip()
        raise Broken(
            at, f"{rest[:24]!r} inside a call" if rest else "the reply ends inside the call", cut=not rest
        )
    end += len(call) + 3
    return made, end


def _tag_value(
    text: str, at: int, key: str, tags: re.Pattern[str], budget: WorkBudget
) -> tuple[TypedText, int]:
    """Return the value at `at` and the end of its closing tag, which must be the call's next tag."""
    cdata = CDATA.match(text, at)
    if cdata is not None:
        value, end = kept(text, cdata.end(), re.compile(f"</{re.escape(key)}>"), budget)
        return TypedText(value), end
    closing = tags.search(text, at)
    budget.steps += (len(text) if closing is None else closing.end()) - at
    if closing is None:
        raise Broken(len(text), "the reply ends inside an argument", cut=True)
    if closing.group() != f"</{key}>":
        raise Broken(closing.start(), "cannot tell where an argument ends")
    written = text[at : closing.start()]
    if half_kept(written):
        raise Broken(closing.start(), "cannot tell where a verbatim text begins")
    return TypedText(lines_of(written), unsure=half_lined(written)), closing.end()


@lru_cache(maxsize=256)
def _tags_of(call: str, known: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for all tags that open or close this call or one of its arguments."""
    return re.compile(rf"</?(?:{'|'.join(map(re.escape, (call, *known)))})>")
