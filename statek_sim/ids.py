"""Identifiers that are the same on every run."""

from __future__ import annotations

from collections.abc import Mapping


class IdSource:
    """Hands out `kind-1`, `kind-2`, ... per kind, in the order asked."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def saved(self) -> dict[str, int]:
        """Return how many ids of each kind there are."""
        return dict(self._counts)

    def resume(self, saved: Mapping[str, int]) -> None:
        """Count on from what another one `saved`."""
        self._counts = dict(saved)

    def next(self, kind: str) -> str:
        """Return the next id of `kind`."""
        count = self._counts.get(kind, 0) + 1
        self._counts[kind] = count
        return f"{kind}-{count}"
