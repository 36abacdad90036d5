"""What is around the jobs of one case: events that have happened, and everything that was done or delivered."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from tests.conformance.job import Complete, Happening, Notify, Resolve, Say


class World:
    """Facts that tools and handlers leave behind."""

    def __init__(self) -> None:
        self.happened: dict[str, object] = {}
        self.ledger: list[str] = []
        self.handled: list[str] = []
        self.sent: list[list[str | None]] = []
        self.agents: dict[str, Any] = {}

    def start_over(self) -> None:
        """Forget everything, for the next case."""
        for part in (self.happened, self.ledger, self.handled, self.sent, self.agents):
            part.clear()


WORLD = World()
"""The world of the case that runs now; tools are module-level functions, as the real package demands."""


def happen(happening: Happening, job_named: Callable[[str], Any]) -> None:
    """Let something happen; `job_named` returns a job of the runtime that is being driven."""
    match happening:
        case Resolve(name, value):
            # A copy: jobs change what they are given, and the next run of the case starts afresh.
            WORLD.happened[name] = deepcopy(value)
        case Say(text, job):
            job_named(job).push_user_message(text)
        case Notify(text, job):
            job_named(job).send_notification(text)
        case Complete(job, result, error):
            handler = job_named(job).py_env.local_state["sub_task_handler"]
            handler.complete(result=result, error=error)
