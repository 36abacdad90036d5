"""Where this process is in its work, for whoever watches it from outside.

A process that is killed in the middle of C code cannot say what it was doing. So a job says before each step which
turn it is in, and a watched worker process (`executors/worker.py`) keeps that where its parent can read it.
"""

from __future__ import annotations

from typing import Final


class Listener:
    """Hears how far this process is; this one hears nothing: nobody watches."""

    ends_runs = False
    """Whether it ends a run that takes too much of the machine."""

    def at(self, job: str, turns: int) -> None:
        """Hear that a job begins a step after so many LLM turns."""

    def afresh(self) -> None:
        """Hear that work begins which has all its time before it."""


_LISTENERS: Final = [Listener()]
"""The one that hears it."""


def at(job: str, turns: int) -> None:
    """Say that `job` begins a step after so many LLM turns."""
    _LISTENERS[0].at(job, turns)


def afresh() -> None:
    """Say that another run of the same piece of work begins: limits of time and memory are those of one run."""
    _LISTENERS[0].afresh()


def is_watched() -> bool:
    """Return whether somebody ends runs of this process that take too much of the machine."""
    return _LISTENERS[0].ends_runs


def listen(listener: Listener) -> None:
    """Let `listener` hear it from now on; there is one per process."""
    _LISTENERS[0] = listener
