"""A worker process: runs one task after another and reports its progress.

The parent reads results from a pipe. The worker writes its current job and turn to half a kilobyte of shared
memory, so that the parent knows them even if the process is killed while running C code.
"""

from __future__ import annotations

import math
import os
import pickle
import re
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from typing import Any, Final, NoReturn

from statek_sim import progress
from statek_sim.executors.limits import begin_runs
from statek_sim.process_size import process_size

_PLACE_BYTES: Final = 512
_CREDENTIAL: Final = re.compile(
    r"SECRET|PASSW(OR)?D|PASSPHRASE|CREDENTIAL|COOKIE|"
    r"(KEY|TOKEN|AUTH|BEARER|_PASS|_PWD|_PAT)(_?\d+|_ID|_FILE|_BASE64|_SOCK)?\Z",
    re.IGNORECASE,
)
"""Matches names of environment variables that hold credentials, but not `STATEK_MAX_TOKEN_USAGE` or
`MAX_TOKENS`.
"""
_LOGIN: Final = re.compile(r"://[^/\s@]*:[^/\s]+@")
"""Matches a URL with a password, such as a database's."""


@dataclass(frozen=True, slots=True)
class Use:
    """A process's CPU time in seconds and resident memory in bytes."""

    cpu: float
    memory: int


class Place(progress.Listener):
    """A worker's current position in its run, such as `turn 3 of job main`, in memory shared with its parent.

    The memory also holds the run's start time, and the worker's CPU time and memory at that time.
    """

    def __init__(self, context: BaseContext, cpu: float | None) -> None:
        self._text = context.RawArray("c", _PLACE_BYTES)
        self._began = context.RawValue("d", 0.0)
        self._used = context.RawValue("d", 0.0)
        self._memory = context.RawValue("Q", 0)
        self._cpu = cpu
        self.ends_runs = cpu is not None

    def at(self, job: str, turns: int) -> None:
        """Record a job and its turn count."""
        place = f"turn {turns} of job {job}" if turns else f"the first step of job {job}"
        self._text.value = place.encode("utf-8", "replace").replace(b"\0", b"?")[: _PLACE_BYTES - 1]

    def afresh(self) -> None:
        """Begin a new run: clear the position, and record the start time and current usage."""
        self._text.value = b""
        spent = resource.getrusage(resource.RUSAGE_SELF)
        self._used.value = spent.ru_utime + spent.ru_stime
        size = process_size()
        self._memory.value = 0 if size is None else size[1]
        self._began.value = time.monotonic()
        if self._cpu is not None:
            _allow(self._used.value + self._cpu)

    @property
    def began(self) -> float:
        """When the last run started, in seconds on the monotonic clock, which all processes on a machine share."""
        return float(self._began.value)

    @property
    def before(self) -> Use:
        """The worker's CPU time and memory at the start of the last run."""
        return Use(float(self._used.value), int(self._memory.value))

    def read(self) -> str:
        """Return the position as text; empty before the first step of a run."""
        return str(self._text.value, "utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Raised:
    """A task's exception. `error` is None if it cannot be pickled; `report` is the traceback as text."""

    error: BaseException | None
    report: str

    def throw(self) -> NoReturn:
        """Raise the exception in this process."""
        if self.error is None:
            raise RuntimeError(f"a worker's error or result cannot be sent between processes:\n{self.report}")
        raise self.error


def serve(
    pipe: Connection, function: Callable[..., Any], place: Place, inherited: Iterable[Connection]
) -> None:
    """Call `function` with each tuple of arguments received through `pipe`, until the pipe is closed.

    `inherited` are the parent's ends of all pipes, which a forked process must close.
    """
    for other in inherited:
        other.close()
    # The parent handles interrupts.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    forget_credentials(os.environ)
    progress.listen(place)
    begin_runs()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            sent = pipe.recv_bytes()
            place.afresh()
            # Arguments that cannot be unpickled are an error for that task.
            pipe.send_bytes(answer(_call, (function, sent)))


def forget_credentials(environment: MutableMapping[str, str]) -> None:
    """Remove the environment variables whose names indicate a key, token, secret or password, and URLs with one.

    Model-written code runs in this process, and any value that the code reads may appear in reports.
    """
    for name in [
        name for name, value in environment.items() if _CREDENTIAL.search(name) or _LOGIN.search(value)
    ]:
        del environment[name]


def _call(function: Callable[..., Any], sent: bytes) -> object:
    return function(*pickle.loads(sent))


def answer(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """Return a task's pickled result, or a pickled `Raised` if the task raised an exception."""
    try:
        came: object = function(*arguments)
    except BaseException as error:  # noqa: BLE001  # any error, it belongs to the parent
        came = Raised(error, traceback.format_exc())
    _flush()
    try:
        sent = pickle.dumps(came, pickle.HIGHEST_PROTOCOL)
        if isinstance(came, Raised):
            # Some errors can be pickled but not unpickled, because they do not keep all arguments.
            pickle.loads(sent)
        return sent
    except Exception:  # noqa: BLE001  # foreign values
        report = came.report if isinstance(came, Raised) else traceback.format_exc()
        return pickle.dumps(Raised(None, report), pickle.HIGHEST_PROTOCOL)


def _allow(cpu: float) -> None:
    """Make the kernel end this process after a total of `cpu + 1` seconds of CPU time.

    The kernel's limit is needed where the parent cannot read a process's usage, and if the parent has ended.
    """
    soft = math.ceil(cpu) + 1
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard < 0 else min(soft, hard), hard))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
