"""What follows calls of tools: actions of the world outside, and the worker's death in the middle of one."""

from __future__ import annotations

from collections.abc import Callable

from statek_sim.call_hooks import CallHooks
from statek_sim.runtime.state.containment import WorkerKilled
from statek_sim.sandbox.budget import ExecutionBudget


class AfterCalls:
    """Calls are counted over all jobs, or over the one that `job` names."""

    def __init__(self, budget: ExecutionBudget, act: Callable[[Callable[[], object]], None]) -> None:
        self._budget = budget
        self._act = act
        self._actions: CallHooks[Callable[[], object]] = CallHooks()
        self._kills: CallHooks[str] = CallHooks()
        self.watchers: list[Callable[[str, str], object]] = []

    def kill(self, tool: str, call: int, job: str | None) -> None:
        """Have the worker die when that call has done its work and not returned."""
        self._kills.add(f"killed in call {call} of {tool}", tool=tool, call=call, job=job)

    def do(self, action: Callable[[], object], tool: str, call: int, job: str | None) -> None:
        """Have `action` done when that call has ended, after those that were wanted before."""
        self._actions.add(action, tool=tool, call=call, job=job)

    def returned(self, tool: str, job: str) -> None:
        """Let happen what was wanted: the worker's death comes last, and within the call."""
        kills = self._kills.returned(tool, job)
        for action in self._actions.returned(tool, job):
            self._act(action)
        try:
            for watcher in self.watchers:
                watcher(job, tool)
        except WorkerKilled as death:
            self._budget.end(death)
        if kills:
            self._budget.end(WorkerKilled(kills[0]))
