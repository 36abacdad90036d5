"""Two requests or replies side by side: which places differ, and how, short enough to read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from rapidfuzz import fuzz

from statek_sim.values import JSON

NOTHING: Final = "(nothing)"
_WIDTH: Final = 72
"""Characters shown of a value; of a long text those around its first difference."""
_BEFORE: Final = 24


class _Missing:
    """No value, where None is one."""


_MISSING: Final = _Missing()


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two values differ. A side that has nothing there is None."""

    place: str
    old: str | None
    new: str | None

    @property
    def distance(self) -> float:
        """How far apart the two are, from 0 to 1."""
        if self.old is None or self.new is None:
            return 1.0
        return 1 - fuzz.ratio(self.old, self.new) / 100

    def shown(self) -> tuple[str, str]:
        """Return both sides, cut to where they differ."""
        if self.old is None:
            return NOTHING, _cut(self.new or "", 0)
        if self.new is None:
            return _cut(self.old, 0), NOTHING
        first = _first_difference(self.old, self.new)
        start = max(0, first - _BEFORE) if max(len(self.old), len(self.new)) > _WIDTH else 0
        return _cut(self.old, start), _cut(self.new, start)


def differences(old: JSON, new: JSON, place: str = "") -> Iterator[Difference]:
    """Yield the places, such as `body.messages[1].content`, where two values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys((*old, *new)):
            here = f"{place}.{key}" if place else key
            yield from _compared(here, old.get(key, _MISSING), new.get(key, _MISSING))
    elif isinstance(old, list) and isinstance(new, list):
        for number, (left, right) in enumerate(zip_longest(old, new, fillvalue=_MISSING)):
            yield from _compared(f"{place}[{number}]", left, right)
    elif old != new or type(old) is not type(new):
        yield Difference(place, _text(old), _text(new))


def _compared(place: str, old: JSON | _Missing, new: JSON | _Missing) -> Iterator[Difference]:
    if isinstance(old, _Missing) or isinstance(new, _Missing):
        sides = (None if isinstance(side, _Missing) else _text(side) for side in (old, new))
        yield Difference(place, *sides)
    else:
        yield from differences(old, new, place)


def _text(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False)


def _first_difference(old: str, new: str) -> int:
    return next(
        (n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
    )


def _cut(text: str, start: int) -> str:
    end = start + _WIDTH
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
