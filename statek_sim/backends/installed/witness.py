"""What was seen of STATEK, as the trace events of the reference runtime; `watching` is where it is seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from statek_sim import trace as events
from statek_sim.trace import Event, as_dict
from statek_sim.values import JSON


class Witness:
    """Collects events.

    `now()` is the virtual time, `name_of(job)` a job's name, `answer_to(name)` the number of that job's latest request
    and the tokens that the provider reported for it; `meet(job)` is called before anything is told about a new job.
    """

    def __init__(
        self,
        now: Callable[[], float],
        name_of: Callable[[Any], str],
        answer_to: Callable[[str], tuple[int, int | None, int | None]],
        meet: Callable[[Any], object],
    ) -> None:
        self._now = now
        self._name_of = name_of
        self._answer_to = answer_to
        self._meet = meet
        self._events: list[JSON] = []
        self._newborn: list[Any] = []
        self._introducing = False
        self._failed: dict[str, tuple[int, int, str]] = {}
        self.heard: Callable[[Event], object] = lambda _: None
        """Told of every event right after it."""

    def tell(self, kind: Callable[..., Event], job: Any, *facts: object) -> None:
        """Add an event about `job`: one of STATEK's, or its name."""
        self.introduce()
        name = job if isinstance(job, str) else self._name_of(job)
        if name in self._failed:
            self.asks_again(name, None)
        event = kind(self._now(), name, *facts)
        self._events.append(as_dict(event))  # type: ignore[arg-type]  # JSON by design
        self.heard(event)

    def born(self, job: Any) -> None:
        """Note a job that was created; it is introduced before anything else is told."""
        self._newborn.append(job)

    def answered(self, job: Any) -> tuple[int, int | None, int | None]:
        """Return the number of a job's latest request and the tokens that the provider reported for it."""
        return self._answer_to(self._name_of(job))

    def introduce(self) -> None:
        """Have jobs met that were created since the last time, in this order, which what meeting one tells keeps to."""
        if self._introducing:
            return
        self._introducing = True
        try:
            while self._newborn:
                self._meet(self._newborn.pop(0))
        finally:
            self._introducing = False

    def request_failed(self, name: str, turn: int, attempt: int, error: str) -> None:
        """Note a failure of the provider; STATEK has yet to say whether it will ask again."""
        self._failed[name] = (turn, attempt, error)

    def asks_again(self, name: str, seconds: float | None) -> None:
        """Tell of a job's failed request, if there is one, and in how many seconds STATEK asks again (None: never)."""
        if name in self._failed:
            self.tell(events.RequestFailed, name, *self._failed.pop(name), seconds)

    def remember(self, events_before: list[JSON]) -> None:
        """Take over what the process before had not told yet."""
        self._events[:0] = events_before

    def taken(self) -> list[JSON]:
        """Return the events since the last time."""
        taken, self._events = self._events, []
        return taken
