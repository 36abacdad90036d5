"""Secrets that only one team has: what it calls them, what they look like, and its own last word about a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Self

from statek_sim.errors import BadInput

GROUP: Final = "secret"
"""The group of a pattern that is replaced; the whole match where a pattern has no such group."""

Redact = Callable[[str, str], str]
"""Takes a place (`uri`, `header NAME`, `body`, `reason`) and the text there; returns the text as it may be written."""

_TYPE: Final = re.compile(r"[\w.+*-]+/[\w.+*-]+")
_NAME: Final = re.compile(r"[\w.-]+")
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
"""What stands in a text for a byte that is none of it, or is half of a character."""


@dataclass(frozen=True, slots=True)
class OwnSecrets:
    """Names of headers, parameters and members, folded, and patterns of texts. Made by `of`, which checks them.

    `undecoded` are the media types of bodies that are no text and may be recorded all the same; `redact` is a function
    that has the last word about every text.
    """

    names: frozenset[str] = frozenset()
    patterns: tuple[re.Pattern[str], ...] = ()
    undecoded: tuple[str, ...] = ()
    redact: Redact | None = None

    @classmethod
    def of(
        cls,
        names: Iterable[str] = (),
        patterns: Iterable[str] = (),
        *,
        undecoded: Iterable[str] = (),
        redact: Redact | None = None,
    ) -> Self:
        """Return what these describe; `BadInput` for what names nothing, is no regular expression or fits anything."""
        return cls(
            frozenset(map(_checked_name, names)),
            tuple(map(_compiled, sorted(set(patterns)))),
            tuple(map(_checked_type, undecoded)),
            redact,
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

    def redacted(self, place: str, text: str) -> str:
        """Return a text as the team's own function leaves it; `BadInput` when that fails or returns something else."""
        if self.redact is None:
            return text
        try:
            clean = self.redact(place, text)
        except Exception as error:
            raise BadInput(
                f"statek_cassette_redact: {type(error).__name__} for the {place}: {error}"
            ) from error
        if not isinstance(clean, str):
            raise BadInput(f"statek_cassette_redact: expected a text for the {place}, got {clean!r}")
        if clean != text and (odd := set(_SURROGATE.findall(clean)) - set(text)):
            raise BadInput(
                f"statek_cassette_redact: what it made of the {place} has half a character in it ({min(odd)!r}), "
                "which no file can hold"
            )
        return clean


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
