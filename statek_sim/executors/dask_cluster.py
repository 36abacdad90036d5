"""Work that a Dask cluster does: the one module that knows `distributed`, the extra `dask`.

Pieces of work go out, two per thread at a time, and what comes of them is put in order by number here. The scheduler
gives the work of a worker that died to another one. A piece that it gives up, because every worker that had it died, is
done again alone on the cluster, so that the piece that kills workers is named and its neighbours are done. Workers do
work with the same code as here.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from distributed import Client, Future, wait
from distributed.client import FuturesCancelledError
from distributed.scheduler import KilledWorker

from statek_sim.errors import BadInput
from statek_sim.executors.limits import WatchdogLimits
from statek_sim.executors.pool import Killed
from statek_sim.executors.worker import Raised, answer

R = TypeVar("R")

CONNECT: Final = 10.0
"""Seconds until a scheduler has to answer."""
WORKERS: Final = 30.0
"""Seconds for which a cluster may have no workers, in the beginning and later."""
LOOK: Final = 5.0
"""Seconds between two looks at whether there still are workers."""
IN_FLIGHT: Final = 2
"""Pieces of work per thread of the cluster: one that is done, and one that waits there."""
GONE: Final = "the scheduler is gone, and with it what it was given"
AHEAD: Final = 20_000
"""Results that may wait for one before them."""


class DaskExecutor:
    """Does work on the cluster whose scheduler is at `address`, `HOST:PORT`.

    The workers have the same statek_sim, the same major and minor Python, and see the same files. What a run may use of
    a worker's machine is for the worker to say (`--memory-limit`): limits given here are not held.

    Raises BadInput when nobody answers there, and when there are no workers.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        where = address if "://" in address else f"tcp://{address}"
        try:
            self._client: Any = Client(where, timeout=CONNECT, set_as_default=False)
        except OSError:
            raise BadInput(
                f"--executor dask:{address}: no scheduler answers there within {CONNECT:g} s"
            ) from None
        try:
            self._client.wait_for_workers(1, timeout=WORKERS)
        except TimeoutError:
            self.close()
            raise BadInput(
                f"--executor dask:{address}: the scheduler has had no worker for {WORKERS:g} s"
            ) from None

    @property
    def width(self) -> int:
        """The threads of all workers."""
        threads: Iterable[int] = self._client.nthreads().values()
        return max(1, sum(threads))

    def submit(self, function: Callable[..., R], *arguments: Any) -> _Submitted[R]:
        """Begin one piece of work."""
        return _Submitted(iter(_Mapping(self._client, self._address, function, [arguments], self.width)))

    def map(
        self,
        function: Callable[..., R],
        tasks: Iterable[tuple[Any, ...]],
        *,
        limits: WatchdogLimits | None = None,  # the workers' machines have their own
        prepare: Callable[[], None] | None = None,  # workers load what they need
    ) -> Generator[R | Killed, None, None]:
        """Yield what comes of each piece of work, in their order."""
        mapping: _Mapping[R] = _Mapping(self._client, self._address, function, tasks, self.width)
        try:
            yield from mapping
        finally:
            mapping.cancel()

    def close(self) -> None:
        """Let the cluster go; it stays as it is."""
        self._client.close()

    def __enter__(self) -> Self:
        """Return the executor."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the cluster go."""
        self.close()


class _Submitted(Generic[R]):
    """One piece of work on the cluster."""

    def __init__(self, mapping: Iterator[R | Killed]) -> None:
        self._mapping = mapping
        self._came: list[R | Killed] = []

    def result(self) -> R | Killed:
        """Wait for it."""
        if not self._came:
            self._came.append(next(self._mapping))
        return self._came[0]


class _Mapping(Generic[R]):
    """Pieces of work on their way: those that are to be sent, are there, are suspected, or have come."""

    def __init__(
        self,
        client: Any,
        address: str,
        function: Callable[..., R],
        tasks: Iterable[tuple[Any, ...]],
        width: int,
    ) -> None:
        self._client, self._address, self._width = client, address, width
        self._todo: Iterator[Task] = iter(enumerate(tasks))
        self._flying: dict[Future, Task] = {}
        self._suspects: deque[Task] = deque()
        self._came: dict[int, bytes | Killed] = {}
        self._alone: int | None = None
        self._ended = False
        self._without_workers = 0.0
        self._work = function
        self._function = self._sent(function)
        self._fill()

    def __iter__(self) -> Iterator[R | Killed]:
        """Yield what comes, in order."""
        number = 0
        while True:
            while number not in self._came:
                if not self._flying:
                    return
                self._collect()
                self._fill()
            came = self._came.pop(number)
            self._fill()
            yield came if isinstance(came, Killed) else self._opened(came)
            number += 1

    def cancel(self) -> None:
        """Take back what nobody waits for any more."""
        if self._flying:
            self._client.cancel([*self._flying], force=True)
            self._flying.clear()

    def _sent(self, function: Callable[..., R]) -> Future:
        try:
            blob = pickle.dumps(function)
        except Exception as error:  # noqa: BLE001  # foreign values
            raise self._bad(f"the work cannot be sent to other processes: {error}") from None
        # A task and no scattered value: what died with its worker is made again.
        key = f"statek-sim-{hashlib.blake2b(blob, digest_size=12).hexdigest()}"
        return self._client.submit(loaded, blob, key=key)

    def _fill(self) -> None:
        """Send as much as the cluster should have."""
        while not self._ended and len(self._flying) < IN_FLIGHT * self._width and len(self._came) < AHEAD:
            task = next(self._todo, None)
            self._ended = task is None
            if task is not None:
                self._send(task)
        if self._ended and not self._flying and self._suspects:
            # Alone, so that nobody else can be what kills its worker.
            self._alone = self._suspects[0][0]
            self._send(self._suspects.popleft())

    def _send(self, task: Task) -> None:
        future = self._client.submit(do_piece, self._function, task[1], code_here(), pure=False)
        self._flying[future] = task

    def _collect(self) -> None:
        """Wait until something has come, and keep it."""
        try:
            with self._client.as_current():
                done = wait([*self._flying], timeout=LOOK, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            self._look_for_workers()
            return
        except FuturesCancelledError:
            for future in [each for each in self._flying if each.status == "cancelled"]:
                self._cancelled(self._flying.pop(future))
            return
        self._without_workers = 0.0
        # In the order in which they were sent: which of several failures is told first must not depend on chance.
        for future in [each for each in self._flying if each in done]:
            self._take(future, self._flying.pop(future))

    def _take(self, future: Future, task: Task) -> None:
        if future.status != "finished":
            self._failed(future, task)
            return
        came = future.result()
        if isinstance(came, OtherCode):
            raise self._bad(f"a worker has {came.worker}; here is {code_here()}: results could differ")
        self._came[task[0]] = came

    def _failed(self, future: Future, task: Task) -> None:
        error = None if future.status == "cancelled" else future.exception()
        if error is None:
            self._cancelled(task)
            return
        if not isinstance(error, KilledWorker):
            raise self._bad(f"a worker cannot do it: {type(error).__name__}: {error}")
        # Whoever waits beside a piece of work that kills workers is given up with it.
        if task[0] == self._alone:
            self._came[task[0]] = Killed("every worker that had it died", "")
        else:
            self._suspects.append(task)

    def _cancelled(self, task: Task) -> None:
        """Send a piece again that a living scheduler took back, as it does when the worker with the code died."""
        if self._client.status != "running":
            raise self._bad(GONE)
        self._function = self._sent(self._work)
        self._send(task)

    def _look_for_workers(self) -> None:
        if self._client.status != "running":
            raise self._bad(GONE)
        self._without_workers = 0.0 if self._client.nthreads() else self._without_workers + LOOK
        if self._without_workers >= WORKERS:
            raise self._bad(f"the scheduler has had no worker for {WORKERS:g} s")

    def _opened(self, came: bytes) -> R:
        # What a worker of ours wrote.
        value: R | Raised = pickle.loads(came)
        if isinstance(value, Raised):
            value.throw()
        return value

    def _bad(self, what: str) -> BadInput:
        return BadInput(f"--executor dask:{self._address}: {what}")


Task = tuple[int, tuple[Any, ...]]
"""The number of a piece of work, and its arguments."""

_ONE_AT_A_TIME: Final = threading.Lock()
"""Runs change what a whole process has, such as the depth of its stack; a worker may have several threads."""


@dataclass(frozen=True, slots=True)
class OtherCode:
    """A worker did nothing, since its Python or its statek_sim is another one and its results might be."""

    worker: str


@cache
def code_here() -> str:
    """Return the Python and the digest of the sources of statek_sim, as far as results depend on them."""
    digest = hashlib.blake2b(digest_size=8)
    for name, text in sorted(_sources(files("statek_sim"), "")):
        digest.update(name.encode() + b"\0" + text + b"\0")
    return f"Python {sys.version_info[0]}.{sys.version_info[1]}, statek_sim {digest.hexdigest()}"


def _sources(folder: Traversable, name: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for inner in folder.iterdir():
        path = f"{name}/{inner.name}"
        if inner.is_dir():
            found += _sources(inner, path)
        elif inner.name.endswith(".py"):
            found.append((path, inner.read_bytes()))
    return found


def loaded(blob: bytes) -> Any:
    """Return the function that was pickled: a task of its own, so that it travels once."""
    # What the client wrote.
    return pickle.loads(blob)


def do_piece(function: Callable[..., Any], arguments: tuple[Any, ...], code: str) -> bytes | OtherCode:
    """Do a piece of work where this worker has the client's `code`; return its pickled result."""
    if code_here() != code:
        return OtherCode(code_here())
    with _ONE_AT_A_TIME:
        return answer(function, arguments)
