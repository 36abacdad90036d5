"""What a backslash in a string means."""

from __future__ import annotations

import re
from typing import Final

from statek_sim.agent.rescue.work_budget import Broken

_OTHER_ESCAPES: Final = re.compile(r"x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|N\{|[0-7]")
_PUNCTUATION: Final = frozenset("$&#%!@~^*_+-=.,;:?|()[]{}<>`")
_ESCAPES: Final = {
    '"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip


def escape(text: str, at: int, *, python: bool) -> tuple[str, int, str]:
    """Return what the escape at `at` stands for, where it ends, and the repair that this was, or nothing.

    `python`: in a string of Python. Raises `Broken` for what has two meanings.
    """
    letter = text[at + 1 : at + 2]
    if not letter:
        raise Broken(at, "the reply ends inside a string", cut=True)
    if letter == "u":
        return *_unicode(text, at), ""
    if letter in _ESCAPES and (letter != "/" or not python):
        return _ESCAPES[letter], at + 2, ""
    if letter in "'\u201d\u201c":
        return letter, at + 2, "" if python else "needless_escapes"
    if python and letter == "x" and re.match(r"[0-9a-fA-F]{2}", text[at + 2 : at + 4]):
        return chr(int(text[at + 2 : at + 4], 16)), at + 4, ""
    if python and letter == "\n":
        return "", at + 2, ""
    if _OTHER_ESCAPES.match(text, at + 1) or (python and letter in "av"):
        # JSON has no such escape and Python has: the backslash may be one too few, or the escape be meant.
        raise Broken(at, f"{text[at : at + 4]!r} has two meanings")
    if not python and letter in _PUNCTUATION:
        # A needless backslash, as shells and Markdown have it, or a single one, as regular expressions have it.
        raise Broken(at, f"{text[at : at + 2]!r} has two meanings")
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
