"""What is secret by its name and by its shape: the rules of `secret_rules.toml`, and those of one team.

The file is read when it is first used. A team adds names and shapes of its own.
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
"""Characters of the shortest key."""
_ROW: Final = b"x" * _LEAST
_SIGNS: Final = bytes(
    ord("x") if chr(code) in f"{ascii_letters}{digits}_+/=.~$-" else ord(" ") for code in range(256)
)
"""What each byte is in a row: a sign that a key may have, or a blank."""
_OFTEN_SEEN: Final = 1000
"""Characters of a text that is kept to know it again."""
_LINES: Final = "-----BEGIN "
"""How a key in lines begins."""
_LARGE: Final = 4000
"""Characters of a row from which on it may be an image."""
_SIDE: Final = 80
"""Characters of Base64 directly before or behind a match that make it a part of a blob."""

_BROKEN_AFTER: Final = range(60, 77)
"""Characters after which Base64 is broken into lines: 64 in PEM, 76 in MIME."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Credentials of one maker. Each begins with one of `starts`; `digit` refuses what could be words."""

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
    """Whether a name ends as those of this kind, or as those that hold secrets everywhere, do."""
    plain = folded(name.rstrip("]").rpartition("[")[2].rpartition(".")[2]).rstrip("0123456789")
    if plain.endswith(_names("exceptions")):
        return False
    if plain.endswith(_names("everywhere")):
        return True
    return plain.endswith(_names(kind)) if kind == "headers" else plain in _names(kind)


def is_secret_header(name: str) -> bool:
    """Whether a header of this name holds a secret."""
    return _ends(name, "headers")


def is_secret_parameter(name: str) -> bool:
    """Whether a query parameter or form field of this name holds a secret; of `user[password]` the last part counts."""
    return _ends(name, "parameters")


def is_secret_member(name: str) -> bool:
    """Whether a JSON member of this name holds a secret."""
    return _ends(name, "everywhere")


def is_secret_variable(name: str) -> bool:
    """Whether an environment variable or a setting of this name holds a secret."""
    return is_secret_member(name) and folded(name) not in _names("of_folders")


@lru_cache(maxsize=4096)
def is_changing_header(name: str, kind: str) -> bool:
    """Whether a header "of_requests" or "of_responses" changes from call to call, and is not recorded."""
    lists = _lists()["changing"]
    return name.lower() in lists[kind] or name.lower().startswith(tuple(lists["starts"]))


@cache
def _opaque() -> frozenset[str]:
    return frozenset(map(folded, _lists()["opaque"]["members"]))


@lru_cache(maxsize=4096)
def is_opaque(name: str) -> bool:
    """Whether nothing is replaced in a JSON member of this name: signatures, encrypted texts, log probabilities."""
    return folded(name) in _opaque()


@cache
def beside_token() -> frozenset[str]:
    """Return the members beside which `token` is a piece of a text."""
    return frozenset(_names("beside_token"))


@cache
def shapes() -> tuple[Shape, ...]:
    """Return the published shapes of keys."""
    return tuple(
        Shape(
            each["kind"],
            tuple(each["starts"]),
            # Not within a word; an escape that ends there (`\n`, `\u0020`, `%20`) is no word. No shape gives back what
            # it took, so that each place is read once.
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
    """Yield where a key or a random value can stand: signs without blanks, of which prose has few long rows."""
    signs = text.encode("latin-1", "replace").translate(_SIGNS)
    at = signs.find(_ROW)
    while at >= 0:
        end = signs.find(b" ", at)
        end = len(signs) if end < 0 else end
        yield at, end
        at = signs.find(_ROW, end)


def shaped(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where a text holds what has the shape of a key: start, end, and whose key it is."""
    if len(text) < _LEAST:
        return
    # A stream has the same id in each event, and no key is as long as an image.
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
    """Return the shapes that some of these signs begin. Addresses and names of models are the same in most texts."""
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
    """Whether a key has a digit and is more than words and numbers with hyphens: the name of a package or branch."""
    return any(map(str.isdigit, key)) and not _words().fullmatch(key)


def _is_in_blob(text: str, start: int, end: int) -> bool:
    """Whether a match is a part of a longer row of Base64, such as an image."""
    before = start >= _SIDE and _base64().fullmatch(text, start - _SIDE, start)
    return bool(before or _base64().match(text, end)) or _is_in_lines(text, start, end)


def _is_in_lines(text: str, start: int, end: int) -> bool:
    """Whether a match is in a line of Base64 beside one as long, with a sign that a key of letters has not."""
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
"""The group of a pattern that is replaced; the whole match where a pattern has no such group."""

_TYPE: Final = re.compile(r"[\w.+*-]+/[\w.+*-]+")
_NAME: Final = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True)
class OwnSecrets:
    """Names of headers, parameters and members, folded, and patterns of texts. Made by `of`, which checks them.

    `undecoded` are the media types of bodies that are no text and may be recorded all the same.
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
        """Return what these describe; `BadInput` for what names nothing, is no regular expression or fits anything."""
        return cls(
            frozenset(map(_checked_name, names)),
            tuple(map(_compiled, sorted(set(patterns)))),
            tuple(map(_checked_type, undecoded)),
        )

    def key(self) -> list[list[str]]:
        """Return what tells these from others, as JSON has it."""
        return [sorted(self.names), [pattern.pattern for pattern in self.patterns]]

    def is_name(self, name: str) -> bool:
        """Whether something of this name is a secret."""
        return bool(self.names) and folded(name) in self.names

    def found(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield where a text holds what a pattern describes: start, end, and what to call it."""
        for pattern in self.patterns:
            group = GROUP if GROUP in pattern.groupindex else 0
            for match in pattern.finditer(text):
                if match[group]:
                    yield *match.span(group), f"a secret of your own ({pattern.pattern})"


NO_OWN: Final = OwnSecrets()


def folded(name: str) -> str:
    """Return a name as names are compared: without hyphens, underscores, blanks and case."""
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name) or not folded(name):
        raise BadInput(
            f"secret name {name!r}: expected the name of a header, parameter or member, such as x-acme-pin"
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
        raise BadInput(f"secret pattern {text!r}: it is no regular expression: {error}") from None
    if pattern.search("") is not None:
        raise BadInput(
            f"secret pattern {text!r}: it fits an empty text; expected one such as acme-[0-9a-f]{{32}}"
        )
    return pattern
