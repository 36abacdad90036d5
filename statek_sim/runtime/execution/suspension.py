"""Waiting for async tools inside model-written code, as STATEK does.

Model-written code is not a coroutine, so STATEK blocks inside the call to an async tool and runs a nested
event loop (nest_asyncio), in which other jobs run their steps. This has the following consequences in every
release:

- each `await` in a tool happens at its own time, and other jobs run in between;
- calls return last in, first out: a finished tool's caller continues only after all tools awaited later have
finished;
- a tool's output goes to the code that began to wait last, because `print` is replaced process-wide;
- about 50 jobs can await async tools at the same time; one more gets a RecursionError.

Here, too, all waits are calls on a single stack. Therefore, a run that reaches its time limit while a tool is
awaited cannot continue, and raises `StoppedInTool`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from enum import Enum, auto
from typing import Any, Final

from statek_sim import progress
from statek_sim.errors import AsyncToolStuck, StoppedInTool
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.context import Execution, current_execution, printing_to
from statek_sim.runtime.state.status import WorkerKilled
from statek_sim.runtime.state.tool_loop import Running, Timer, ToolLoop
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.time_limit import paused
from statek_sim.virtual_loop import STUCK

MOST_NESTED: Final = 53
"""Maximum number of async tools awaited at the same time; STATEK is limited by Python's stack (checked with
1.4.2 on 3.11).
"""

MOST_TIMERS: Final = 200_000
"""Maximum consecutive async tool timers without a step by any job; beyond that, a tool counts as never finishing."""

_FRAMES_PER_WAIT: Final = 60

_DEAD: Final[list[ToolLoop]] = []
"""Event loops of dead processes whose runtimes are not closed.

Without these references, Python would collect the loops' coroutines and run the `finally` blocks during
another test, but a killed process never runs `finally` blocks.
"""


class Progress(Enum):
    """The result of `advance`: an action was performed, nothing is left, or the run reached its time limit."""

    MADE = auto()
    NOTHING_LEFT = auto()
    TIME_IS_UP = auto()


class Suspension:
    """A runtime's async tools, and the code waiting for them.

    `advance` performs the scheduler's next action, `plan` schedules a tool's timer, and `now` returns the
    virtual time. With `prints_apart`, a tool's output goes to its own job; otherwise it goes to the code that
    began to wait last.
    """

    def __init__(
        self,
        budget: ExecutionBudget,
        now: Callable[[], float],
        plan: Callable[[Timer], None],
        advance: Callable[[], Progress],
        *,
        prints_apart: bool,
    ) -> None:
        self._budget = budget
        self._now = now
        self._plan = plan
        self._advance = advance
        self._prints_apart = prints_apart
        self._loop: ToolLoop | None = None
        self._lost: list[ToolLoop] = []
        self._waits: list[Execution | None] = []
        self._awaited: list[Running] = []
        self._base: Context = copy_context()
        self._timers = 0
        self._process = 0
        self._death = ""
        self.failure: BaseException | None = None
        """The error that ends the run. It was raised during a wait, and must not reach the waiting code."""

    # -- the loop ----------------------------------------------------------------------------------------------------

    def begin_run(self) -> None:
        """Record the current context; jobs also use it when they run while another job waits."""
        self._base = copy_context()

    def settle(self) -> None:
        """Run callbacks that synchronous tools scheduled on the running event loop."""
        loop = self._current_loop()
        loop.make_running()
        if loop.has_ready:
            self._do_ready()

    def _current_loop(self) -> ToolLoop:
        if self._loop is None:
            self._loop = ToolLoop(self._now, self._plan)
        return self._loop

    def step_begins(self) -> None:
        """Reset the timer count, because a job step begins."""
        self._timers = 0

    def fire(self, timer: Timer) -> None:
        """Run a timer's callback; raises `AsyncToolStuck` after too many timers without a step."""
        self._timers += 1
        if self._timers > MOST_TIMERS:
            raise AsyncToolStuck(
                f"an async tool has waited {MOST_TIMERS:,} times while no job took a step, so it never "
                "finishes; give the tool a timeout, or end the run with `until`"
            )
        assert self._loop is not None
        with self._printing():
            self._loop.fire(timer)

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> Running:
        """Start a coroutine for the current job and run it until it waits."""
        task = self._current_loop().start(coroutine)
        self._do_ready()
        return task

    def _do_ready(self) -> None:
        assert self._loop is not None
        with self._printing():
            self._loop.do_ready()

    def _printing(self) -> Any:
        return printing_to(None if self._prints_apart else (self._waits[-1] if self._waits else False))

    # -- waiting -----------------------------------------------------------------------------------------------------

    @property
    def returning(self) -> bool:
        """Whether the most recently awaited tool has finished, so that its caller continues before anything else."""
        return bool(self._awaited) and self._awaited[-1].done()

    def finish(self, job: Job, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Return a coroutine's result.

        Until the coroutine finishes, other jobs run their steps and virtual time passes.
        """
        if len(self._waits) >= MOST_NESTED:
            coroutine.close()
            raise RecursionError("maximum recursion depth exceeded while calling a Python object")
        execution, process = current_execution(), self._process
        self._waits.append(execution)
        try:
            task = self.start(coroutine)
            if self._process != process:
                # The worker died while the coroutine or another tool ran, even if the coroutine has ended.
                raise self.killed(execution, self._death)
            if not task.done():
                self._wait(task, execution)
                progress.at(job.id, job.num_turns)
        finally:
            self._waits.pop()
        return task.result()

    def _wait(self, task: Running, execution: Execution | None) -> None:
        process, limit, held = self._process, sys.getrecursionlimit(), self._budget.suspend()
        sys.setrecursionlimit(limit + _FRAMES_PER_WAIT)
        self._awaited.append(task)
        try:
            while not task.done():
                with paused():
                    self._base.copy().run(self._advance_once)
                if self.failure is not None:
                    raise self.killed(execution, "the run failed")
                if self._process != process:
                    raise self.killed(execution, self._death)
        except WorkerKilled:
            if task.done() and not task.cancelled():
                # Python would warn about an unretrieved exception, which a dead process cannot retrieve.
                task.exception()
            raise
        finally:
            del self._awaited[-1]
            self._budget.resume(held)
            sys.setrecursionlimit(limit)

    def _advance_once(self) -> None:
        try:
            with printing_to(None):
                progress = self._advance()
                if progress is Progress.NOTHING_LEFT:
                    raise AsyncToolStuck(STUCK)
                if progress is Progress.TIME_IS_UP:
                    raise StoppedInTool(self._now())
        except BaseException as error:  # noqa: BLE001  # another job's, an event's, the test's
            self.failure = self.failure or error

    def raise_failure(self) -> None:
        """Raise the error that ended the run during a wait, if any, after killing the tools."""
        failure, self.failure = self.failure, None
        if failure is not None:
            self.die("the run failed")
            raise failure

    # -- death -------------------------------------------------------------------------------------------------------

    def die(self, reason: str) -> None:
        """Kill all tools because the process died, without running their cleanup code.

        Code waiting for a tool raises `WorkerKilled` at its next check.
        """
        self._process += 1
        self._death = reason
        if self._loop is not None:
            self._loop.dead = True
            self._lost.append(self._loop)
            self._loop = None
            _DEAD.append(self._lost[-1])

    def close(self) -> None:
        """Release the dead tools, so that Python may run their `finally` blocks."""
        self.die("closed")
        lost, self._lost = self._lost, []
        for loop in lost:
            _DEAD.remove(loop)
            loop.close_tasks()

    @staticmethod
    def killed(execution: Execution | None, reason: str) -> WorkerKilled:
        """Return the exception that unwinds a dead process's calls, and mark the execution as killed."""
        if execution is not None:
            execution.killed = reason
        return WorkerKilled(reason)
