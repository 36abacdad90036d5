"""Runs tasks on a Dask cluster. Only this module uses `distributed`, from the `dask` extra.

Results are in task order. If a worker dies, the scheduler repeats its task elsewhere. If every worker that
was given a task dies, the task runs once more while the cluster runs nothing else, to determine which task
was the cause. Workers must run the same code as this process.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import islice
from typing import Any, Final, TypeVar

from distributed import Client, Future, wait
from distributed.scheduler import KilledWorker

from statek_sim.errors import BadInput
from statek_sim.executors.executor import Executor, Pending
from statek_sim.executors.limits import WatchdogLimits
from statek_sim.executors.pool import Killed
from statek_sim.executors.worker import Raised, answer

R = TypeVar("R")

CONNECT: Final = 10.0
"""Seconds to wait for a scheduler to answer."""
WORKERS: Final = 30.0
"""Seconds to wait for a worker when the cluster has none, at the start or later."""
LOOK: Final = 5.0
"""Seconds between checks for workers."""
GONE: Final = "the scheduler was lost, along with its work"
IN_FLIGHT: Final = 8
"""The number of tasks sent ahead of the next result, for each thread that the cluster has at the start."""


class DaskExecutor(Executor):
    """Runs tasks on the cluster whose scheduler is at `address` (`HOST:PORT`).

    The workers need the same statek_sim, the same Python version (major and minor), and access to the same
    files. Set resource limits on the workers (`--memory-limit`); limits given here are not enforced.

    Raises BadInput if no scheduler answers or there are no workers.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        where = address if "://" in address else f"tcp://{address}"
        try:
            self._client: Any = Client(where, timeout=CONNECT, set_as_default=False)
        except OSError:
            raise BadInput(
                f"--executor dask:{address}: no answer from a scheduler within {CONNECT:g} s"
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
        """The total number of threads across all workers."""
        threads: Iterable[int] = self._client.nthreads().values()
        return max(1, sum(threads))

    def submit(self, function: Callable[..., R], *arguments: Any) -> Pending[R]:
        """Start one task on the cluster; `function` and its arguments must be picklable."""
        task = _Task(self._packed(function), arguments)
        return Pending(partial(self._result, self._start(task), task, ()))

    def map(
        self,
        function: Callable[..., R],
        tasks: Iterable[tuple[Any, ...]],
        *,
        limits: WatchdogLimits | None = None,  # the workers' machines have their own limits
        prepare: Callable[[], None] | None = None,  # workers load what they need themselves
    ) -> Generator[R | Killed, None, None]:
        """Yield the result of each task, in order."""
        packed, ahead = self._packed(function), IN_FLIGHT * self.width
        left = (_Task(packed, arguments) for arguments in tasks)
        sent: deque[tuple[Future, _Task]] = deque()
        try:
            while True:
                sent.extend((self._start(task), task) for task in islice(left, ahead - len(sent)))
                if not sent:
                    return
                future, task = sent.popleft()
                yield self._result(future, task, [other for other, _ in sent])
        finally:
            if sent and self._client.status == "running":
                self._client.cancel([future for future, _ in sent], force=True)

    def _packed(self, function: Callable[..., Any]) -> bytes:
        try:
            return pickle.dumps(function)
        except Exception as error:  # noqa: BLE001  # foreign values
            raise self._bad(
                f"the function or its arguments cannot be sent to other processes: {error}"
            ) from None

    def _start(self, task: _Task) -> Future:
        return self._client.submit(do_piece, task.function, task.arguments, code_here(), pure=False)

    def _result(self, future: Future, task: _Task, others: Iterable[Future]) -> Any:
        """Return a task's result when it is done; `others` are the tasks that were sent after it."""
        try:
            return self._value(future)
        except KilledWorker:
            # The scheduler also gives up on the tasks that were queued on the same worker.
            with self._client.as_current():
                wait([*others])
        try:
            return self._value(self._start(task))
        except KilledWorker:
            return Killed("every worker that ran the task died", "")

    def _value(self, future: Future) -> Any:
        """Return a task's result when it is done.

        Raises `KilledWorker` if the scheduler gave up on the task, and `BadInput` for errors in the cluster
        itself.
        """
        without_workers = 0.0
        while True:
            try:
                came = future.result(timeout=LOOK)
            except TimeoutError:
                if self._client.status != "running":
                    raise self._bad(GONE) from None
                without_workers = 0.0 if self._client.nthreads() else without_workers + LOOK
                if without_workers >= WORKERS:
                    raise self._bad(f"the scheduler has had no worker for {WORKERS:g} s") from None
            except KilledWorker:
                raise
            except CancelledError:
                raise self._bad(GONE) from None
            except Exception as error:  # noqa: BLE001  # errors of the cluster: those of the task are in its result
                raise self._bad(f"a worker failed: {type(error).__name__}: {error}") from None
            else:
                if isinstance(came, OtherCode):
                    raise self._bad(
                        f"a worker runs {came.worker}, but this process runs {code_here()}; results could differ"
                    )
                # Written by a worker of this package.
                value = pickle.loads(came)
                if isinstance(value, Raised):
                    value.throw()
                return value

    def _bad(self, what: str) -> BadInput:
        return BadInput(f"--executor dask:{self._address}: {what}")

    def close(self) -> None:
        """Disconnect from the cluster without stopping it."""
        self._client.close()


@dataclass(frozen=True, slots=True)
class _Task:
    """A pickled function and its arguments."""

    function: bytes
    arguments: tuple[Any, ...]


_ONE_AT_A_TIME: Final = threading.Lock()
"""Runs change process-wide state, such as the recursion limit, and a worker may have several threads."""


@dataclass(frozen=True, slots=True)
class OtherCode:
    """A worker's refusal to run a task because its version of Python or statek_sim differs."""

    worker: str


@cache
def code_here() -> str:
    """Return the Python version and a digest of statek_sim's sources; both may affect results."""
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


def do_piece(function: bytes, arguments: tuple[Any, ...], code: str) -> bytes | OtherCode:
    """Return a task's pickled result, or `OtherCode` if this worker's code differs from the client's `code`."""
    if code_here() != code:
        return OtherCode(code_here())
    with _ONE_AT_A_TIME:
        # Written by the client.
        return answer(pickle.loads(function), arguments)
