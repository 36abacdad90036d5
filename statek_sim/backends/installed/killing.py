"""Killing the worker process at one moment: after the n-th event of its kind that one job has.

The events of two runtimes are not numbered alike, since some cannot be seen from outside of STATEK; their kinds are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from statek_sim.backends.event_words import told
from statek_sim.trace import Event


class Killing:
    """Watches for the moment that `order` names, and kills then: once, also over processes.

    `order` has `what` and `job` of the event, `times`, which of them it is, and `restart`, the virtual seconds until a
    new worker starts; None: nobody is killed.
    """

    def __init__(self, order: Any, now: Callable[[], float], kill: Callable[[], object]) -> None:
        self._order = order
        self._now = now
        self._kill = kill
        self._seen = 0
        self.restart_at: float | None = None

    def heard(self, event: Event) -> None:
        """Take note of an event, and kill if this is the one."""
        order = self._order
        if order is None or (told(event), event.job) != (order["what"], order["job"]):
            return
        self._seen += 1
        if self._seen == order["times"]:
            self._order = None
            self.restart_at = self._now() + order["restart"]
            self._kill()

    def memory(self) -> Any:
        """Return what the next process must know."""
        return {"killed": self._order is None, "seen": self._seen, "restart_at": self.restart_at}

    def remember(self, memory: Any) -> None:
        """Go on with the memory of the process before."""
        self._seen, self.restart_at = memory["seen"], memory["restart_at"]
        if memory["killed"]:
            self._order = None
