"""Splits a shell line into simple commands, and decides whether a rule covers them and what else they may run.

These rules are a convenience, not a security boundary: what a command does is known only after it has run. The boundary
is its container. Any program may run its arguments (`nice`, `env`, `xargs`, or a local script), so a list of such
programs is never complete. Rules that refuse or ask are therefore matched at every word, unless the program is known
not to run its arguments.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from statek_sim.agent.permissions.paths import Unclear

_SEPARATORS: Final = frozenset((";", "&", "&&", "|", "||", "|&", ";;", "\n"))
_OPAQUE: Final = re.compile(r"[`]|\$[({]|<\(|>\(|<<|\$'")
"""Syntax that can hide a command inside another."""
_ASSIGNMENT: Final = re.compile(r"\w+(?:\[|\+?=)")
_QUOTED: Final = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_EXPANDED: Final = re.compile(r"\{[^\s{}]*(?:,|\.\.)[^\s{}]*\}")
"""Braces that expand to several words."""
_COMMENT: Final = re.compile(r"(?:^|[\s;&|()<>])#")
_GROUPS: Final = frozenset("{}!")
_PUNCTUATION: Final = "();<>|&"


def simple_commands(line: object) -> tuple[str, ...]:
    """Return a line's simple commands, with their words separated by single spaces; raises `Unclear`.

    A line with substitutions, here-documents, groups, control flow, assignments, comments or redirections is unclear,
    because rules for single commands cannot tell what it does.
    """
    if not isinstance(line, str) or not line.strip():
        raise Unclear("not a command")
    if "\0" in line or _OPAQUE.search(line):
        raise Unclear("contains a command inside another one")
    if _EXPANDED.search(_QUOTED.sub("_", line)):
        raise Unclear("contains braces that expand to several words")
    if "\\\n" in line or _COMMENT.search(_QUOTED.sub("_", line)):
        raise Unclear("contains a comment, or continues on the next line")
    lexer = shlex.shlex(line.replace("\n", " ; "), posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError as error:
        raise Unclear(f"not a command: {error}") from None
    found: list[list[str]] = [[]]
    for word in words:
        if word in _SEPARATORS:
            found.append([])
        elif word and not set(word) - set(_PUNCTUATION):
            raise Unclear("contains a redirection" if set(word) & set("<>") else f"contains {word!r}")
        elif word in _GROUPS or word in ("if", "for", "while", "until", "case", "function"):
            raise Unclear(f"contains {word!r}")
        else:
            found[-1].append(word)
    commands = [words for words in found if words]
    if not commands or any(_ASSIGNMENT.match(words[0]) for words in commands):
        raise Unclear("sets variables" if commands else "not a command")
    return tuple(" ".join(words) for words in commands)


def covers_command(pattern: str, command: str) -> bool:
    """Return whether a rule covers a simple command: `*` matches any text, and `git log *` also covers `git log`."""
    return _expression(pattern).fullmatch(command) is not None


@lru_cache(maxsize=1024)
def _expression(pattern: str) -> re.Pattern[str]:
    if pattern.endswith(" *"):
        return re.compile(_text(pattern[:-2]) + r"(?: .*)?", re.DOTALL)
    return re.compile(_text(pattern), re.DOTALL)


def _text(pattern: str) -> str:
    return ".*".join(map(re.escape, pattern.split("*")))


_BREAKS: Final = re.compile(r"""[\s;&|()<>{}`$!'",=:@]+""")
"""Characters after which a command may begin, for lines that cannot be parsed."""
_ENDS: Final = re.compile(r"[\n;&|()<>{}`$]+")

_READERS: Final = frozenset(
    """
    echo printf true false : cd pwd ls cat tac head wc test [ basename dirname realpath readlink date sleep seq cut tr
    uniq comm cmp diff stat du df mkdir rmdir touch grep egrep fgrep whoami id hostname uname sha256sum sha1sum md5sum
    od nl rev fold paste join which type whereis file
    """.split()  # noqa: SIM905  # sixty words
)
"""Programs that never run their arguments."""
_READING: Final = frozenset(
    f"{program} {word}"
    for program, words in {
        "git": "status add rm mv commit branch tag checkout switch restore show log diff blame",
        "command": "-v -V",
    }.items()
    for word in words.split()
)
"""Programs that never run their arguments if the first argument is one of these."""

_SHELLS: Final = frozenset("sh bash dash ash zsh ksh mksh rbash csh tcsh fish busybox su pwsh".split())  # noqa: SIM905  # as above
_BUILT_IN: Final = frozenset(("eval", "source", ".", "alias"))
"""Shell built-ins that run their arguments or a file."""
_INTERPRETERS: Final = frozenset(
    "python perl ruby node nodejs bun deno php lua tclsh expect osascript irb".split()  # noqa: SIM905  # as above
)
_INLINE: Final = re.compile(
    r"-(?:-?(?:c|e|eval|exec|command|print|r|p|l?c|ne|pe|EncodedCommand)\b|$)", re.IGNORECASE
)
_MADE: Final = re.compile(r"[$`]")
"""Syntax that the shell replaces before running the command."""
_SUBSTITUTED: Final = re.compile(r"`|\$[({'\"]|[<>]\(|\{[^\s{}]*,")
_DECIDES: Final = re.compile(
    r"(?:^|[\s;&|({])(PATH|LD_\w+|DYLD_\w+|BASH_ENV|ENV|IFS|SHELL|PROMPT_COMMAND|\w*PAGER|\w*EDITOR|(?:GIT|PYTHON|PERL|RUBY|"
    r"NODE)_?\w+)\+?="
)
"""Variables that can make a program run a different program."""
_GLOB: Final = re.compile(r"[*?\[]")


def runs_nothing(command: str) -> bool:
    """Return whether a simple command never runs its arguments as another command."""
    first, _, rest = command.partition(" ")
    return first in _READERS or f"{first} {rest.split(' ', 1)[0]}" in _READING


def unreadable(command: str) -> str | None:
    """Return why a simple command cannot be analysed, or None if it can."""
    if runs_nothing(command):
        return None
    words = command.split()
    for at, word in enumerate(words):
        program, rest = _program(word), words[at + 1 :]
        if (program in _SHELLS or (at == 0 and program in _BUILT_IN)) and not _scripted(program, rest):
            return f"{word!r} runs what cannot be seen"
        if re.sub(r"[\d.]+$", "", program) in _INTERPRETERS and (not rest or _INLINE.match(rest[0])):
            return f"{word!r} runs code in another language"
    made = next((word for word in words if _MADE.search(word)), None)
    if made is not None:
        return f"the shell replaces {made!r} before it runs the command"
    return f"{words[0]!r} may be any program" if words and _GLOB.search(words[0]) else None


def unreadable_line(line: str) -> str | None:
    """Return why an unparsable line cannot be analysed, or None if it can."""
    made = _SUBSTITUTED.search(line)
    if made is not None:
        return f"{made[0]!r} inserts unknown text"
    found = _DECIDES.search(line)
    if found is not None:
        return f"{found[1]!r} decides which programs are run"
    return next((why for part in _ENDS.split(line) if (why := unreadable(part.strip())) is not None), None)


def _scripted(program: str, rest: list[str]) -> bool:
    """Return whether a shell receives its commands as an argument, so that rules can check their words."""
    if program in ("eval", "alias"):
        return bool(rest)
    return any(
        re.fullmatch(r"-\w*c|-?-command", word, re.IGNORECASE) and at + 1 < len(rest)
        for at, word in enumerate(rest)
    )


def _program(word: str) -> str:
    return word.rpartition("/")[2]


def beginnings(line: str) -> Iterator[str]:
    """Yield every command that a line may contain: starting at each word, with and without quotes and paths."""
    bare = re.sub(r"""\\\n|[\\'"]""", "", line)
    for way in dict.fromkeys((line, bare, _BREAKS.sub(" ", bare), *_ENDS.split(bare))):
        words = way.split()
        for at, word in enumerate(words):
            for begin in dict.fromkeys((word, _program(word))):
                yield " ".join((begin, *words[at + 1 :]))
