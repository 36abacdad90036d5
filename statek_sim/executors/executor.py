"""The interface for running many independent tasks, and the local executors.

`ProcessExecutor` is the default in commands; `SerialExecutor` runs everything in this process, without a watchdog.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from functools import partial
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from statek_sim.executors.limits import WatchdogLimits
from statek_sim.executors.pool import Killed, Pool, cores

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Pending(Generic[R_co]):
    """A submitted task; `wait` blocks until the task is done and returns its result."""

    def __init__(self, wait: Callable[[], R_co | Killed]) -> None:
        self._wait = wait
        self._came: list[R_co | Killed] = []

    def result(self) -> R_co | Killed:
        """Wait for the task and return its result, or `Killed` with the reason; re-raises the task's exception."""
        if not self._came:
            self._came.append(self._wait())
        return self._came[0]


class Executor(Protocol):
    """Runs tasks in this process, in other local processes, or on other machines; use it in a `with` block.

    Results and their order are the same with any executor. If a worker dies, its task is retried. If a
    worker dies again on that task, the task's result is `Killed`. All other tasks are completed.
    """

    @property
    def width(self) -> int:
        """The number of tasks that can run at the same time."""
        ...

    def submit(self, function: Callable[..., R], *arguments: Any) -> Pending[R]:
        """Start one task; `function` and its arguments must be picklable."""
        ...

    def map(
        self,
        function: Callable[..., R],
        tasks: Iterable[tuple[Any, ...]],
        *,
        limits: WatchdogLimits | None = None,
        prepare: Callable[[], None] | None = None,
    ) -> Generator[R | Killed, None, None]:
        """Yield the result of `function` for each argument tuple in `tasks`, in order.

        A task's exception is raised at its position. `limits` are the resources that each task may use if it
        runs in a child process. `prepare` is called before workers are created, so that workers share the
        modules and data that it loads.
        """
        ...

    def close(self) -> None:
        """End all of this executor's workers."""
        return

    def __enter__(self) -> Self:
        """Return the executor."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the executor."""
        self.close()


def _call(function: Callable[..., R], *arguments: Any) -> R:
    return function(*arguments)


class ProcessExecutor(Executor):
    """Runs tasks in `workers` processes; None means one for each core that this process may use.

    A process that dies is replaced, and its task is retried. A task that kills two processes has the result
    `Killed`.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or cores()
        self._submitted: Pool[Any] | None = None

    @property
    def width(self) -> int:
        """The number of processes."""
        return self._workers

    def submit(self, function: Callable[..., R], *arguments: Any) -> Pending[R]:
        """Start one task in a persistent process, without a time limit."""
        if self._submitted is None:
            self._submitted = Pool(_call, limits=None, workers=self._workers)
        return Pending(partial(self._submitted.result, self._submitted.submit(function, *arguments)))

    def map(
        self,
        function: Callable[..., R],
        tasks: Iterable[tuple[Any, ...]],
        *,
        limits: WatchdogLimits | None = None,
        prepare: Callable[[], None] | None = None,
    ) -> Generator[R | Killed, None, None]:
        """Yield the result of each task, in order.

        Runs the tasks in this process if one process suffices and there are no limits, or if new processes
        would need a pickled function and it cannot be pickled.
        """
        every = list(tasks)
        workers = min(self._workers, len(every))
        pool = Pool(function, limits=limits, workers=workers, prepare=prepare)
        if (workers <= 1 and limits is None) or not pool.possible:
            yield from (function(*arguments) for arguments in every)
            return
        with pool:
            yield from pool.map(every)

    def close(self) -> None:
        """End the persistent processes."""
        if self._submitted is not None:
            self._submitted.close()
            self._submitted = None


class SerialExecutor(Executor):
    """Runs all tasks in this process without a watchdog: limits are not enforced, and a task may hang forever."""

    @property
    def width(self) -> int:
        """Always 1."""
        return 1

    def submit(self, function: Callable[..., R], *arguments: Any) -> Pending[R]:
        """Store a task, which runs when its result is requested."""
        return Pending(partial(function, *arguments))

    def map(
        self,
        function: Callable[..., R],
        tasks: Iterable[tuple[Any, ...]],
        *,
        limits: WatchdogLimits | None = None,  # there is no watchdog in this process
        prepare: Callable[[], None] | None = None,  # modules and data are loaded on use
    ) -> Generator[R | Killed, None, None]:
        """Yield the result of each task, in order."""
        for arguments in tasks:
            yield function(*arguments)
