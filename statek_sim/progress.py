"""Where this process is in its work, for whoever watches it from outside.

A process that is killed in the middle of C code cannot say what it was doing. So a job says before each step which
turn it is in, and a watched worker process (`executors/worker.py`) keeps that where its parent can read it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


class Listener(Protocol):
    """Hears how far this process is."""

    ends_runs: bool
    """Whether it ends a run that takes too much of the machine."""

    def at(self, job: str, turns: int) -> None:
        """Hear that a job begins a step after so many LLM turns."""

    def afresh(self) -> None:
        """Hear that work begins which has all its time before it."""


class Nobody:
    """Hears nothing: nobody watches this process."""

    ends_runs = False

    def at(self, job: str, turns: int) -> None:
        """Forget it."""

    def afresh(self) -> None:
        """Forget it."""


@dataclass(slots=True)
class _Watched:
    listener: Listener = field(default_factory=Nobody)


_WATCHED = _Watched()


def at(job: str, turns: int) -> None:
    """Say that `job` begins a step after so many LLM turns."""
    _WATCHED.listener.at(job, turns)


def afresh() -> None:
    """Say that another run of the same piece of work begins: limits of time and memory are those of one run."""
    _WATCHED.listener.afresh()


def is_watched() -> bool:
    """Return whether somebody ends runs of this process that take too much of the machine."""
    return _WATCHED.listener.ends_runs


def listen(listener: Listener) -> None:
    """Let `listener` hear it from now on; there is one per process."""
    _WATCHED.listener = listener
