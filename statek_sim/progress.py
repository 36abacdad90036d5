"""Reports the progress of this process to another process that watches it.

A process that is killed in the middle of C code cannot report what it was doing. So a job reports the turn of each step
in advance, and a watched worker process (`executors/worker.py`) writes the report where its parent can read it.
"""

from __future__ import annotations

from typing import Final


class Listener:
    """Receives the progress of this process; this base class ignores it."""

    ends_runs = False
    """Whether another process kills runs that use too many resources."""

    def at(self, job: str, turns: int) -> None:
        """Receive the name of a job that starts a step, and the number of its LLM turns so far."""

    def afresh(self) -> None:
        """Receive the start of a run; its time limit starts anew."""


_LISTENERS: Final = [Listener()]
"""The current listener, as the only entry."""


def at(job: str, turns: int) -> None:
    """Report that `job` starts a step after this number of LLM turns."""
    _LISTENERS[0].at(job, turns)


def afresh() -> None:
    """Report that another run of the same task starts; limits of time and memory apply to each run separately."""
    _LISTENERS[0].afresh()


def is_watched() -> bool:
    """Return whether another process kills runs of this process that use too many resources."""
    return _LISTENERS[0].ends_runs


def listen(listener: Listener) -> None:
    """Set the listener of this process, which has only one."""
    _LISTENERS[0] = listener
