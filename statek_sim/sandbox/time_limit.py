"""CPU time and memory limits for a block of model-written code, because the budget does not count all work.

A CPU timer (SIGPROF) raises `BudgetExceeded` repeatedly until the block has ended. This stops Python code,
and C code that checks for signals, such as `re` and arithmetic with large integers. An address space limit
turns an allocation that is too large into a MemoryError. If C code does not return, `last_resort` ends the
process with a traceback that contains the block. The limits apply only in the main thread, and only if the
process has no watchdog. Whether code exceeds the limits depends on the machine; code that stays within them
has the same trace on every machine.
"""

from __future__ import annotations

import faulthandler
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final, TypeVar, final

from statek_sim import progress
from statek_sim.process_size import process_size
from statek_sim.sandbox.budget import ExecutionBudget

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockLimits:
    """The limits for a block: `seconds` of CPU time, and `memory` growth in bytes."""

    seconds: float = 4.0
    memory: int = 1 << 30


GRACE: Final = 1.0
"""Seconds of CPU time between the timer and the last resort."""

_AGAIN: Final = 0.1
"""Seconds of CPU time after which `BudgetExceeded` is raised again if the code caught it."""

_SHOWN: Final = 400
"""Maximum number of the block's characters shown in a traceback; Python truncates names after 500 characters."""


@dataclass(slots=True)
class _Process:
    """The state of the limits in this process; signals and resource limits are process-wide."""

    limits: BlockLimits | None
    has_last_resort: bool
    handles_timer: bool
    running: _Timer | None
    """The running block's timer."""


_PROCESS: Final = _Process(BlockLimits(), has_last_resort=False, handles_timer=False, running=None)


def _is_possible() -> bool:
    """Return whether the limits apply.

    Signals only arrive in the main thread. A watchdog, if there is one, kills and reports a run instead.
    """
    return threading.current_thread() is threading.main_thread() and not progress.is_watched()


@contextmanager
def block_limits(limits: BlockLimits | None) -> Iterator[None]:
    """Set the limits for blocks that run inside the `with` statement; None means no limits."""
    before, _PROCESS.limits = _PROCESS.limits, limits
    try:
        yield
    finally:
        _PROCESS.limits = before


@contextmanager
def last_resort(report_to: int) -> Iterator[None]:
    """End the process if a block inside the `with` statement runs for `GRACE` seconds beyond its limit.

    The traceback is written to the file descriptor `report_to`. SIGVTALRM ends the process even while C code runs.
    """
    if _PROCESS.has_last_resort:
        yield
        return
    faulthandler.register(signal.SIGVTALRM, file=report_to, all_threads=False, chain=True)
    _PROCESS.has_last_resort = True
    try:
        yield
    finally:
        _PROCESS.has_last_resort = False
        faulthandler.unregister(signal.SIGVTALRM)


@contextmanager
def timer_handled() -> Iterator[None]:
    """Install the timer's signal handler for all blocks inside the `with` statement."""
    if _PROCESS.handles_timer or not _is_possible():
        yield
        return
    before: Any = signal.getsignal(signal.SIGPROF)

    def handle(number: int, frame: FrameType | None) -> None:
        if _PROCESS.running is not None:
            _PROCESS.running.end(frame)
        elif callable(before):
            before(number, frame)

    signal.signal(signal.SIGPROF, handle)
    _PROCESS.handles_timer = True
    try:
        yield
    finally:
        _PROCESS.handles_timer = False
        signal.signal(signal.SIGPROF, signal.SIG_DFL if before is None else before)


def limited(budget: ExecutionBudget, source: str, run: Callable[[], T]) -> T:
    """Execute the block `source` within the limits by calling `run`, and return the result.

    If the block exceeds the CPU time or memory limit, stop `budget` and raise `BudgetExceeded`.
    """
    limits = _PROCESS.limits if _is_possible() else None
    try:
        if limits is None:
            return run()
        if not _PROCESS.handles_timer:
            with timer_handled():
                return limited(budget, source, run)
        with _Timer(budget, limits):
            return _named_after(source, run)() if _PROCESS.has_last_resort else run()
    except MemoryError:
        budget.out_of_memory()


@contextmanager
def paused() -> Iterator[None]:
    """Pause the timers inside the `with` statement, for code that is not part of the block."""
    if not _is_possible():
        yield
        return
    left = [(timer, signal.setitimer(timer, 0)) for timer in (signal.ITIMER_PROF, signal.ITIMER_VIRTUAL)]
    try:
        yield
    finally:
        for timer, rest in left:
            signal.setitimer(timer, *rest)


@final
class _Timer:
    """Context manager that sets the limits for one block and restores the previous ones; blocks may be nested."""

    __slots__ = ("_budget", "_last", "_limits", "_memory", "_outer", "_rest")

    def __init__(self, budget: ExecutionBudget, limits: BlockLimits) -> None:
        self._budget = budget
        self._limits = limits

    def __enter__(self) -> None:
        seconds = self._limits.seconds
        self._memory = _lowered(self._limits.memory)
        self._outer, _PROCESS.running = _PROCESS.running, self
        self._rest = signal.setitimer(signal.ITIMER_PROF, seconds, _AGAIN)
        self._last = (
            signal.setitimer(signal.ITIMER_VIRTUAL, seconds + GRACE) if _PROCESS.has_last_resort else None
        )

    def __exit__(self, *_: object) -> None:
        if self._last is not None:
            signal.setitimer(signal.ITIMER_VIRTUAL, *self._last)
        signal.setitimer(signal.ITIMER_PROF, 0)
        _PROCESS.running = self._outer
        if self._rest[0]:
            signal.setitimer(signal.ITIMER_PROF, *self._rest)
        if self._memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, self._memory)

    def end(self, frame: FrameType | None) -> None:
        """Stop the block's budget; do nothing if the signal arrives while the block is ending."""
        if frame is not None and frame.f_code is _LEAVING:
            return
        self._budget.stop(
            f"the code used more than {self._limits.seconds:g} s of CPU time in one step, which "
            "depends on the machine; the likely cause is a search or computation that takes too long"
        )


_LEAVING: Final = _Timer.__exit__.__code__


def _lowered(memory: int) -> tuple[int, int] | None:
    """Limit the process's growth to `memory` bytes; return the previous limits, or None if nothing changed."""
    size = process_size()
    if size is None:
        return None
    before = soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = size[0] + memory
    if any(limit != resource.RLIM_INFINITY and limit <= wanted for limit in before):
        return None
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    return soft, hard


def _named_after(source: str, run: Callable[[], T]) -> Callable[[], T]:
    """Return a function that calls `run` and has the block's source in its name, where tracebacks from C show it."""

    def block() -> T:
        return run()

    block.__code__ = block.__code__.replace(co_name=f"block {source[:_SHOWN]!r}")
    return block
