"""Which job steps next: rounds of one step per runnable job, in the order that the reference scheduler has."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import dbzero
from statek.executors import utils

from statek_sim.values import JSON


class Rounds:
    """Names of jobs: queued, then in the round that is going on. `age` is a job's place in the order of creation."""

    def __init__(self, order: str, seed: int, age: Callable[[str], int]) -> None:
        self._order = order
        self._random = random.Random(seed)
        self._age = age
        self._queue: list[str] = []
        self._ties: dict[str, float] = {}
        self._round: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self._queue or name in self._round

    def queue(self, name: str) -> None:
        """Queue a job for the next round."""
        self._queue.append(name)
        self._ties[name] = self._tie(name)

    def _tie(self, name: str) -> float:
        """Return a job's place in the next round, drawn as the reference runtime draws it."""
        if self._order == "newest":
            return -self._age(name)
        return self._random.random() if self._order == "shuffled" else 0.0

    def take(self) -> str | None:
        """Take the next job of this round, or None when there is none."""
        return self._round.pop(0) if self._round else None

    def open(self) -> bool:
        """Open the next round if it has jobs."""
        if not self._queue:
            return False
        self._round, self._queue = sorted(self._queue, key=self._ties.__getitem__), []
        return True

    def clear(self) -> None:
        """Lose what only the process knew."""
        self._queue.clear()
        self._round.clear()

    def memory(self) -> JSON:
        """Return where the draws are."""
        version, state, gauss = self._random.getstate()
        return [version, list(state), gauss]

    def remember(self, memory: Any) -> None:
        """Go on drawing from `memory`."""
        version, state, gauss = memory
        self._random.setstate((version, tuple(state), gauss))


@contextmanager
def found_in_order(places: Mapping[str, int]) -> Iterator[None]:
    """Have STATEK find stored objects by their `places`, others last; the store's own order is nobody's promise."""

    class Store:
        """The store, with an order to what it finds."""

        def __getattr__(self, name: str) -> Any:
            return getattr(dbzero, name)

        def find(self, *query: Any) -> list[Any]:
            """Return what the store finds."""
            return sorted(
                dbzero.find(*query), key=lambda stored: places.get(dbzero.uuid(stored), len(places))
            )

    utils.db0 = Store()
    try:
        yield
    finally:
        utils.db0 = dbzero
