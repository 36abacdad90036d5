"""Passwords in commands that stand in a text: a tool's arguments, a transcript, a sentence that says how to log in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from statek_sim.cassettes.names import is_placeholder, is_secret_header

# Up to here a command goes on that was named; what is quoted in it has no line break.
_GOES_ON: Final = r"(?:[^\S\n]{1,9}[^\s|;&]{1,200}){0,20}?[^\S\n]{1,9}"
_QUOTE: Final = r"[\"']?"
_WORD: Final = r"([^\s\"'`\\|;&<>]{1,200})"

_OPTIONS: Final = (
    (("mysql", "mariadb"), rf"\b(?:mysql|mariadb)[a-z_-]{{0,20}}{_GOES_ON}-p(?!\d+:\d){_QUOTE}{_WORD}"),
    (
        ("curl", "wget"),
        rf"\b(?:curl|wget){_GOES_ON}(?:-[uU]|--(?:proxy-)?user)[ =]{{0,3}}{_QUOTE}[^\s:\"'\\]{{0,100}}:{_WORD}",
    ),
    (("sshpass",), rf"\bsshpass[^\S\n]{{1,9}}-p[^\S\n]{{0,9}}{_QUOTE}{_WORD}"),
    (("redis-cli",), rf"\bredis-cli{_GOES_ON}-a[^\S\n]{{1,9}}{_QUOTE}{_WORD}"),
    (
        ("login",),
        rf"\b(?:docker|podman|nerdctl|skopeo|helm registry|az acr|oc) {{1,9}}login{_GOES_ON}-p {{1,9}}{_QUOTE}{_WORD}",
    ),
)
_COMMANDS: Final = tuple((hints, re.compile(pattern)) for hints, pattern in _OPTIONS)
_HEADER: Final = re.compile(
    r"(?:-H|--header)[ =]{0,3}(?:\\{0,7}[\"'])([\w-]{1,60}):[ \t]{0,9}([^\"'\\\r\n]{1,4000})"
)
_PAIR: Final = re.compile(
    r"\b(?:user(?:name)?|login)\b[ \t]{0,4}[:=]?[ \t]{0,4}[^\s\"'`\\]{1,60}[\s,;/|]{1,5}(?:and )?"
    r"pass\b[ \t]{0,4}([:=]?)[ \t]{0,4}([^\s\"'`\\,;]{4,200})",
    re.IGNORECASE,
)
_HINT: Final = re.compile(
    r"mysql|mariadb|curl|wget|sshpass|redis-cli|\slogin\s|(?:-h|--header)[ =]{0,3}\\{0,7}[\"']|\bpass\b"
)


def may_have_passwords(lowered: str) -> bool:
    """Whether a text, in lower case, has anything in it that these rules start from."""
    return _HINT.search(lowered) is not None


def passwords(text: str, lowered: str) -> Iterator[tuple[int, int, str]]:
    """Yield where a text holds a password because of the command that it is in: start, end, and what it is."""
    if not may_have_passwords(lowered):
        return
    for hints, pattern in _COMMANDS:
        if any(hint in lowered for hint in hints):
            for match in pattern.finditer(text):
                if not is_placeholder(match[1]):
                    yield *match.span(1), "a password of a command"
    if "-h" in lowered:
        for match in _HEADER.finditer(text):
            if is_secret_header(match[1]) and not is_placeholder(match[2]):
                yield *match.span(2), f"a header named {match[1]!r}"
    if "pass" in lowered:
        for match in _PAIR.finditer(text):
            mixed = any(map(str.isdigit, match[2])) and any(map(str.isalpha, match[2]))
            if mixed and not is_placeholder(match[2]):
                yield *match.span(2), "a password beside a login"
