"""Decimals as they come back (dbzero 0.7.0, by running it): seventeen digits, and an exponent without its sign."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

_DIGITS: Final = 17
_LARGEST_EXPONENT: Final = 63


def stored_decimal(value: Decimal) -> Decimal:
    """Return a finite decimal as it comes back; a RuntimeError for one that dbzero has no room for."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    places = abs(exponent)
    more = min(max(0, len(digits) - _DIGITS), places)
    if len(digits) - more > _DIGITS or places > _LARGEST_EXPONENT:
        raise RuntimeError("Decimal out of range.\n")
    kept = digits[: len(digits) - more]
    return Decimal((sign if any(kept) else 0, kept, more - places))


def why_changed(value: Decimal, found: Decimal) -> str:
    """Return what dbzero changed of a decimal; empty when nothing."""
    if value == found:
        return ""
    _, _, exponent = value.as_tuple()
    if isinstance(exponent, int) and exponent > 0:
        return f"dbzero forgets that the exponent is positive: Decimal('{value}') comes back as Decimal('{found}')"
    return "dbzero keeps seventeen digits of a decimal"
