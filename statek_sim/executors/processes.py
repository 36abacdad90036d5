"""Work on this machine: by processes, each under a watchdog, or here and now, one piece after the other.

`ProcessExecutor` is what commands use by default; `SerialExecutor` has no watchdog.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from statek_sim.executors.limits import WatchdogLimits
from statek_sim.executors.pool import Killed, Pool, cores

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Submitted(Generic[R]):
    """Work that one of the processes has, or will have."""

    pool: Pool[Any]
    number: int

    def result(self) -> R | Killed:
        return self.pool.result(self.number)


def _call(function: Callable[..., R], *arguments: Any) -> R:
    return function(*arguments)


class ProcessExecutor:
    """Does work in `workers` processes, None for one per core that this process may use.

    A process that dies is replaced, and its work done again; what kills two of them is `Killed`, by name.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or cores()
        self._submitted: Pool[Any] | None = None

    @property
    def width(self) -> int:
        """The number of processes."""
        return self._workers

    def submit(self, function: Callable[..., R], *arguments: Any) -> _Submitted[R]:
        """Begin one piece of work in a process that is kept for more; nobody watches how long it takes."""
        if self._submitted is None:
            self._submitted = Pool(_call, limits=None, workers=self._workers)
        return _Submitted(self._submitted, self._submitted.submit(function, *arguments))

    def map(
        self,
        function: Callable[..., R],
        tasks: Iterable[tuple[Any, ...]],
        *,
        limits: WatchdogLimits | None = None,
        prepare: Callable[[], None] | None = None,
    ) -> Generator[R | Killed, None, None]:
        """Yield what comes of each piece of work, in their order.

        Where one process would do, and nobody watches it, it is this one; so it is where processes cannot be given the
        function, because they have to start fresh and it cannot be pickled.
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
        """End the processes that are kept."""
        if self._submitted is not None:
            self._submitted.close()
            self._submitted = None

    def __enter__(self) -> Self:
        """Return the executor."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the processes that are kept."""
        self.close()


@dataclass(frozen=True, slots=True)
class _Done(Generic[R]):
    """Work that is done when somebody asks for it; asked again it is not done again."""

    come: list[R]
    function: Callable[..., R]
    arguments: tuple[Any, ...]

    def result(self) -> R | Killed:
        if not self.come:
            self.come.append(self.function(*self.arguments))
        return self.come[0]


class SerialExecutor:
    """Does all work in this process. Nobody watches it: what hangs, hangs everything, and limits are not held."""

    @property
    def width(self) -> int:
        """One at a time."""
        return 1

    def submit(self, function: Callable[..., R], *arguments: Any) -> _Done[R]:
        """Keep a piece of work until its result is asked for."""
        return _Done([], function, arguments)

    def map(
        self,
        function: Callable[..., R],
        tasks: Iterable[tuple[Any, ...]],
        *,
        limits: WatchdogLimits | None = None,  # nobody watches
        prepare: Callable[[], None] | None = None,  # it is loaded when it is used
    ) -> Generator[R | Killed, None, None]:
        """Yield what comes of each piece of work, in their order."""
        for arguments in tasks:
            yield function(*arguments)

    def close(self) -> None:
        """Nothing was started."""

    def __enter__(self) -> Self:
        """Return the executor."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing was started."""
