"""A problem in a file, with its position.

The process that runs the real package imports this module, and has no YAML library.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from statek_sim.did_you_mean import suggestion

MAX_PROBLEMS: Final = 100
"""Maximum number of problems reported for one file."""

Keypath = tuple[str | int, ...]
"""Keys and list indexes that lead from the top of a value to a part of it, like `("jobs", "main", "locals")`."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem at `keypath` in a value; its line in a file is not known yet."""

    keypath: Keypath
    message: str


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A problem in a file. `line` and `column` count from 1, and are 0 for a problem with the whole file."""

    path: Path
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        """Return `path:line: message`, or `path: message` for a problem with the whole file."""
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{place}: {self.message}"


def dotted(keypath: Keypath) -> str:
    """Return a key path in dotted notation, like `script.worker[2].usage`."""
    text = ""
    for part in keypath:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def known_name(
    at: Keypath, name: str, options: Iterable[str], noun: str, *, made: re.Pattern[str] | None = None
) -> Iterator[Finding]:
    """Yield a finding unless `name` is one of `options` or matches `made`, a pattern of names created during a run."""
    known = list(options)
    if name in known or (made is not None and made.fullmatch(name)):
        return
    hint = suggestion(name, known) or (f" Known: {', '.join(known)}" if known else " None are defined")
    yield Finding(at, f"{dotted(at)}: unknown {noun} {name!r}.{hint}")


def shown(value: object, *, mapping: str = "a mapping") -> str:
    """Return a value for an error message: shortened, and with its type if the text alone is ambiguous."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case dict():
            return mapping
        case list() | tuple():
            return "a list" if value else "an empty list"
        case str() if len(value) > 60:
            return f"{value[:57]!r}..."
        case int() if abs(value) >= 10**60:
            return "a very large number"
        case _:
            return repr(value)
