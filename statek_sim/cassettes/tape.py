"""The recordings of one cassette by request: each kind of request has a lane, which plays in recorded order.

Finding a recording costs the same however many there are, and two threads never get the same one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from threading import Lock

from statek_sim.cassettes.exchange import Exchange, Request
from statek_sim.cassettes.matching import Compared, Matching


class Tape:
    """Recordings in the order of the file. `fingerprints[n]` is the request of recording n.

    `redacted` are the numbers of those with a redacted place in what is compared, which any value there matches.
    """

    def __init__(
        self, fingerprints: Sequence[str], exchange: Callable[[int], Exchange], redacted: Iterable[int] = ()
    ) -> None:
        self.fingerprints = fingerprints
        self.redacted = tuple(redacted)
        self._exchange = exchange
        self._compared: dict[int, Compared] = {}
        self._lock = Lock()
        self._lanes: dict[str, deque[int]] = {}
        for number, fingerprint in enumerate(fingerprints):
            self._lanes.setdefault(fingerprint, deque()).append(number)

    def __len__(self) -> int:
        return len(self.fingerprints)

    def play(self, fingerprint: str) -> Exchange | None:
        """Return the next unplayed recording of a request, or None when there is none."""
        with self._lock:
            lane = self._lanes.get(fingerprint)
            number = lane.popleft() if lane else None
        return None if number is None else self._exchange(number)

    def can_play(self, fingerprint: str) -> bool:
        """Whether `play` would find one now."""
        return bool(self._lanes.get(fingerprint))

    def lane_of(self, request: Request, matching: Matching) -> str:
        """Return the fingerprint under which a request is played.

        It is its own, or that of the first unplayed recording whose redacted places alone differ from it.
        """
        fingerprint = matching.fingerprint(request)
        if self.can_play(fingerprint) or not self.redacted:
            return fingerprint
        seen = matching.compared(request)
        for number in self.redacted:
            lane = self.fingerprints[number]
            if self.can_play(lane) and self._seen(number, matching).fits(seen):
                return lane
        return fingerprint

    def _seen(self, number: int, matching: Matching) -> Compared:
        if number not in self._compared:
            self._compared[number] = matching.compared(self._exchange(number).request)
        return self._compared[number]

    def knows(self, fingerprint: str) -> bool:
        """Whether there are recordings of a request, played or not."""
        return fingerprint in self._lanes

    def unplayed(self) -> list[int]:
        """Return the numbers of the recordings that nobody asked for, in order."""
        with self._lock:
            return sorted(number for lane in self._lanes.values() for number in lane)

    def exchange(self, number: int) -> Exchange:
        """Return a recording."""
        return self._exchange(number)

    def exchanges(self) -> list[Exchange]:
        """Return all recordings."""
        return [self._exchange(number) for number in range(len(self))]
