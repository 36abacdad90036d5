"""Where a path leads, and whether a pattern covers it: pure, told by `Files` what there is on the disk."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, Protocol

LINKS: Final = 40
"""Links on the way to one file, as in the kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is at a path: `target` of a link, `links` of a file (how many names it has)."""

    kind: Literal["file", "folder", "link", "other"]
    target: str = ""
    links: int = 1


class Files(Protocol):
    """Knows what is at a path, without following it when it is a link."""

    def look(self, path: str) -> Entry | None:
        """Return what is at an absolute path, None when nothing is."""


class ScriptedFiles:
    """Files as data; folders on the way to them are there too."""

    def __init__(self, entries: dict[str, Entry]) -> None:
        self._entries = dict(entries)
        for path in entries:
            for parent in _parents(path):
                self._entries.setdefault(parent, Entry(kind="folder"))

    def look(self, path: str) -> Entry | None:
        """Return what is at a path."""
        return self._entries.get(path)


def _parents(path: str) -> list[str]:
    parts = path.strip("/").split("/")
    return ["/", *("/" + "/".join(parts[:count]) for count in range(1, len(parts)))]


class Unclear(Exception):
    """Where a path leads cannot be said. The message says why."""


def resolved(path: object, folder: str, files: Files, *, visible: bool = True) -> str:
    """Return the absolute path that `path` leads to from a folder, without links; raises `Unclear`.

    What is not there is part of the answer: a file may be made there. `..` after a link leaves what it points to.
    `visible`: letters that nobody sees are refused.
    """
    if not isinstance(path, str):
        raise Unclear(f"it is {'missing' if path is None else f'of type {type(path).__name__}'}, no path")
    if not path:
        raise Unclear("it is empty")
    if "\0" in path:
        raise Unclear("it has a NUL in it")
    if visible and any(unicodedata.category(letter) in ("Cc", "Cf", "Cs") for letter in path):
        raise Unclear("it has letters in it that nobody sees")
    left = _split(path if path.startswith("/") else f"{folder}/{path}")
    done: list[str] = []
    followed = 0
    while left:
        part = left.pop()
        if part == "..":
            del done[-1:]
            continue
        here = "/" + "/".join([*done, part])
        found = files.look(here)
        if found is None or found.kind != "link":
            done.append(part)
            continue
        followed += 1
        if followed > LINKS:
            raise Unclear(f"more than {LINKS} links are on its way")
        if found.target.startswith("/"):
            done = []
        left += _split(found.target)
    return "/" + "/".join(done)


def _split(path: str) -> list[str]:
    """Return the parts of a path, the first one last."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def folded(text: str) -> str:
    """Return a text as it is compared where a difference must not matter: of case, of width, of what nobody sees."""
    seen = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFKC", seen).casefold()


def covers(pattern: str, path: str, folder: str, *, loosely: bool = False) -> bool:
    """Return whether a pattern covers an absolute path; one that is relative starts at `folder`.

    `*` is any text within a name, `**` any number of names, so that `src/**` is `src` and everything in it. `loosely`:
    case and look-alikes make no difference, which is for what is refused.
    """
    whole = pattern if pattern.startswith("/") else f"{folder.rstrip('/')}/{pattern}"
    if loosely:
        whole, path = folded(whole), folded(path)
    return _expression(whole).fullmatch(path) is not None


def lexical(path: str, folder: str) -> str:
    """Return the absolute path that `path` spells from a folder, whatever is a link on the way."""
    return "/" + posixpath.normpath(f"{folder}/{path}" if not path.startswith("/") else path).lstrip("/")


def led(pattern: str, folder: str, files: Files) -> str:
    """Return a pattern, absolute, whose names before the first `*` are followed where they are links."""
    whole = pattern if pattern.startswith("/") else f"{folder.rstrip('/')}/{pattern}"
    parts = whole.split("/")
    literal = next((at for at, part in enumerate(parts) if "*" in part), len(parts))
    try:
        start = resolved("/".join(parts[:literal]) or "/", "/", files, visible=False)
    except Unclear:
        return whole
    return "/".join([start.rstrip("/"), *parts[literal:]]) or "/"


@lru_cache(maxsize=1024)
def _expression(pattern: str) -> re.Pattern[str]:
    """Return a pattern of paths as an expression."""
    made = ""
    for part in pattern.split("/"):
        if part in ("", "."):
            continue
        made += "(?:/[^/]+)*" if part == "**" else "/" + _name(part)
    return re.compile(made or "/")


def _name(part: str) -> str:
    return "[^/]*".join(map(re.escape, part.split("*")))


def protected_name(path: str, names: tuple[str, ...]) -> str | None:
    """Return the protected name that is part of a path, None when there is none."""
    parts = {folded(part) for part in path.split("/")}
    return next((name for name in names if folded(name) in parts), None)
