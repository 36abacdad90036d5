"""Work on a Dask cluster: the only module that uses `distributed`, from the extra `dask`.

Tasks are sent out, two per thread at a time, and results are put in order by number here. The scheduler reassigns the
work of a worker that died. If it gives up a task, because every worker that had it died, the task runs again alone on
the cluster, so that a task that kills workers is identified and its neighbours are done. Workers use the same code as
this process.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final, Generic, TypeVar

from distributed import Client, Future, wait
from distributed.client import FuturesCancelledError
from distributed.scheduler import KilledWorker

from statek_sim.errors import BadInput
from statek_sim.executors.executor import Executor, Pending
from statek_sim.executors.limits import WatchdogLimits
from statek_sim.executors.pool import Killed
from statek_sim.executors.worker import Raised, answer

R = TypeVar("R")

CONNECT: Final = 10.0
"""Seconds for a scheduler to answer."""
WORKERS: Final = 30.0
"""Seconds for which a cluster may have no workers, at the start and later."""
LOOK: Final = 5.0
"""Seconds between two checks for workers."""
IN_FLIGHT: Final = 2
"""Tasks per thread of the cluster: one that runs, and one that waits there."""
GONE: Final = "the scheduler is gone, with the work that it had"
AHEAD: Final = 20_000
"""Maximum results waiting for an earlier one."""


class DaskExecutor(Executor):
    """Runs work on the cluster whose scheduler is at `address`, `HOST:PORT`.

    The workers need the same statek_sim, the same major and minor Python, and access to the same files. Resource limits
    are set by the workers (`--memory-limit`): limits given here are not enforced.

    Raises BadInput if no scheduler answers, and if there are no workers.
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

    def submit(self, function: Callable[..., R], *arguments: Any) -> Pending[R]:
        """Start one task."""
        mapping = _Mapping(self._client, self._address, function, [arguments], self.width)
        return Pending(partial(next, iter(mapping)))

    def map(
        self,
        function: Callable[..., R],
        tasks: Iterable[tuple[Any, ...]],
        *,
        limits: WatchdogLimits | None = None,  # the workers' machines have their own
        prepare: Callable[[], None] | None = None,  # workers load what they need
    ) -> Generator[R | Killed, None, None]:
        """Yield the result of each task, in order."""
        mapping: _Mapping[R] = _Mapping(self._client, self._address, function, tasks, self.width)
        try:
            yield from mapping
        finally:
            mapping.cancel()

    def close(self) -> None:
        """Disconnect from the cluster, which stays unchanged."""
        self._client.close()


class _Mapping(Generic[R]):
    """Tasks in progress: to be sent, sent, suspected, or finished."""

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
        """Yield the results, in order."""
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
        """Cancel tasks whose results are no longer needed."""
        if self._flying:
            self._client.cancel([*self._flying], force=True)
            self._flying.clear()

    def _sent(self, function: Callable[..., R]) -> Future:
        try:
            blob = pickle.dumps(function)
        except Exception as error:  # noqa: BLE001  # foreign values
            raise self._bad(f"the work cannot be sent to other processes: {error}") from None
        # Submitted as a task, not as a scattered value: if its worker dies, it is recomputed.
        key = f"statek-sim-{hashlib.blake2b(blob, digest_size=12).hexdigest()}"
        return self._client.submit(loaded, blob, key=key)

    def _fill(self) -> None:
        """Send as many tasks as the cluster should have."""
        while not self._ended and len(self._flying) < IN_FLIGHT * self._width and len(self._came) < AHEAD:
            task = next(self._todo, None)
            self._ended = task is None
            if task is not None:
                self._send(task)
        if self._ended and not self._flying and self._suspects:
            # Alone, so that no other task can be what kills its worker.
            self._alone = self._suspects[0][0]
            self._send(self._suspects.popleft())

    def _send(self, task: Task) -> None:
        future = self._client.submit(do_piece, self._function, task[1], code_here(), pure=False)
        self._flying[future] = task

    def _collect(self) -> None:
        """Wait for some results, and keep them."""
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
        # In the order of sending: which of several failures is reported first must not depend on chance.
        for future in [each for each in self._flying if each in done]:
            self._take(future, self._flying.pop(future))

    def _take(self, future: Future, task: Task) -> None:
        if future.status != "finished":
            self._failed(future, task)
            return
        came = future.result()
        if isinstance(came, OtherCode):
            raise self._bad(f"a worker has {came.worker}, this process {code_here()}: results could differ")
        self._came[task[0]] = came

    def _failed(self, future: Future, task: Task) -> None:
        error = None if future.status == "cancelled" else future.exception()
        if error is None:
            self._cancelled(task)
            return
        if not isinstance(error, KilledWorker):
            raise self._bad(f"a worker failed: {type(error).__name__}: {error}")
        # A task that waits with one that kills workers is abandoned with it.
        if task[0] == self._alone:
            self._came[task[0]] = Killed("every worker that had the task died", "")
        else:
            self._suspects.append(task)

    def _cancelled(self, task: Task) -> None:
        """Resend a task that a living scheduler cancelled, as it does if the worker with the code died."""
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
        # Written by our own worker.
        value: R | Raised = pickle.loads(came)
        if isinstance(value, Raised):
            value.throw()
        return value

    def _bad(self, what: str) -> BadInput:
        return BadInput(f"--executor dask:{self._address}: {what}")


Task = tuple[int, tuple[Any, ...]]
"""The number of a task, and its arguments."""

_ONE_AT_A_TIME: Final = threading.Lock()
"""Runs change process-wide state, such as the recursion limit; a worker may have several threads."""


@dataclass(frozen=True, slots=True)
class OtherCode:
    """A worker refused work: its Python or its statek_sim differs, so its results might differ."""

    worker: str


@cache
def code_here() -> str:
    """Return the versions that affect results: Python's, and the digest of statek_sim's sources."""
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
    """Unpickle the function: a separate task, so that it is sent once."""
    # Written by the client.
    return pickle.loads(blob)


def do_piece(function: Callable[..., Any], arguments: tuple[Any, ...], code: str) -> bytes | OtherCode:
    """Run a task if this worker has the client's `code`; return its pickled result."""
    if code_here() != code:
        return OtherCode(code_here())
    with _ONE_AT_A_TIME:
        return answer(function, arguments)
