"""Formats numbers and shortens texts for reports."""

from __future__ import annotations

from typing import Final

NOTHING: Final = "-"
"""Placeholder for a missing number."""


def count(value: int | None) -> str:
    """Return an integer with thousands separators, such as `9,812`."""
    return NOTHING if value is None else f"{value:,}"


def signed(value: float) -> str:
    """Return an integer with its sign, such as `+2,140`."""
    return f"{round(value):+,}"


def share(part: float, whole: float) -> str:
    """Return `part` as a share of `whole`, such as `58%`."""
    return f"{part / whole:.0%}" if whole else NOTHING


def plural(number: int, noun: str) -> str:
    """Return the number and its noun, such as `1 turn` or `1,204 turns`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def ratio(value: float | None) -> str:
    """Return a ratio and the direction of the error, such as `x1.58 over`, `x0.57 under` or `x1.00`."""
    if value is None:
        return NOTHING
    return f"x{value:,.2f} {direction(value)}".rstrip()


def direction(value: float) -> str:
    """Return `over` or `under`, or an empty string if two decimals show no difference."""
    rounded = round(value, 2)
    if rounded == 1:
        return ""
    return "over" if rounded > 1 else "under"


def seconds(value: float) -> str:
    """Return a duration in seconds as text, such as `0.12s`."""
    return f"{value:,.2f}s"


TEXT: Final = 20_000
"""The maximum number of characters of one text."""

RUN: Final = 400_000
"""The number of characters of all texts of one run after which each further text is cut to `LEAST`."""

LEAST: Final = 200
"""The number of characters that every text may have, regardless of the total."""

LABEL: Final = 120
"""The maximum number of characters of a label on a chart."""


def excerpt(text: str, length: int = TEXT) -> str:
    """Return `text`, or its first `length` characters and a line with the number of omitted ones."""
    if len(text) <= length:
        return text
    return f"{text[:length]}\n... {plural(len(text) - length, 'more character')} left out here"


def label(text: str) -> str:
    """Return the first line of `text`, shortened to the length of a label."""
    first = text[: LABEL + 1].partition("\n")[0]
    return first if len(first) == len(text) and len(text) <= LABEL else f"{first[:LABEL]}..."


class Excerpts:
    """Shortens the texts of one run, so that their total length is about `RUN` characters at most."""

    __slots__ = ("_left",)

    def __init__(self, length: int = RUN) -> None:
        self._left = length

    def take(self, text: str) -> str:
        """Return `text`, cut to the room that earlier texts left."""
        taken = excerpt(text, max(LEAST, min(TEXT, self._left)))
        self._left -= len(taken)
        return taken
