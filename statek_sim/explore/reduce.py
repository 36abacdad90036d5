"""Making a failure small: the fewest deviations that still break the invariant (Zeller's ddmin)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def ddmin(parts: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> tuple[T, ...]:
    """Return a part of `parts` that fails and of which no single one can be left out.

    `parts` fail; `fails` is asked about parts in their order.
    """
    current = tuple(parts)
    pieces = 2
    while len(current) >= 2:
        size = max(1, len(current) // pieces)
        chunks = [current[at : at + size] for at in range(0, len(current), size)]
        smaller = _smaller(current, chunks, fails)
        if smaller is not None:
            current, pieces = smaller, 2 if len(smaller) <= size else max(pieces - 1, 2)
        elif size == 1:
            break
        else:
            pieces = min(len(current), pieces * 2)
    return current


def _smaller(
    current: tuple[T, ...], chunks: Sequence[tuple[T, ...]], fails: Callable[[Sequence[T]], bool]
) -> tuple[T, ...] | None:
    """Return one chunk that fails alone, or what is left of `current` without one, if that fails; else None."""
    if len(chunks) > 1:
        for chunk in chunks:
            if fails(chunk):
                return chunk
    size = len(chunks[0])
    for number in range(len(chunks)):
        rest = current[: number * size] + current[number * size + size :]
        if rest and len(rest) < len(current) and fails(rest):
            return rest
    return None
