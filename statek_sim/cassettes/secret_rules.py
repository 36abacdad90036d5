"""The names and patterns of secrets: the rules of `secret_rules.toml`, and those of one team.

The file is read on first use. A team adds its own names and patterns.
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
"""Minimum characters of a key."""
_ROW: Final = b"x" * _LEAST
_SIGNS: Final = bytes(
    ord("x") if chr(code) in f"{ascii_letters}{digits}_+/=.~$-" else ord(" ") for code in range(256)
)
"""The class of each byte in a row: a character that a key may have, or a blank."""
_OFTEN_SEEN: Final = 1000
"""Maximum characters of a text that is cached."""
_LINES: Final = "-----BEGIN "
"""Start of a key in lines."""
_LARGE: Final = 4000
"""Minimum characters of a row that may be an image."""
_SIDE: Final = 80
"""Characters of Base64 directly beside a match that make it part of a blob."""

_BROKEN_AFTER: Final = range(60, 77)
"""Line lengths of Base64: 64 in PEM, 76 in MIME."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The key pattern of one vendor. Each key starts with one of `starts`; `digit` excludes plain words."""

    kind: str
    starts: tuple[str, ...]
    pattern: re.Pattern[str]
    digit: bool = False


@cache
def _lists() -> dict[str, Any]:
    return tomllib.loads((resources.files("statek_sim.cassettes") / "secret_rules.toml").read_text("utf-8"))


@cache
def _names(kind: str) -> tuple[str, ...]:
    return tuple(_lists()["names"][kind])


@lru_cache(maxsize=4096)
def _ends(name: str, kind: str) -> bool:
    """Return whether a name ends like those of this kind, or like general names of secrets."""
    plain = folded(name.rstrip("]").rpartition("[")[2].rpartition(".")[2]).rstrip("0123456789")
    if plain.endswith(_names("exceptions")):
        return False
    if plain.endswith(_names("everywhere")):
        return True
    return plain.endswith(_names(kind)) if kind == "headers" else plain in _names(kind)


def is_secret_header(name: str) -> bool:
    """Return whether a header of this name holds a secret."""
    return _ends(name, "headers")


def is_secret_parameter(name: str) -> bool:
    """Return whether a query parameter or form field of this name holds a secret.

    For `user[password]` the last part counts.
    """
    return _ends(name, "parameters")


def is_secret_member(name: str) -> bool:
    """Return whether a JSON member of this name holds a secret."""
    return _ends(name, "everywhere")


def is_secret_variable(name: str) -> bool:
    """Return whether an environment variable or a setting of this name holds a secret."""
    return is_secret_member(name) and folded(name) not in _names("of_folders")


@lru_cache(maxsize=4096)
def is_changing_header(name: str, kind: str) -> bool:
    """Return whether a header "of_requests" or "of_responses" changes from call to call, and is not recorded."""
    lists = _lists()["changing"]
    return name.lower() in lists[kind] or name.lower().startswith(tuple(lists["starts"]))


@cache
def _opaque() -> frozenset[str]:
    return frozenset(map(folded, _lists()["opaque"]["members"]))


@lru_cache(maxsize=4096)
def is_opaque(name: str) -> bool:
    """Return whether a JSON member of this name is never redacted: signatures, encrypted texts, log probabilities."""
    return folded(name) in _opaque()


@cache
def beside_token() -> frozenset[str]:
    """Return the members next to which `token` is a piece of a text."""
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
    """Yield the spans of possible keys or random values: characters without blanks; prose has few long ones."""
    signs = text.encode("latin-1", "replace").translate(_SIGNS)
    at = signs.find(_ROW)
    while at >= 0:
        end = signs.find(b" ", at)
        end = len(signs) if end < 0 else end
        yield at, end
        at = signs.find(_ROW, end)


def shaped(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield text with the pattern of a key: start, end, and the vendor."""
    if len(text) < _LEAST:
        return
    # A stream repeats the same id in each event, and no key is as long as an image.
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
    """Return the patterns that start with one of these characters. Addresses and model names recur in most texts."""
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
    """Return whether a key has a digit and is not just words and numbers with hyphens, such as the name of a branch."""
    return any(map(str.isdigit, key)) and not _words().fullmatch(key)


def _is_in_blob(text: str, start: int, end: int) -> bool:
    """Return whether a match is part of a longer run of Base64, such as an image."""
    before = start >= _SIDE and _base64().fullmatch(text, start - _SIDE, start)
    return bool(before or _base64().match(text, end)) or _is_in_lines(text, start, end)


def _is_in_lines(text: str, start: int, end: int) -> bool:
    """Return whether a match is in a line of Base64.

    It is if a neighbouring line has the same length, and it has characters that a key of letters lacks.
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
"""The group of a pattern that is replaced; without such a group, the whole match."""

_TYPE: Final = re.compile(r"[\w.+*-]+/[\w.+*-]+")
_NAME: Final = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True)
class OwnSecrets:
    """Names of headers, parameters and members, folded, and patterns of texts. Created by `of`, which checks them.

    `undecoded` are the media types of non-text bodies that may be recorded anyway.
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
        """Return the rules.

        Raises `BadInput` for an invalid name or expression, and for an expression that matches anything.
        """
        return cls(
            frozenset(map(_checked_name, names)),
            tuple(map(_compiled, sorted(set(patterns)))),
            tuple(map(_checked_type, undecoded)),
        )

    def key(self) -> list[list[str]]:
        """Return a JSON value that distinguishes these rules from others."""
        return [sorted(self.names), [pattern.pattern for pattern in self.patterns]]

    def is_name(self, name: str) -> bool:
        """Return whether something of this name is a secret."""
        return bool(self.names) and folded(name) in self.names

    def found(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield matches of the patterns in a text: start, end, and the kind."""
        for pattern in self.patterns:
            group = GROUP if GROUP in pattern.groupindex else 0
            for match in pattern.finditer(text):
                if match[group]:
                    yield *match.span(group), f"a match of your own pattern ({pattern.pattern})"


NO_OWN: Final = OwnSecrets()


def folded(name: str) -> str:
    """Return a name normalized for comparison: without hyphens, underscores, blanks and case."""
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
        raise BadInput(f"secret pattern {text!r}: not a regular expression: {error}") from None
    if pattern.search("") is not None:
        raise BadInput(
            f"secret pattern {text!r}: it matches the empty string; expected one such as acme-[0-9a-f]{{32}}"
        )
    return pattern
