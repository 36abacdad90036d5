"""Numbers and their nouns as people read them."""

from __future__ import annotations

from typing import Final

NOTHING: Final = "-"
"""What stands where there is no number."""


def count(value: int | None) -> str:
    """Return a whole number with thousands separators, `9,812`."""
    return NOTHING if value is None else f"{value:,}"


def signed(value: float) -> str:
    """Return a whole number with its sign, `+2,140`."""
    return f"{round(value):+,}"


def share(part: float, whole: float) -> str:
    """Return what `part` is of `whole`, `58%`."""
    return f"{part / whole:.0%}" if whole else NOTHING


def plural(number: int, noun: str) -> str:
    """Return the number and its noun, `1 turn` or `1,204 turns`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def ratio(value: float | None) -> str:
    """Return estimate / measured and which way the estimate is wrong: `x1.58 over`, `x0.57 under`, `x1.00`."""
    if value is None:
        return NOTHING
    return f"x{value:,.2f} {direction(value)}".rstrip()


def direction(value: float) -> str:
    """Return `over` or `under`, or nothing when two decimals show no difference."""
    rounded = round(value, 2)
    if rounded == 1:
        return ""
    return "over" if rounded > 1 else "under"


def seconds(value: float) -> str:
    """Return real time for people, `0.12s`."""
    return f"{value:,.2f}s"
