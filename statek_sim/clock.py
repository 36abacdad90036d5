"""Virtual time, the only clock that the runtime reads."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol, final, runtime_checkable

EPOCH: Final = datetime(2026, 1, 1, 9, 0, 0, tzinfo=UTC)
"""The default wall time at virtual second 0: a Thursday morning."""


FOREVER: Final = 10.0**9
"""The default virtual second at which a run ends: after 31 years."""


class Clock(Protocol):
    """Virtual seconds since a run started, and the corresponding wall time."""

    def now(self) -> float:
        """Return the virtual seconds since the run started."""

    def wall(self) -> datetime:
        """Return the current wall time without a time zone, like STATEK's `datetime.now()`."""


@runtime_checkable
class Continued(Protocol):
    """A clock that can start at a later second, to continue a session whose process has ended."""

    def go_on_from(self, seconds: float) -> None:
        """Start at this second or later; raises `BadInput` if an earlier second has already been read."""


def checked_moment(at: float) -> float:
    """Return a timer's time; raises `ValueError` for NaN, as `asyncio.sleep` does since Python 3.13."""
    if math.isnan(at):
        raise ValueError("Invalid delay: NaN (not a number)")
    return at


@final
class VirtualClock:
    """A clock that moves only when `advance` or `advance_to` is called."""

    __slots__ = ("_now", "_start", "_wall", "listeners")

    def __init__(self, start: datetime = EPOCH) -> None:
        self._start = start.replace(tzinfo=None)
        self._now = 0.0
        self._wall = self._start
        self.listeners: list[Callable[[], None]] = []
        """Called after every move, for example to update a mocked wall clock."""

    def now(self) -> float:
        """Return the virtual seconds since the run started."""
        return self._now

    def wall(self) -> datetime:
        """Return the current wall time, without a time zone."""
        return self._wall

    def advance_to(self, at: float) -> None:
        """Move to virtual second `at`; raises `ValueError` if it has already passed."""
        if at < self._now:
            raise ValueError(f"virtual time cannot go back from {self._now!r} to {at!r}")
        self._now = at
        self._wall = self._start + timedelta(seconds=at)
        for listener in self.listeners:
            listener()

    def advance(self, seconds: float) -> None:
        """Move forward by `seconds` of virtual time."""
        self.advance_to(self._now + seconds)
