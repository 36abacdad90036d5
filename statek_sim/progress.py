"""Reports this process's progress to another process that watches it.

A process that is killed inside C code cannot report what it was doing. So a job reports each step's turn in advance,
and a watched worker process (`executors/worker.py`) writes the report where its parent can read it.
"""

from __future__ import annotations

from typing import Final


class Listener:
    """Receives this process's progress; this base class ignores it."""

    ends_runs = False
    """Whether another process kills runs that use too many resources."""

    def at(self, job: str, turns: int) -> None:
        """Receive the name of a job that starts a step, and the number of its LLM turns so far."""

    def afresh(self) -> None:
        """Receive the start of a run, which restarts the time limit."""


_LISTENERS: Final = [Listener()]
"""Holds the current listener as its only item."""


def at(job: str, turns: int) -> None:
    """Report that `job` is starting a step after this number of LLM turns."""
    _LISTENERS[0].at(job, turns)


def afresh() -> None:
    """Report that another run of the same task is starting; time and memory limits apply to each run separately."""
    _LISTENERS[0].afresh()


def is_watched() -> bool:
    """Return whether another process kills this process's runs if they use too many resources."""
    return _LISTENERS[0].ends_runs


def listen(listener: Listener) -> None:
    """Set this process's only listener."""
    _LISTENERS[0] = listener
