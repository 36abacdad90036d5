"""How many pieces of work go out together: so many that sending them costs little beside doing them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

LEAST: Final = 0.25
"""Seconds that a batch should take at least."""

SCHEDULING: Final = 0.006
"""Seconds that one batch costs a Dask scheduler and its client: so many threads wait for it, that much longer must a
batch take for all of them to have work."""

GROWTH: Final = 4
"""A batch is at most so many times larger than the one before, since the next pieces of work may take longer."""


@dataclass(slots=True)
class BatchSize:
    """Learns how long a piece of work takes and says how many go out together. It begins with one.

    `width` is how many threads one scheduler keeps at work.
    """

    width: int = 1
    done: int = 0
    seconds: float = 0.0
    largest: int = 1

    def learn(self, done: int, seconds: float) -> None:
        """Take in that a batch of `done` took so many seconds."""
        self.done += done
        self.seconds += seconds

    def next(self) -> int:
        """Return the size of the next batch."""
        if self.done:
            least = max(LEAST, SCHEDULING * self.width)
            most = self.largest * GROWTH
            wanted = math.ceil(least * self.done / self.seconds) if self.seconds > 0 else most
            self.largest = max(1, min(wanted, most))
        return self.largest
