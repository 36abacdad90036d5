"""Formats numbers and shortens texts for reports."""

from __future__ import annotations

from typing import Final

NOTHING: Final = "-"
"""The placeholder for a missing number."""


def count(value: int | None) -> str:
    """Return an integer with thousands separators, such as `9,812`."""
    return NOTHING if value is None else f"{value:,}"


def signed(value: float) -> str:
    """Return an integer with its sign, such as `+2,140`."""
    return f"{round(value):+,}"


def share(part: float, whole: float) -> str:
    """Return `part` as a percentage of `whole`, such as `58%`."""
    return f"{part / whole:.0%}" if whole else NOTHING


def plural(number: int, noun: str) -> str:
    """Return a number and its noun, such as `1 turn` or `1,204 turns`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def ratio(value: float | None) -> str:
    """Return a ratio and the error's direction, such as `x1.58 over`, `x0.57 under` or `x1.00`."""
    if value is None:
        return NOTHING
    return f"x{value:,.2f} {direction(value)}".rstrip()


def direction(value: float) -> str:
    """Return `over` or `under`, or an empty string if the ratio is 1 to two decimals."""
    rounded = round(value, 2)
    if rounded == 1:
        return ""
    return "over" if rounded > 1 else "under"


def seconds(value: float) -> str:
    """Format a duration in seconds, such as `0.12s`."""
    return f"{value:,.2f}s"


TEXT: Final = 20_000
"""The maximum length of a text."""

RUN: Final = 400_000
"""The total length of a run's texts after which each further text is cut to `LEAST`."""

LEAST: Final = 200
"""The length that every text may have, regardless of the total."""

LABEL: Final = 120
"""The maximum length of a chart label."""


def excerpt(text: str, length: int = TEXT) -> str:
    """Return `text`, or its first `length` characters and a line with the number of omitted characters."""
    if len(text) <= length:
        return text
    return f"{text[:length]}\n... {plural(len(text) - length, 'more character')} omitted"


def label(text: str) -> str:
    """Return the first line of `text`, shortened to a label's length."""
    first = text[: LABEL + 1].partition("\n")[0]
    return first if len(first) == len(text) and len(text) <= LABEL else f"{first[:LABEL]}..."


class Excerpts:
    """Shortens a run's texts so that their total length is at most about `RUN` characters."""

    __slots__ = ("_left",)

    def __init__(self, length: int = RUN) -> None:
        self._left = length

    def take(self, text: str) -> str:
        """Return `text`, cut to the room left by earlier texts."""
        taken = excerpt(text, max(LEAST, min(TEXT, self._left)))
        self._left -= len(taken)
        return taken
