"""The seam between those who have many independent pieces of work and those who do them, and the local executors.

`executor_for` makes the one that the words of `--executor` mean. `ProcessExecutor` is what commands use by default;
`SerialExecutor` does all here and now, without a watchdog.
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
    """A piece of work that was submitted."""

    def result(self) -> R_co | Killed:
        """Wait for what comes of it, or what ended it; raises what it raised."""
        ...


class Executor(Protocol):
    """Does pieces of work: here, in processes of this machine, or on other machines; use it in a `with` block.

    What comes of work is the same with any executor, and so is its order. A piece of work whose worker dies is done
    again; one whose workers always die is `Killed`, and the others are done.
    """

    @property
    def width(self) -> int:
        """How many pieces of work are done at a time, as far as is known."""
        ...

    def submit(self, function: Callable[..., R], *arguments: Any) -> Pending[R]:
        """Begin one piece of work; `function` and its arguments can be pickled."""
        ...

    def map(
        self,
        function: Callable[..., R],
        tasks: Iterable[tuple[Any, ...]],
        *,
        limits: WatchdogLimits | None = None,
        prepare: Callable[[], None] | None = None,
    ) -> Generator[R | Killed, None, None]:
        """Yield what comes of `function` with each of the `tasks`' arguments, in their order.

        What one of them raises is raised in its turn. `limits` are what one piece of work may use of the machine, where
        it is done by a process of this one's own. `prepare` loads what all workers would load, before they are made.
        """
        ...

    def close(self) -> None:
        """End the workers that were started for it."""
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
    """Return what `serial`, `processes`, `processes:4` or `dask:HOST:PORT` asks for; None: processes.

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
        # Optional, and a second to import.
        from statek_sim.executors.dask_cluster import DaskExecutor  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("dask", "distributed"):
            raise
        raise BadInput(f"--executor {text}: needs pip install 'pytest-statek[dask]'") from None
    return DaskExecutor(address)


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
