"""The names and key patterns of secrets, from `secret_patterns.toml` and from the user.

The file is read on first use.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from string import ascii_letters, digits
from typing import Any, Final, Self

from statek_sim.errors import BadInput

_LEAST: Final = 15
"""Minimum length of a key."""
_ROW: Final = b"x" * _LEAST
_SIGNS: Final = bytes(
    ord("x") if chr(code) in f"{ascii_letters}{digits}_+/=.~$-" else ord(" ") for code in range(256)
)
"""Translates each byte: `x` for characters that a key may contain, a space for all others."""
_OFTEN_SEEN: Final = 1000
"""Maximum length of a string whose possible patterns are cached."""
_LINES: Final = "-----BEGIN "
"""Start of a multi-line key, such as a PEM key."""
_LARGE: Final = 4000
"""Minimum length of a Base64 run that is treated as an image."""
_SIDE: Final = 80
"""Base64 characters next to a match that make it part of a longer run."""

_BROKEN_AFTER: Final = range(60, 77)
"""Common line lengths of Base64, such as 64 in PEM and 76 in MIME."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One vendor's key pattern; each key starts with one of `starts` and, if `digit` is set, contains a digit."""

    kind: str
    starts: tuple[str, ...]
    pattern: re.Pattern[str]
    digit: bool = False


@cache
def _lists() -> dict[str, Any]:
    return tomllib.loads(
        (resources.files("statek_sim.cassettes") / "secret_patterns.toml").read_text("utf-8")
    )


@cache
def _names(kind: str) -> tuple[str, ...]:
    return tuple(_lists()["names"][kind])


@lru_cache(maxsize=4096)
def _ends(name: str, kind: str) -> bool:
    """Return whether a name ends like a generic secret name, or is a secret name of this kind."""
    plain = folded(name.rstrip("]").rpartition("[")[2].rpartition(".")[2]).rstrip("0123456789")
    if plain.endswith(_names("exceptions")):
        return False
    if plain.endswith(_names("everywhere")):
        return True
    return plain.endswith(_names(kind)) if kind == "headers" else plain in _names(kind)


def is_secret_header(name: str) -> bool:
    """Return whether a header with this name contains a secret."""
    return _ends(name, "headers")


def is_secret_parameter(name: str) -> bool:
    """Return whether a query parameter or form field with this name, such as `user[password]`, contains a secret."""
    return _ends(name, "parameters")


def is_secret_member(name: str) -> bool:
    """Return whether a JSON key with this name contains a secret."""
    return _ends(name, "everywhere")


def is_secret_variable(name: str) -> bool:
    """Return whether an environment variable or setting with this name contains a secret."""
    return is_secret_member(name) and folded(name) not in _names("of_folders")


@lru_cache(maxsize=4096)
def is_changing_header(name: str, kind: str) -> bool:
    """Return whether a header changes from call to call and is therefore not recorded.

    `kind` is "of_requests" or "of_responses".
    """
    lists = _lists()["changing"]
    return name.lower() in lists[kind] or name.lower().startswith(tuple(lists["starts"]))


@cache
def _opaque() -> frozenset[str]:
    return frozenset(map(folded, _lists()["opaque"]["members"]))


@lru_cache(maxsize=4096)
def is_opaque(name: str) -> bool:
    """Return whether a JSON member with this name is never redacted, such as a signature or log probabilities."""
    return folded(name) in _opaque()


@cache
def beside_token() -> frozenset[str]:
    """Return the JSON members that mark a `token` member next to them as a piece of text, not a secret."""
    return frozenset(_names("beside_token"))


@cache
def shapes() -> tuple[Shape, ...]:
    """Return the published key patterns."""
    return tuple(
        Shape(
            each["kind"],
            tuple(each["starts"]),
            # Do not match inside a word; an escape before the match (`\n`, `\u0020`, `%20`) does not count as one.
            # Patterns never backtrack, so each position is read once.
            re.compile(
                r"(?:(?<![\w-])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2}))"
                rf"(?:{'|'.join(map(re.escape, each['starts']))})(?>{each['rest']})(?![A-Za-z0-9])",
                re.ASCII,
            ),
            each.get("digit", False),
        )
        for each in _lists()["shapes"]["known"]
    )


@cache
def _starts() -> tuple[tuple[str, Shape], ...]:
    return tuple((start, shape) for shape in shapes() for start in shape.starts)


def rows(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each run of 15 or more characters allowed in keys; such runs are rare in prose."""
    signs = text.encode("latin-1", "replace").translate(_SIGNS)
    at = signs.find(_ROW)
    while at >= 0:
        end = signs.find(b" ", at)
        end = len(signs) if end < 0 else end
        yield at, end
        at = signs.find(_ROW, end)


def shaped(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and vendor of each key pattern match."""
    if len(text) < _LEAST:
        return
    # Check each run once, because a stream repeats the same id in each event, and skip images.
    each = dict.fromkeys([text[start:end] for start, end in rows(text)])
    found = "\n".join([row for row in each if len(row) < _LARGE or not _blob().fullmatch(row)])
    possible = _possible(found) if len(found) <= _OFTEN_SEEN else _possible.__wrapped__(found)
    for shape in (*possible, *(_in_lines() if _LINES in text else ())):
        for match in shape.pattern.finditer(text):
            if (shape.digit and not _is_drawn(match[0])) or _is_in_blob(text, *match.span()):
                continue
            yield match.start(), match.end(), shape.kind


@lru_cache(maxsize=4096)
def _possible(signs: str) -> tuple[Shape, ...]:
    """Return the patterns whose start occurs in a string; cached, because URLs and model names recur."""
    return tuple(dict.fromkeys([shape for start, shape in _starts() if start in signs])) if signs else ()


@cache
def _in_lines() -> tuple[Shape, ...]:
    return tuple(shape for shape in shapes() if _LINES in shape.starts)


@cache
def _words() -> re.Pattern[str]:
    word = r"(?:[A-Z]?[a-z]{1,15}|[A-Z]{1,15}|v?\d{1,8})"
    return re.compile(rf"{word}(?:[-_.]{{1,2}}{word})*")


@cache
def _blob() -> re.Pattern[str]:
    return re.compile(r"[A-Za-z0-9+/]*+={0,2}")


@cache
def _between_lines() -> re.Pattern[str]:
    return re.compile(r"(?:\\r|\r)?(?:\\n|\n)|[^A-Za-z0-9+/=\\]")


@cache
def _base64() -> re.Pattern[str]:
    return re.compile(rf"[A-Za-z0-9+/]{{{_SIDE}}}")


def _is_drawn(key: str) -> bool:
    """Return whether a key contains a digit and more than just words and numbers, unlike a branch name."""
    return any(map(str.isdigit, key)) and not _words().fullmatch(key)


def _is_in_blob(text: str, start: int, end: int) -> bool:
    """Return whether a match is part of a longer run of Base64, such as an image."""
    before = start >= _SIDE and _base64().fullmatch(text, start - _SIDE, start)
    return bool(before or _base64().match(text, end)) or _is_in_lines(text, start, end)


def _is_in_lines(text: str, start: int, end: int) -> bool:
    """Return whether a match is in a line of Base64 text.

    This is assumed if the line before or after has the same length and is Base64 with `+`, `/` or `=`.
    """
    *above, left = _between_lines().split(text[max(0, start - 2 * _SIDE) : start])
    right, *below = _between_lines().split(text[end : end + 2 * _SIDE])
    line = f"{left}{text[start:end]}{right}"
    if len(line) not in _BROKEN_AFTER or not _blob().fullmatch(line):
        return False
    beside = (*above[-1:], *below[:1])
    return any(
        len(each) == len(line) and not each.isalnum() and _blob().fullmatch(each) is not None
        for each in beside
    )


GROUP: Final = "secret"
"""The group in a user's pattern to redact; without this group, the whole match is redacted."""

_TYPE: Final = re.compile(r"[\w.+*-]+/[\w.+*-]+")
_NAME: Final = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True)
class OwnSecrets:
    """A user's own names and patterns of secrets, created and checked by `of`.

    `names` are the folded names of headers, parameters and JSON members. `undecoded` lists media types of non-text
    bodies that may be recorded even though they cannot be checked for secrets.
    """

    names: frozenset[str] = frozenset()
    patterns: tuple[re.Pattern[str], ...] = ()
    undecoded: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        names: Iterable[str] = (),
        patterns: Iterable[str] = (),
        *,
        undecoded: Iterable[str] = (),
    ) -> Self:
        """Return the rules for these names, regular expressions and media types.

        Raises `BadInput` for an invalid name or expression, and for an expression that matches anything.
        """
        return cls(
            frozenset(map(_checked_name, names)),
            tuple(map(_compiled, sorted(set(patterns)))),
            tuple(map(_checked_type, undecoded)),
        )

    def key(self) -> list[list[str]]:
        """Return a JSON value that is equal for equal names and patterns."""
        return [sorted(self.names), [pattern.pattern for pattern in self.patterns]]

    def is_name(self, name: str) -> bool:
        """Return whether a header, parameter or JSON member with this name is a secret."""
        return bool(self.names) and folded(name) in self.names

    def found(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield the start, end and kind of each match of the user's patterns in a string."""
        for pattern in self.patterns:
            group = GROUP if GROUP in pattern.groupindex else 0
            for match in pattern.finditer(text):
                if match[group]:
                    yield *match.span(group), f"a match for your own pattern ({pattern.pattern})"


NO_OWN: Final = OwnSecrets()


def folded(name: str) -> str:
    """Return a name in lower case without hyphens, underscores and spaces, for comparison."""
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name) or not folded(name):
        raise BadInput(
            f"secret name {name!r}: expected the name of a header, parameter or field, such as x-acme-pin"
        )
    return folded(name)


def _checked_type(name: str) -> str:
    if not _TYPE.fullmatch(name):
        raise BadInput(f"undecoded body {name!r}: expected a media type such as image/png or audio/*")
    return name


def _compiled(text: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise BadInput(f"secret pattern {text!r}: not a valid regular expression: {error}") from None
    if pattern.search("") is not None:
        raise BadInput(
            f"secret pattern {text!r}: matches the empty string; expected a pattern such as acme-[0-9a-f]{{32}}"
        )
    return pattern
