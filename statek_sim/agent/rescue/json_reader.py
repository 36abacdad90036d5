"""A tolerant reader for a single value that is nearly JSON.

It repairs unambiguous mistakes (quotes, commas, comments, Python literals, raw newlines) and reports the repairs. It
never completes a value: a truncated value raises `Broken` with `cut=True`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from statek_sim.agent.rescue.formats import CLOSERS
from statek_sim.agent.rescue.work_budget import Broken, WorkBudget
from statek_sim.agent.schema import JSON_ESCAPES, NoJSON, real, whole
from statek_sim.values import JSON

ARGUMENT_KEYS: Final = ("arguments", "parameters", "args", "input", "params", "tool_input", "action_input")
"""Keys under which a call's arguments may appear."""

_SPACE: Final = re.compile(r"[\s\ufeff]*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.+-])", re.ASCII)
_BARE_KEY: Final = re.compile(r"{0}(?:{0}| (?={0}))*".format(r"[^\s\\:;,=|{}()\[\]<>\"'\u201c\u201d]"))
"""Matches an unquoted key, which contains neither brackets and quotes nor whatever separates keys and values."""
_WORD: Final = re.compile(r"[^\W\d][\w$-]*")
_BARE: Final = re.compile(r"[^,{}\[\]<>\"'\n]*[^,{}\[\]<>\"'\n\s]")
_TWO: Final = re.compile(r"[^\W\d]\w{0,40}:(?!//)|\A(?:null|true|false|-?\d[\d.]*+(?:[eE][+-]?\d++)?){2,}\Z")
"""Matches an unquoted value that may be two values with the comma, colon or bracket between them missing."""
_CONTROL: Final = re.compile(r"[\x00-\x1f]")
_QUOTED: Final = ('"', "'")
_NEXT_KEY: Final = re.compile(r'"[^"\\\n]{1,128}"\s{0,40}:')
_NUMBER_KEY: Final = re.compile(r"\d{1,18}(?=\s{0,40}:)", re.ASCII)
_LITERALS: Final[dict[str, JSON]] = {
    "true": True, "false": False, "null": None, "True": True, "False": False, "None": None,
    "TRUE": True, "FALSE": False, "NULL": None, "Null": None,
}  # fmt: skip
_QUOTES: Final[dict[str, tuple[str, str]]] = {
    '"': ('"', ""),
    "'": ("'", "single_quotes"),
    "\u201c": ("\u201d", "smart_quotes"),
    "\u201d": ("\u201d", "smart_quotes"),
}
_PLAIN: Final = {end: re.compile(rf"[^\\{end}]*", re.DOTALL) for end in ('"', "'", "\u201d")}
_TOKEN_QUOTES: Final = ('<|"|>', "<escape>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """The notations that the tolerant reader accepts beyond JSON.

    `python`: tuples and Python escapes; `bare`: unquoted strings; `shorthand`: the value is just a call's arguments,
    such as `{"city": "Oslo"}`, rather than a whole call.
    """

    python: bool = False
    bare: bool = False
    shorthand: bool = False


JSON_STYLE: Final = Style()


class JsonReader:
    """Reads values in `text` tolerantly. `repairs` lists the repairs made, in order of first use."""

    def __init__(self, text: str, budget: WorkBudget, max_depth: int, style: Style = JSON_STYLE) -> None:
        self.text = text
        self.budget = budget
        self.max_depth = max_depth
        self.style = style
        self.repairs: dict[str, None] = {}
        self._inside = 0

    def repaired(self, what: str) -> None:
        """Record a repair."""
        self.repairs[what] = None

    def space(self, at: int) -> int:
        """Return the start of the next token, after white space and comments."""
        end = _SPACE.match(self.text, at).end()  # type: ignore[union-attr]  # it matches nothing, too
        self.budget.steps += end - at
        while self.text.startswith(("//", "/*"), end):
            self.budget.token(end)
            mark = "*/" if self.text.startswith("/*", end) else "\n"
            behind = self.text.find(mark, end + 2)
            if behind < 0:
                raise Broken(len(self.text), "the reply ends inside a comment", cut=True)
            self.repaired("comments")
            start, end = end, _SPACE.match(self.text, behind + len(mark)).end()  # type: ignore[union-attr]
            self.budget.steps += end - start
        return end

    def value(self, at: int, depth: int = 0) -> tuple[JSON, int]:
        """Return the value at `at` and its end position."""
        self.budget.token(at)
        if depth > self.max_depth:
            raise Broken(at, f"it is nested more than {self.max_depth} levels deep", limit=True)
        at = self.space(at)
        head = self.text[at : at + 1]
        if not head:
            raise Broken(at, "the reply ends where a value was expected", cut=True)
        if head == "{":
            return self.object(at, depth)
        if head == "[" or (head == "(" and self.style.python):
            return self._array(at, depth)
        if head in _QUOTES:
            return self.string(at)
        if head == "<" and self.text.startswith(_TOKEN_QUOTES, at):
            return self._token_string(at)
        return self._scalar(at)

    def string(self, at: int) -> tuple[str, int]:
        """Return the quoted string at `at` and its end position."""
        text = self.text
        end_quote, repair = _QUOTES[text[at]]
        if repair and not self.style.python:
            self.repaired(repair)
        if self.style.python and text.startswith(text[at] * 3, at) and text[at] in "\"'":
            return self._triple(at, text[at] * 3)
        plain, pieces, here = _PLAIN[end_quote], [], at + 1
        while True:
            self.budget.token(here)
            stop = plain.match(text, here).end()  # type: ignore[union-attr]  # it matches nothing, too
            pieces.append(text[here:stop])
            self.budget.steps += stop - here
            if stop >= len(text):
                raise Broken(stop, "the reply ends inside a string", cut=True)
            if text[stop] == end_quote:
                break
            piece, here, repair = escape(text, stop, python=self.style.python)
            self.budget.steps += here - stop
            if repair:
                self.repaired(repair)
            pieces.append(piece)
        made = "".join(pieces)
        if _CONTROL.search(made) and _CONTROL.search(text, at, stop) and not self.style.python:
            self.repaired("raw_control_characters")
        return made, stop + 1

    def _triple(self, at: int, quote: str) -> tuple[str, int]:
        end = self.text.find(quote, at + 3)
        self.budget.steps += (len(self.text) if end < 0 else end) - at
        if end < 0:
            raise Broken(len(self.text), "the reply ends inside a string", cut=True)
        if "\\" in self.text[at:end]:
            raise Broken(at, "escape sequences are not allowed in a triple-quoted string")
        return self.text[at + 3 : end], end + 3

    def _token_string(self, at: int) -> tuple[str, int]:
        quote = next(quote for quote in _TOKEN_QUOTES if self.text.startswith(quote, at))
        end = self.text.find(quote, at + len(quote))
        self.budget.steps += (len(self.text) if end < 0 else end) - at
        if end < 0:
            raise Broken(len(self.text), "the reply ends inside a string", cut=True)
        return self.text[at + len(quote) : end], end + len(quote)

    def _scalar(self, at: int) -> tuple[JSON, int]:
        text = self.text
        number = _NUMBER.match(text, at)
        if number is not None:
            if number.end() == len(text):
                raise Broken(len(text), "the reply ends after a number that may be incomplete", cut=True)
            digits = number.group()
            self.budget.steps += len(digits)
            try:
                return (whole(digits) if digits.lstrip("-").isdigit() else real(digits)), number.end()
            except NoJSON as error:
                raise Broken(at, str(error)) from None
        word = _WORD.match(text, at)
        if word is not None and word.group() in _LITERALS:
            if word.end() == len(text):
                raise Broken(len(text), "the reply ends after a word that may be incomplete", cut=True)
            if word.group()[0].isupper() and not self.style.python:
                self.repaired("spelled_literals")
            return _LITERALS[word.group()], word.end()
        if self.style.bare:
            bare = _BARE.match(text, at)
            if bare is not None and (bare.group()[0] in ":=" or _TWO.search(bare.group())):
                raise Broken(at, f"{bare.group()[:24]!r} may be two values, or a key and its value")
            if bare is not None and text[bare.end() : bare.end() + 1] in ",}]":
                self.repaired("bare_strings")
                return bare.group(), bare.end()
        if word is not None and word.end() == len(text):
            raise Broken(len(text), "the reply ends inside a value", cut=True)
        raise Broken(at, f"{text[at : at + 12]!r} is not a value")

    def _key(self, at: int) -> tuple[str, int]:
        head = self.text[at : at + 1]
        if head in _QUOTES and head:
            key, end = self.string(at)
            if key != key.strip("\r\n"):
                raise Broken(at, f"cannot tell whether a newline is part of the key {key[:40]!r}")
            return key, end
        if head == "<" and self.text.startswith(_TOKEN_QUOTES, at):
            return self._token_string(at)
        word = (_BARE_KEY if self.style.bare else _WORD).match(self.text, at) or _NUMBER_KEY.match(
            self.text, at
        )
        if word is None:
            raise Broken(
                at,
                "the reply ends where a key was expected" if not head else "a key is missing",
                cut=not head,
            )
        if not self.style.bare:
            self.repaired("bare_keys")
        return word.group(), word.end()

    def _closes(self, at: int) -> bool:
        """Return whether an open container may be closed at `at` without losing arguments."""
        ends = at >= len(self.text) or CLOSERS.match(self.text, at) is not None
        if ends and not self._inside:
            self.repaired("closed_brackets")
            return True
        if at >= len(self.text):
            raise Broken(at, "the reply ends inside the call", cut=True)
        return False

    def object(self, at: int, depth: int, close: str = "}") -> tuple[JSON, int]:
        """Return the object that opens at `at`, and its end position. `close` is the closing bracket."""
        made: dict[str, JSON] = {}
        first, here = True, at + 1
        while True:
            here = self.space(here)
            if self.text.startswith(close, here):
                if not first:
                    self.repaired("trailing_commas")
                return made, here + 1
            key, here = self._key(here)
            self.budget.token(here)
            here = self.space(here)
            if not self.text.startswith(":", here):
                raise Broken(here, f"no colon after the key {key[:40]!r}", cut=here >= len(self.text))
            if key in made:
                raise Broken(here, f"the key {key[:40]!r} appears twice")
            is_argument = key in ARGUMENT_KEYS or self.style.shorthand
            self._inside += is_argument
            try:
                made[key], here = self.value(self.space(here + 1), depth + 1)
            finally:
                self._inside -= is_argument
            self.budget.steps += 2
            first = False
            behind, here = here, self.space(here)
            if self.text.startswith(",", here):
                here += 1
                self.budget.steps += 1
            elif self.text.startswith(close, here):
                return made, here + 1
            elif self._closes(here):
                return made, here
            elif self._forgot_a_comma(made[key], behind, here):
                self.repaired("missing_commas")
            else:
                raise Broken(here, f"{self.text[here : here + 12]!r} after a value")

    def _forgot_a_comma(self, value: JSON, behind: int, here: int) -> bool:
        """Return whether a member starts at `here`, with no comma after the value that ends at `behind`."""
        if self.text[here] not in _QUOTED:
            return False
        apart = "\n" in self.text[behind:here] or _NEXT_KEY.match(self.text, here) is not None
        return not isinstance(value, str) or (apart and _may_end(value))

    def _array(self, at: int, depth: int) -> tuple[JSON, int]:
        close = {"[": "]", "(": ")", "{": "}"}[self.text[at]]
        made: list[JSON] = []
        here = at + 1
        while True:
            here = self.space(here)
            if self.text.startswith(close, here):
                if made and not self.style.python:
                    self.repaired("trailing_commas")
                return made, here + 1
            value, behind = self.value(here, depth + 1)
            made.append(value)
            here = self.space(behind)
            if self.text.startswith(",", here):
                here += 1
                self.budget.steps += 1
            elif self.text.startswith(close, here):
                return made, here + 1
            elif self._closes(here):
                return made, here
            elif (self.text[here] == "{" and isinstance(value, dict)) or (
                here > behind and self.text[here] == '"' and not self.style.python and _may_end(value)
            ):
                self.repaired("missing_commas")
            else:
                raise Broken(here, f"{self.text[here : here + 12]!r} after a value")


def _may_end(value: JSON) -> bool:
    """Return whether a value is a complete string. A comma at its end may belong after the closing quote."""
    return isinstance(value, str) and not value.endswith(",")


_OTHER_ESCAPES: Final = re.compile(r"x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|N\{|[0-7]")
_PUNCTUATION: Final = frozenset("$&#%!@~^*_+-=.,;:?|()[]{}<>`")


def escape(text: str, at: int, *, python: bool) -> tuple[str, int, str]:
    """Return the character for the escape at `at`, the escape's end, and the repair's name (empty if none was needed).

    `python`: the escape is in a Python string. Raises `Broken` for ambiguous escapes.
    """
    letter = text[at + 1 : at + 2]
    if not letter:
        raise Broken(at, "the reply ends inside a string", cut=True)
    if letter == "u":
        return *_unicode(text, at), ""
    if letter in JSON_ESCAPES and (letter != "/" or not python):
        return JSON_ESCAPES[letter], at + 2, ""
    if letter in "'\u201d\u201c":
        return letter, at + 2, "" if python else "needless_escapes"
    if python and letter == "x" and re.match(r"[0-9a-fA-F]{2}", text[at + 2 : at + 4]):
        return chr(int(text[at + 2 : at + 4], 16)), at + 4, ""
    if python and letter == "\n":
        return "", at + 2, ""
    if _OTHER_ESCAPES.match(text, at + 1) or (python and letter in "av"):
        # An escape in Python but not in JSON: either a backslash is missing, or the escape is meant.
        raise Broken(at, f"{text[at : at + 4]!r} is ambiguous")
    if not python and letter in _PUNCTUATION:
        # A needless backslash, as in shells and Markdown, or a single one that should be doubled, as in regular
        # expressions.
        raise Broken(at, f"{text[at : at + 2]!r} is ambiguous")
    return "\\" + letter, at + 2, "single_backslashes"


def _unicode(text: str, at: int) -> tuple[str, int]:
    digits = text[at + 2 : at + 6]
    if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
        if at + 6 > len(text):
            raise Broken(len(text), "the reply ends inside a string", cut=True)
        raise Broken(at, "a \\u escape needs four hexadecimal digits")
    code, end = int(digits, 16), at + 6
    if 0xD800 <= code < 0xDC00 and re.fullmatch(r"\\u[dD][c-fC-F][0-9a-fA-F]{2}", text[end : end + 6]):
        low = int(text[end + 2 : end + 6], 16)
        return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)), end + 6
    return chr(code), end
