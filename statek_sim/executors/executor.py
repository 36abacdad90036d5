"""The interface for running many independent tasks, and the local executors.

`executor_for` creates the executor for a value of `--executor`. `ProcessExecutor` is the default of commands;
`SerialExecutor` runs everything in this process, without a watchdog.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.executors.limits import WatchdogLimits
from statek_sim.executors.pool import Killed, Pool, cores

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Pending(Protocol[R_co]):
    """A submitted task."""

    def result(self) -> R_co | Killed:
        """Wait for the result, or for the reason why it was ended; raises what it raised."""
        ...


class Executor(Protocol):
    """Runs tasks: here, in processes of this machine, or on other machines; use it in a `with` block.

    Results and their order are the same with any executor. A task whose worker dies is repeated; one whose workers
    always die is `Killed`, and the others are done.
    """

    @property
    def width(self) -> int:
        """How many tasks run at a time, as far as known."""
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
        """Yield the results of `function` with each of the `tasks`' arguments, in order.

        An exception of a task is raised at its position. `limits` are the machine resources of one task, if it runs in
        a child process. `prepare` loads what all workers would load, before they are created.
        """
        ...

    def close(self) -> None:
        """End the workers that were started."""
        ...

    def __enter__(self) -> Self:
        """Return the executor."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        ...


SERIAL, PROCESSES, DASK = "serial", "processes", "dask"
_ADDRESS: Final = re.compile(r"(?:(?:tcp|tls)://)?[^\s:/]+:\d+")


def executor_for(text: str | None) -> Executor:
    """Return the executor for `serial`, `processes`, `processes:4` or `dask:HOST:PORT`; None: processes.

    Raises BadInput for anything else.
    """
    if text is None:
        return ProcessExecutor()
    name, colon, rest = text.partition(":")
    if name == SERIAL and not colon:
        return SerialExecutor()
    if name == PROCESSES:
        return ProcessExecutor(_number(text, rest) if colon else None)
    if name == DASK:
        return _dask(text, rest)
    hint = suggestion(name, (SERIAL, PROCESSES, DASK))
    raise BadInput(f"--executor {text}: expected serial, processes, processes:N or dask:HOST:PORT.{hint}")


def _number(text: str, number: str) -> int:
    if not number.isascii() or not number.isdigit() or not int(number):
        raise BadInput(f"--executor {text}: expected a number of processes above 0, such as processes:4")
    return int(number)


def _dask(text: str, address: str) -> Executor:
    if not _ADDRESS.fullmatch(address):
        raise BadInput(f"--executor {text}: expected the scheduler's address, such as dask:127.0.0.1:8786")
    try:
        # Optional, and it takes a second to import.
        from statek_sim.executors.dask_cluster import DaskExecutor  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("dask", "distributed"):
            raise
        raise BadInput(f"--executor {text}: needs pip install 'pytest-statek[dask]'") from None
    return DaskExecutor(address)


@dataclass(frozen=True, slots=True)
class _Submitted(Generic[R]):
    """A task assigned to a process, now or later."""

    pool: Pool[Any]
    number: int

    def result(self) -> R | Killed:
        return self.pool.result(self.number)


def _call(function: Callable[..., R], *arguments: Any) -> R:
    return function(*arguments)


class ProcessExecutor:
    """Runs tasks in `workers` processes, None for one per core that this process may use.

    A process that dies is replaced, and its task repeated; a task that kills two of them is `Killed`, by name.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or cores()
        self._submitted: Pool[Any] | None = None

    @property
    def width(self) -> int:
        """The number of processes."""
        return self._workers

    def submit(self, function: Callable[..., R], *arguments: Any) -> _Submitted[R]:
        """Start one task in a persistent process, without a time limit."""
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
        """Yield the result of each task, in order.

        If one process suffices and there are no limits, this process is used; also if the function cannot be sent to
        processes, because they must be started fresh and it is not picklable.
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

    def __enter__(self) -> Self:
        """Return the executor."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the persistent processes."""
        self.close()


@dataclass(frozen=True, slots=True)
class _Done(Generic[R]):
    """A task that runs when its result is first requested."""

    come: list[R]
    function: Callable[..., R]
    arguments: tuple[Any, ...]

    def result(self) -> R | Killed:
        if not self.come:
            self.come.append(self.function(*self.arguments))
        return self.come[0]


class SerialExecutor:
    """Runs everything in this process, without a watchdog.

    A task that hangs blocks everything, and limits are not enforced.
    """

    @property
    def width(self) -> int:
        """One at a time."""
        return 1

    def submit(self, function: Callable[..., R], *arguments: Any) -> _Done[R]:
        """Keep a task until its result is requested."""
        return _Done([], function, arguments)

    def map(
        self,
        function: Callable[..., R],
        tasks: Iterable[tuple[Any, ...]],
        *,
        limits: WatchdogLimits | None = None,  # there is no watchdog
        prepare: Callable[[], None] | None = None,  # it is loaded on use
    ) -> Generator[R | Killed, None, None]:
        """Yield the result of each task, in order."""
        for arguments in tasks:
            yield function(*arguments)

    def close(self) -> None:
        """Do nothing: nothing was started."""

    def __enter__(self) -> Self:
        """Return the executor."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing: nothing was started."""
