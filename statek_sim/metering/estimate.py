"""How bytes become STATEK's estimate of tokens (000; behaviour 5): the one place that divides."""

from __future__ import annotations

from typing import Final

BYTES_PER_TOKEN: Final = 4
"""STATEK's estimate (000; behaviour 5)."""


def approx_tokens(bytes_sent: int, bytes_received: int) -> int:
    """Return STATEK's token estimate: the floor is taken once, of the totals."""
    return (bytes_sent + bytes_received) // BYTES_PER_TOKEN
