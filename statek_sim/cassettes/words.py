"""Values without quotes, `NAME=value` and `name: value`: where they end, and whether they are any."""

from __future__ import annotations

import re
from typing import Final

from statek_sim.cassettes.names import NUMBER, is_secret_name, is_telling, is_value, may_be_number
from statek_sim.cassettes.own_secrets import OwnSecrets

WORD: Final = re.compile(r"[^\s&,;\"'`<>\\()\[\]{}|]+")
# Where a word may go on behind a bracket, unless that is a tag or a call's end.
_BRACKET: Final = re.compile(
    r"(?!</?[A-Za-z][^<>\n]{0,300}>)[()\[\]{}<>|]{1,20}(?=[^\s&,;\"'`<>\\()\[\]{}|])"
)
# What a shell reads as a part of the word: a sign that is escaped, though not as in a text of JSON, or a quote.
_GOES_ON: Final = re.compile(r"\\(?![nrtbfu\"'/\\\n])|[\"'](?=[A-Za-z0-9])")
_GOES_ON_IN_SHELL: Final = re.compile(
    rf"(?:{_GOES_ON.pattern})|[,;](?!\w{{1,60}}=)[()\[\]{{}}<>|]{{0,20}}(?=[^\s,;&\"'`<>|\\()\[\]{{}}])"
)
# What a shell or a template puts something else in the place of.
_VARIABLE: Final = re.compile(r"\$\d|![01](?!\w)|\$\{\{?[^{}\n]{1,100}\}|\$\([^()\n]{1,200}\)")
_CODE: Final = re.compile(r"[A-Za-z_][A-Za-z_.]*[(\[]|[a-z_]+(?:\.[a-z_]+)+$")
_CLOSED: Final = re.compile(r"[)\]}]{1,20}")
_OF_CODE: Final = (",", ")", "(", "[", "]")
_QUOTES: Final = ('"', "'", "`")
_BEFORE_A_WORD: Final = ("", " ", "\t", "\r", "\n", "=")
# What stands before the lines that `diff` and `grep` print.
_BEFORE_A_LINE: Final = ("+", "-", ":")
_NUMBERED: Final = re.compile(r"(?:^|[\n\"'`])(?:[+-]|(?:[\w./-]{1,100}[:-])?\d{1,7}[:-]|[\w./-]{1,100}:)\Z")
_BEFORE_A_MEMBER: Final = ("{", ">")
_ENDS_OF_LINE: Final = ("\r", "\n")
_AFTER_A_MEMBER: Final = ("}", "<", ",")


def bare_value(text: str, name: str, between: re.Match[str], own: OwnSecrets) -> tuple[int, int] | None:
    """Return where a value without quotes stands behind a name that is sure; None where code or a sentence goes on.

    `between` is what is between the two, with groups for its `sign`, its `gap` and the blanks before it, `wide`.
    """
    start = between.end()
    alone = _stands_alone(text, name, between) or text[between.start() - len(name) - 1 :][:1] == ">"
    bracket = _BRACKET.match(text, start) if alone else None
    word = WORD.match(text, bracket.end() if bracket is not None else start)
    if word is None or _VARIABLE.match(text, start) or (between["sign"] == ":" and text[start] in "?:"):
        return None
    goes_on = (
        (_GOES_ON_IN_SHELL if name.isupper() and between["sign"] == "=" else _GOES_ON) if alone else None
    )
    end = _end_of_word(text, word.end(), goes_on)
    value = text[start:end]
    if bracket is not None and not (
        is_telling(name, value, upper=False) or text[end : end + 1] in (")", "]", "}")
    ):
        return None
    if NUMBER.fullmatch(value) and not may_be_number(name, value, own):
        return None
    assigned = _is_assigned(text, name, between, value, end)
    if _CODE.match(text[start : word.end() + 1]):
        # A call, unless nothing closes it.
        unclosed = end > word.end() and any(map(str.isdigit, value))
        if (
            not assigned
            or is_secret_name(word[0])
            or (text[word.end() : word.end() + 1] == "(" and not unclosed)
        ):
            return None
    upper = name.isupper() and (between["sign"] == "=" or len(name) > 5)
    telling = assigned or own.is_name(name) or is_telling(name, word[0], upper=upper)
    return (start, end) if telling else None


def _end_of_word(text: str, end: int, goes_on: re.Pattern[str] | None) -> int:
    """Return where a value without quotes ends that goes on behind brackets, as passwords do, and behind `goes_on`.

    Among arguments or members, where that is None, a bracket that closes what was open before it ends it.
    """
    depth = 0
    while (
        bracket := _BRACKET.match(text, end) or (goes_on.match(text, end) if goes_on is not None else None)
    ) is not None:
        for sign in bracket[0]:
            depth += (sign in "([{<") - (sign in ")]}>")
            if depth < 0 and goes_on is None:
                return end
        at = bracket.end()
        more = WORD.match(text, at + 1 if bracket[0] == "\\" and text[at : at + 1] == " " else at)
        if more is None:
            return end
        end = more.end()
    return end


def _stands_alone(text: str, name: str, between: re.Match[str]) -> bool:
    """Whether `name=value` is no argument of a call and no member of a list."""
    start = between.start() - len(name)
    before = text[max(0, start - 2) : start]
    if not before.isascii() or before[-1:] in _QUOTES or text.endswith("CDATA[", 0, start):
        return True
    if before[-1:] in _BEFORE_A_LINE and _NUMBERED.search(text, max(0, start - 200), start):
        return True
    return before[-1:] in _BEFORE_A_WORD and not before.startswith((",", "("))


def _is_assigned(text: str, name: str, between: re.Match[str], value: str, end: int) -> bool:
    """Whether `name=value` is a word of its own, as in a shell or a settings file and not among arguments of code."""
    if between["sign"] != "=" or between["wide"] or between["gap"] or not is_value(name, value):
        return False
    opened = sum((sign in "([{") - (sign in ")]}") for sign in value)
    closed = _CLOSED.match(text, end)
    if closed is not None and opened > 0:
        # What closes a bracket of the value itself does not end what the value is in.
        end = min(closed.end(), end + opened)
    after = text[end : end + 1]
    start = between.start() - len(name)
    if after == "}" or (start and text[start - 1] in _BEFORE_A_MEMBER):
        # `{password=…, user=me}`, `User{name=me, password=…}`, `<td>password=…</td>`
        return after in _AFTER_A_MEMBER or (text[start - 1] == ">" and after in _ENDS_OF_LINE)
    return _stands_alone(text, name, between) and after not in _OF_CODE
