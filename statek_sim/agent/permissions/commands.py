"""Which simple commands a line of a shell is made of, and whether a rule covers them.

Such rules are a comfort for people, not a wall: what a command does is known when it has run. The wall is the container
that it runs in.
"""

from __future__ import annotations

import re
import shlex
from functools import lru_cache
from typing import Final

from statek_sim.agent.permissions.paths import Unclear

_SEPARATORS: Final = frozenset((";", "&", "&&", "|", "||", "|&", ";;", "\n"))
_OPAQUE: Final = re.compile(r"[`]|\$[({]|<\(|>\(|<<|\$'")
"""What a command can hide another one in."""
_ASSIGNMENT: Final = re.compile(r"\w+(?:\[|\+?=)")
_QUOTED: Final = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_EXPANDED: Final = re.compile(r"\{[^\s{}]*(?:,|\.\.)[^\s{}]*\}")
"""Braces that become several words."""
_COMMENT: Final = re.compile(r"(?:^|[\s;&|()<>])#")
_GROUPS: Final = frozenset("{}!")
_PUNCTUATION: Final = "();<>|&"


def simple_commands(line: object) -> tuple[str, ...]:
    """Return the simple commands of a line, their words set apart by one blank; raises `Unclear`.

    A line with substitutions, here-documents, groups, control flow, assignments, comments or redirections is unclear:
    rules for single commands cannot say what it does.
    """
    if not isinstance(line, str) or not line.strip():
        raise Unclear("it is no command")
    if "\0" in line or _OPAQUE.search(line):
        raise Unclear("it has a command inside another one")
    if _EXPANDED.search(_QUOTED.sub("_", line)):
        raise Unclear("it has braces that become several words")
    if "\\\n" in line or _COMMENT.search(_QUOTED.sub("_", line)):
        raise Unclear("it has a comment in it, or goes on in the next line")
    lexer = shlex.shlex(line.replace("\n", " ; "), posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError as error:
        raise Unclear(f"it is no command: {error}") from None
    found: list[list[str]] = [[]]
    for word in words:
        if word in _SEPARATORS:
            found.append([])
        elif word and not set(word) - set(_PUNCTUATION):
            raise Unclear("it redirects" if set(word) & set("<>") else f"it has {word!r} in it")
        elif word in _GROUPS or word in ("if", "for", "while", "until", "case", "function"):
            raise Unclear(f"it has {word!r} in it")
        else:
            found[-1].append(word)
    commands = [words for words in found if words]
    if not commands or any(_ASSIGNMENT.match(words[0]) for words in commands):
        raise Unclear("it sets variables" if commands else "it is no command")
    return tuple(" ".join(words) for words in commands)


def covers_command(pattern: str, command: str) -> bool:
    """Return whether a rule covers a simple command: `*` is any text, and `git log *` is `git log` as well."""
    return _expression(pattern).fullmatch(command) is not None


@lru_cache(maxsize=1024)
def _expression(pattern: str) -> re.Pattern[str]:
    if pattern.endswith(" *"):
        return re.compile(_text(pattern[:-2]) + r"(?: .*)?", re.DOTALL)
    return re.compile(_text(pattern), re.DOTALL)


def _text(pattern: str) -> str:
    return ".*".join(map(re.escape, pattern.split("*")))
