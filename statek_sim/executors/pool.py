"""Runs tasks in worker processes under a watchdog, returns results in order, and kills tasks that exceed their limits.

A worker runs many tasks, and is replaced only if it is killed or dies. Workers are forked from this
process if that is safe, because importing the package takes a second. Otherwise they are started as new
processes.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Generic, TypeVar
from weakref import WeakSet

from statek_sim.executors.limits import WatchdogLimits
from statek_sim.executors.worker import Place, Raised, Use, serve
from statek_sim.process_size import PAGE

_TICKS: Final = os.sysconf("SC_CLK_TCK")


def use_of(process_id: int) -> Use | None:
    """Return a process's CPU time and memory, or None if they cannot be read or the process has ended."""
    try:
        # The name in the second field may contain anything, so fields are counted from the closing parenthesis.
        fields = Path(f"/proc/{process_id}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return Use((int(fields[11]) + int(fields[12])) / _TICKS, int(fields[21]) * PAGE)


R = TypeVar("R")
_OURS: Final[WeakSet[Connection]] = WeakSet()
"""This process's end of the pipe to each worker."""
_Task = tuple[int, tuple[Any, ...]]
"""A task's number and its arguments."""
LOOK: Final = 0.02
"""Seconds between checks on workers that have not answered."""
AHEAD: Final = 48
"""The number of tasks per worker that may be started ahead of the awaited task."""


class _Died:
    """The result of a task whose worker died, to be retried once. It is not None, because tasks may return None."""


@dataclass(frozen=True, slots=True)
class Killed:
    """The result of a task that was killed. `why` is a short reason; `where` is the task's last step, or empty.

    `after` is how long the task ran, in real seconds.
    """

    why: str
    where: str
    after: float = field(default=0.0, compare=False)

    def __str__(self) -> str:
        """Return the reason and the last step in one sentence."""
        return f"killed by the watchdog: {self.why}{f' in {self.where}' if self.where else ''}"


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(slots=True)
class _Worker:
    """A worker process, its current task (or None), the task's start, and the time of the last resource check.

    A worker has one task at a time, so it is always reading when the parent writes to it.
    """

    process: BaseProcess
    pipe: Connection
    place: Place
    task: _Task | None = None
    begun: float = 0.0
    looked: float = 0.0

    @property
    def since(self) -> float:
        """When the current run started. For an idle worker, a task starts when the worker reads it."""
        return max(self.begun, self.place.began)

    def give(self, task: _Task) -> bool | Raised:
        """Send a task to the worker.

        Return False if the worker has died, or `Raised` if the arguments cannot be pickled.
        """
        try:
            packed = ForkingPickler.dumps(task[1])
        except Exception as error:  # noqa: BLE001  # foreign values
            return Raised(error, traceback.format_exc())
        try:
            self.pipe.send_bytes(packed)
        except OSError:
            return False
        self.task = task
        self.begun = self.looked = time.monotonic()
        return True


class Pool(Generic[R]):
    """A pool of worker processes that each call `function`; use it in a `with` block, or `close` it.

    `limits` apply to each task; None means no limits. Workers are started when there are tasks. `prepare`
    loads the modules and data that all workers need; it is called once, in this process, before the first
    worker is forked.
    """

    def __init__(
        self,
        function: Callable[..., R],
        *,
        limits: WatchdogLimits | None,
        workers: int | None = None,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        self._function = function
        self._prepare = prepare
        self._limits = limits
        self._size = workers or cores()
        self._context = _context()
        self._workers: list[_Worker] = []
        self._todo: deque[_Task] = deque()
        self._came: dict[int, R | Killed | Raised] = {}
        self._open: set[int] = set()
        self._died: set[int] = set()
        self._numbers = 0

    def __enter__(self) -> Pool[R]:
        """Return the pool."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the pool."""
        self.close()

    def close(self) -> None:
        """End all workers, including busy ones."""
        for worker in self._workers:
            _end(worker)
        self._workers.clear()

    @property
    def possible(self) -> bool:
        """Whether the function can be sent to workers: it must be picklable unless workers are forked."""
        if self._context.get_start_method() == "fork":
            return True
        return _can_be_sent(self._function)

    def run(self, *arguments: Any) -> R | Killed:
        """Run one task and return its result, or `Killed`; re-raises the task's exception."""
        return self.result(self.submit(*arguments))

    def submit(self, *arguments: Any) -> int:
        """Queue a task to start as soon as a worker is free; return its number for `result`."""
        number = self._add(arguments)
        self._hand_out(number)
        return number

    def result(self, number: int) -> R | Killed:
        """Return the result of task `number` once; re-raises the task's exception."""
        if number not in self._open:
            raise ValueError(f"no task {number}, or its result was already returned")
        while number not in self._came:
            self._look()
            self._hand_out(number)
        self._open.discard(number)
        came = self._came.pop(number)
        if isinstance(came, Raised):
            came.throw()
        return came

    def map(self, tasks: Iterable[tuple[Any, ...]]) -> Iterator[R | Killed]:
        """Yield the result of each task, in order; exceptions are raised at their position."""
        numbers = [self._add(arguments) for arguments in tasks]
        try:
            for number in numbers:
                self._hand_out(number)
                yield self.result(number)
        finally:
            # If the caller stops early, some answers would never be read.
            self._forget(frozenset(numbers))

    def _add(self, arguments: tuple[Any, ...]) -> int:
        self._todo.append((self._numbers, arguments))
        self._open.add(self._numbers)
        self._numbers += 1
        return self._numbers - 1

    def _forget(self, numbers: frozenset[int]) -> None:
        """Discard these tasks and the workers that run them."""
        self._open -= numbers
        for worker in [each for each in self._workers if each.task is not None and each.task[0] in numbers]:
            self._drop(worker)
        self._todo = deque(task for task in self._todo if task[0] not in numbers)
        for number in numbers:
            self._came.pop(number, None)

    def _hand_out(self, wanted: int) -> None:
        """Give every idle worker a task, and start workers while there are more tasks."""
        todo = self._todo
        while todo and todo[0][0] < wanted + AHEAD * self._size:
            worker = next((each for each in self._workers if each.task is None), None)
            if worker is None:
                if len(self._workers) == self._size:
                    return
                worker = self._start()
            given = worker.give(todo[0])
            if isinstance(given, Raised):
                self._came[todo.popleft()[0]] = given
            elif given:
                todo.popleft()
            else:
                self._drop(worker)

    def _look(self) -> None:
        """Wait briefly for answers; store them, and the results of workers that died."""
        busy = [(worker, worker.task) for worker in self._workers if worker.task is not None]
        ready = wait([worker.pipe for worker, _ in busy], LOOK)
        for worker, task in busy:
            if worker.pipe in ready:
                self._take(worker, task, self._answer(worker, task[0]))
            elif self._limits is not None and (why := _exceeded(worker, self._limits)) is not None:
                self._take(worker, task, _killed(worker, why))

    def _take(self, worker: _Worker, task: _Task, came: R | Killed | Raised | _Died) -> None:
        """Store the result of a worker's task, or queue the task again if its worker died for the first time."""
        worker.task = None
        if isinstance(came, _Died):
            self._died.add(task[0])
            self._todo.appendleft(task)
        else:
            self._came[task[0]] = came
        if isinstance(came, _Died | Killed):
            self._drop(worker)

    def _answer(self, worker: _Worker, number: int) -> R | Killed | Raised | _Died:
        """Return a worker's answer.

        For a dead worker, return `Killed` or, the first time, `_Died`, so that the task is retried. The
        system may have killed the worker for a reason unrelated to the task, for example because memory ran
        low. If another worker dies on the same task, the task is taken to be the cause.
        """
        try:
            sent = worker.pipe.recv_bytes()
        except (EOFError, OSError):
            # The worker may also die while sending an answer that is too long for the pipe.
            why = _death(worker.process, self._limits)
            used_up = self._limits is not None and why == _cpu_words(self._limits)
            first = number not in self._died
            return _Died() if first and not used_up else _killed(worker, why)
        return _unpacked(sent)  # type: ignore[no-any-return]  # what the function returns

    def _start(self) -> _Worker:
        if self._prepare is not None and self._context.get_start_method() == "fork":
            self._prepare()
            self._prepare = None
        worker = _started(self._context, self._function, self._limits)
        self._workers.append(worker)
        return worker

    def _drop(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        _end(worker)


def _can_be_sent(function: Callable[..., Any]) -> bool:
    try:
        pickle.dumps(function)
    except Exception:  # noqa: BLE001  # foreign values
        return False
    return True


def _unpacked(sent: bytes) -> Any:
    """Return a worker's answer. An answer that cannot be unpickled is an error for its task alone."""
    try:
        return pickle.loads(sent)
    except Exception:  # noqa: BLE001  # foreign values
        return Raised(None, traceback.format_exc())


def _started(context: BaseContext, function: Callable[..., Any], limits: WatchdogLimits | None) -> _Worker:
    """Return a new worker that calls `function`."""
    ours, theirs = context.Pipe()
    place = Place(context, None if limits is None else limits.cpu)
    _OURS.add(ours)
    # A forked worker inherits this process's ends of all pipes; while it holds them, no worker notices that we exit.
    inherited = tuple(_OURS) if context.get_start_method() == "fork" else ()
    process = context.Process(  # type: ignore[attr-defined]  # every context has it
        target=serve, args=(theirs, function, place, inherited), daemon=True
    )
    with warnings.catch_warnings():
        # Since Python 3.12, fork warns about any thread, including library threads that wait in C and hold no
        # lock.
        warnings.filterwarnings(
            "ignore", message=".*multi-threaded, use of fork", category=DeprecationWarning
        )
        process.start()
    theirs.close()
    return _Worker(process, ours, place)


def _killed(worker: _Worker, why: str) -> Killed:
    return Killed(why, worker.place.read(), time.monotonic() - worker.since)


def _exceeded(worker: _Worker, limits: WatchdogLimits) -> str | None:
    """Describe the limit that a worker exceeds, or return None."""
    moment = time.monotonic()
    if moment - worker.looked < LOOK:
        return None
    worker.looked = moment
    if moment - worker.since > limits.wall:
        return f"{limits.wall:g} s passed"
    now, before = use_of(worker.process.pid or 0), worker.place.before
    if now is None or not before.memory:
        return None
    if now.cpu - before.cpu > limits.cpu:
        return _cpu_words(limits)
    if now.memory - before.memory > limits.memory:
        return f"{limits.memory // 2**20} MiB of memory"
    return None


def _cpu_words(limits: WatchdogLimits) -> str:
    return f"{limits.cpu:g} s CPU"


def _death(process: BaseProcess, limits: WatchdogLimits | None) -> str:
    """Describe why a worker died, if this pool did not kill it."""
    process.join(5)
    code = process.exitcode
    if code == -signal.SIGXCPU and limits is not None:
        return _cpu_words(limits)
    if code is not None and code < 0:
        return f"its process was killed by {signal.Signals(-code).name}"
    return f"its process ended with exit code {code}"


def _end(worker: _Worker) -> None:
    """Kill a worker and its children, because a command started by a tool would otherwise continue unsupervised."""
    worker.pipe.close()
    started = [] if worker.process.pid is None else _started_by(worker.process.pid)
    worker.process.kill()
    for process_id in started:
        with suppress(OSError):
            os.kill(process_id, signal.SIGKILL)
    worker.process.join()


def _started_by(process_id: int) -> list[int]:
    """Return the ids of a process's descendants, except detached ones; empty if `/proc` is not readable."""
    below: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((place / "stat").read_bytes().rpartition(b")")[2].split()[1])
            below.setdefault(parent, []).append(int(place.name))
    found: list[int] = []
    waiting = [process_id]
    while waiting:
        children = below.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def _context() -> BaseContext:
    """Return the process start method: fork if that is safe, because importing takes a second."""
    # Other threads may hold locks, which would never be released in a forked copy.
    if sys.platform == "linux" and threading.active_count() == 1:
        return multiprocessing.get_context("fork")
    return multiprocessing.get_context("forkserver")
