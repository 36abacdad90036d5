"""Actions that follow certain tool calls, and the counters that trigger them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from statek_sim.values import JSON

A = TypeVar("A")
"""An action, or its name."""


class CallHooks(Generic[A]):
    """Counts tool calls in total and per job, and returns the actions that follow a call."""

    def __init__(self) -> None:
        self._wanted: dict[tuple[str, int, str | None], list[tuple[int, A]]] = {}
        self._counts: dict[tuple[str, str | None], int] = {}
        self._asked = 0

    def add(self, action: A, *, tool: str, call: int, job: str | None) -> None:
        """Run `action` after call number `call` to `tool`, counting from 1 over all jobs, or over `job` if given."""
        self._asked += 1
        self._wanted.setdefault((tool, call, job), []).append((self._asked, action))

    def returned(self, tool: str, job: str) -> list[A]:
        """Record that a call to `tool` by `job` has ended.

        Returns the actions that follow the call, in the order in which they were added.
        """
        if not self._wanted:
            return []
        due: list[tuple[int, A]] = []
        for counted in (None, job):
            count = self._counts[tool, counted] = self._counts.get((tool, counted), 0) + 1
            due += self._wanted.get((tool, count, counted), ())
        return [action for _, action in sorted(due, key=lambda pair: pair[0])]

    def counts(self) -> list[JSON]:
        """Return the counts so far, as lists of tool, job (None: all jobs) and number of calls, for `count_on`."""
        return [[tool, job, count] for (tool, job), count in self._counts.items()]

    def count_on(self, counts: Iterable[tuple[str, str | None, int]]) -> None:
        """Continue from the `counts` of another instance."""
        self._counts.update({(tool, job): count for tool, job, count in counts})
