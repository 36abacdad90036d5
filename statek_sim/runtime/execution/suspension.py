"""Waiting for async tools from inside of model-written code, the way STATEK does it.

Model-written code is no coroutine, so STATEK waits for a tool where it is called: it lets its event loop run on, on top
of that call (nest_asyncio). Other jobs take their steps there. What follows from it, in every release:

- each `await` of a tool happens at its own time, and other jobs run in between;
- calls return last in, first out: a tool that has ended goes on only when those that began to wait after it have ended;
- what a tool prints goes to the code that began to wait last, because `print` is replaced for the whole process;
- about 50 jobs can be in async tools at once; the next one gets a RecursionError.

So the waits here are calls on one stack too. No second thread or stack is needed for that, but for one thing: a run
that stops at a given time while a tool is waited for (`SeparateStack`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from enum import Enum, auto
from typing import Any, Final, Generic, TypeVar

from statek_sim import progress
from statek_sim.clock import FOREVER
from statek_sim.errors import AsyncToolStuck
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.context import Execution, current_execution, printing_to
from statek_sim.runtime.state.status import WorkerKilled
from statek_sim.runtime.state.tool_loop import STUCK, Running, Timer, ToolLoop, in_charge
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.time_limit import paused

T = TypeVar("T")

MOST_NESTED: Final = 53
"""Async tools that jobs can wait for at once: what fits on Python's stack in STATEK (checked with 1.4.2 on 3.11)."""

MOST_TIMERS: Final = 200_000
"""Timers of async tools in a row that no job's step comes of; more mean that a tool never ends."""

_FRAMES_PER_WAIT: Final = 60

_DEAD: Final[list[ToolLoop]] = []
"""Loops of dead processes whose runtimes are not closed. A coroutine that is forgotten in the middle runs its
`finally`, whenever Python gets to it: what a killed process never did would happen after all, in another test."""


class Progress(Enum):
    """What came of asking for the next thing to happen."""

    MADE = auto()
    NOTHING_LEFT = auto()
    TIME_IS_UP = auto()


class Suspension:
    """The async tools of a runtime, and who waits for them.

    `advance` lets the next thing happen; `pause` leaves everything as it is until the next run, if that can be.
    """

    def __init__(
        self,
        budget: ExecutionBudget,
        now: Callable[[], float],
        plan: Callable[[Timer], None],
        advance: Callable[[], Progress],
        pause: Callable[[], bool],
        *,
        prints_apart: bool,
    ) -> None:
        self._budget = budget
        self._now = now
        self._plan = plan
        self._advance = advance
        self._pause = pause
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
        """What ends the run. It came up inside of a wait, where it is nothing that the code there may see or catch."""

    # -- the loop ----------------------------------------------------------------------------------------------------

    def begin_run(self) -> None:
        """Take note of the context that jobs run in: it is theirs again inside of another job's wait."""
        self._base = copy_context()

    def settle(self) -> None:
        """Do what tools that are not async have left to do for the running loop, which they may ask for."""
        loop = self._current_loop()
        loop.take_charge()
        if loop.has_ready:
            self._do_ready()

    def _current_loop(self) -> ToolLoop:
        if self._loop is None:
            self._loop = ToolLoop(self._now, self._plan)
        return self._loop

    def step_begins(self) -> None:
        """A job takes a step, so tools do not only keep themselves busy."""
        self._timers = 0

    def fire(self, timer: Timer) -> None:
        """Do what a tool planned for now."""
        self._timers += 1
        if self._timers > MOST_TIMERS:
            raise AsyncToolStuck(
                f"an async tool has let time pass {MOST_TIMERS:,} times, and no job has taken a step: "
                "it never ends; give it a timeout, or the run an end in time (until)"
            )
        assert self._loop is not None
        with self._printing():
            self._loop.fire(timer)

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> Running:
        """Begin to run a coroutine on behalf of the current job."""
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
        """Whether the tool has ended that was waited for last: its caller goes on before anything else."""
        return bool(self._awaited) and self._awaited[-1].done()

    def finish(self, job: Job, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Return what a coroutine comes to; until then other jobs take their steps, and time passes."""
        if len(self._waits) >= MOST_NESTED:
            coroutine.close()
            raise RecursionError("maximum recursion depth exceeded while calling a Python object")
        execution, process = current_execution(), self._process
        self._waits.append(execution)
        try:
            task = self.start(coroutine)
            if self._process != process:
                # The worker died in it, or in what it or another tool left to do, though it may have ended itself.
                raise self.killed(execution, self._death)
            if not task.done():
                self._wait(task, execution)
                progress.at(job.id, job.num_turns)
        finally:
            self._waits.pop()
        return task.result()

    def _wait(self, task: Running, execution: Execution | None) -> None:
        process, limit, held = self._process, sys.getrecursionlimit(), self._budget.hold()
        sys.setrecursionlimit(limit + _FRAMES_PER_WAIT)
        self._awaited.append(task)
        try:
            while not task.done():
                with paused():
                    self._base.copy().run(self._let_happen)
                if self.failure is not None:
                    raise self.killed(execution, "the run failed")
                if self._process != process:
                    raise self.killed(execution, self._death)
        except WorkerKilled:
            if task.done() and not task.cancelled():
                # Python would warn of an exception that nobody looks at: the dead cannot.
                task.exception()
            raise
        finally:
            del self._awaited[-1]
            self._budget.go_on(held)
            sys.setrecursionlimit(limit)

    def _let_happen(self) -> None:
        try:
            with printing_to(None):
                progress = self._advance()
                if progress is Progress.NOTHING_LEFT or (
                    progress is Progress.TIME_IS_UP and not self._pause()
                ):
                    raise AsyncToolStuck(STUCK)
        except BaseException as error:  # noqa: BLE001  # another job's, an event's, the test's
            self.failure = self.failure or error

    def raise_failure(self) -> None:
        """Raise what ended the run inside of a wait, if anything did; nobody goes on with the tools then."""
        failure, self.failure = self.failure, None
        if failure is not None:
            self.die("the run failed")
            raise failure

    # -- death -------------------------------------------------------------------------------------------------------

    def die(self, reason: str) -> None:
        """The process is dead: no tool goes on, not even to clean up; waits end as soon as they are looked at."""
        self._process += 1
        self._death = reason
        if self._loop is not None:
            self._loop.dead = True
            self._lost.append(self._loop)
            self._loop = None
            _DEAD.append(self._lost[-1])

    def close(self) -> None:
        """Let go of the tools that died: from now on nobody minds that Python has them clean up."""
        self.die("closed")
        lost, self._lost = self._lost, []
        for loop in lost:
            _DEAD.remove(loop)
            loop.close_tasks()

    @staticmethod
    def killed(execution: Execution | None, reason: str) -> WorkerKilled:
        """Return what unwinds the calls of a dead process, and keep its code from doing anything while it does."""
        if execution is not None:
            execution.killed = reason
        return WorkerKilled(reason)


class SeparateStack(Generic[T]):
    """`work` on its own stack. `go_on` begins or continues it; `work` itself may `pause`."""

    def __init__(self, work: Callable[[], T]) -> None:
        # Not at the top: most runs have no end in time and need no second stack.
        import greenlet  # type: ignore[import-untyped]  # noqa: PLC0415

        self._greenlet: Any = greenlet
        self._calls: Any = greenlet.greenlet(work)
        self._calls.gr_context = copy_context()
        self._outside = self._deeper = 0

    @property
    def ended(self) -> bool:
        """Whether the work is over."""
        return bool(self._calls.dead)

    def is_current(self) -> bool:
        """Return whether this is asked from the work itself."""
        return self._greenlet.getcurrent() is self._calls

    def go_on(self) -> T | None:
        """Let the work go on until it pauses (None) or ends; what it raises is raised here."""
        self._calls.parent = self._greenlet.getcurrent()
        # Python has one recursion limit for all stacks: what the work added to it is there while the work goes on.
        outside = self._outside = sys.getrecursionlimit()
        sys.setrecursionlimit(outside + self._deeper)
        try:
            result: T | None = self._calls.switch()
        finally:
            sys.setrecursionlimit(outside)
        return result

    def pause(self) -> None:
        """Leave the work as it is; returns when somebody goes on with it."""
        self._deeper = sys.getrecursionlimit() - self._outside
        self._calls.parent.switch()


class RunStack:
    """Calls `begin` once, then `advance` until that makes no more progress."""

    def __init__(self, begin: Callable[[], None], advance: Callable[[], Progress]) -> None:
        self._begin = begin
        self._advance = advance
        self._runs = 0
        self._unwinding = False
        self._stack: SeparateStack[bool] | None = None

    @property
    def running(self) -> bool:
        """Whether jobs are being stepped, so that there is somebody to let time pass."""
        return self._runs > 0

    @property
    def begun(self) -> bool:
        """Whether a run with an end in time was left in the middle."""
        return self._stack is not None

    def run(self, until: float) -> bool:
        """Run, or go on, to the end or to the virtual second `until`; return whether everything settled."""
        if self._stack is None:
            if until >= FOREVER:
                return self._run()
            self._stack = SeparateStack(self._run)
        return self._go_on()

    def pause(self) -> bool:
        """Return to whoever runs this, in the middle of waiting for an async tool; False if that cannot be."""
        if self._stack is None or not self._stack.is_current():
            return False
        self._stack.pause()
        return True

    def unwind(self) -> None:
        """End the calls that a run left in the middle."""
        if self._stack is None or self._stack.is_current():
            return
        self._unwinding = True
        try:
            self._go_on()
        finally:
            self._unwinding = False

    def _go_on(self) -> bool:
        """Go on on a stack of its own: a run with an end in time may have to stop while a tool is waited for."""
        assert self._stack is not None
        settled = False
        try:
            # Whoever runs this may have a running loop of his own.
            with in_charge(None):
                settled = bool(self._stack.go_on())
        finally:
            if self._stack.ended:
                self._stack = None
        return settled

    def _run(self) -> bool:
        self._runs += 1
        with in_charge(None):
            return self._run_on()

    def _run_on(self) -> bool:
        try:
            self._begin()
            while not self._unwinding:
                progress = self._advance()
                if progress is not Progress.MADE:
                    return progress is Progress.NOTHING_LEFT
            return False
        finally:
            self._runs -= 1
