"""A worker process: does one piece of work after another, and says where it is while it does.

The parent reads from a pipe what came of each; half a kilobyte of shared memory holds the job and turn of the moment,
which is all that can be known of a process that is killed in the middle of C code.
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

_PLACE_BYTES: Final = 512
_CREDENTIAL: Final = re.compile(
    r"SECRET|PASSW(OR)?D|PASSPHRASE|CREDENTIAL|(KEY|TOKEN|AUTH)(_?\d+|_ID|_FILE|_BASE64|_SOCK)?\Z",
    re.IGNORECASE,
)
"""Names of environment variables that hold credentials; `STATEK_MAX_TOKEN_USAGE` and `MAX_TOKENS` hold none."""

PAGE: Final = os.sysconf("SC_PAGE_SIZE")
"""Bytes in which the kernel counts memory."""


@dataclass(frozen=True, slots=True)
class Use:
    """Seconds of processor time and bytes of resident memory of a process so far."""

    cpu: float
    memory: int


class Place(progress.Listener):
    """Where a worker is, in memory that it shares with its parent: `turn 3 of job main`, and how its run began.

    The worker itself notes what it has used when a run begins: it costs less than to ask for it from outside.
    """

    def __init__(self, context: BaseContext, cpu: float | None) -> None:
        self._text = context.RawArray("c", _PLACE_BYTES)
        self._began = context.RawValue("d", 0.0)
        self._used = context.RawValue("d", 0.0)
        self._memory = context.RawValue("Q", 0)
        self._cpu = cpu
        self._statm = -1
        self.ends_runs = cpu is not None

    def at(self, job: str, turns: int) -> None:
        """Keep a job and the number of turns that it has had."""
        place = f"turn {turns} of job {job}" if turns else f"the first step of job {job}"
        self._text.value = place.encode("utf-8", "replace").replace(b"\0", b"?")[: _PLACE_BYTES - 1]

    def afresh(self) -> None:
        """Forget where the last run was; the one that begins has all its time before it."""
        self._text.value = b""
        spent = resource.getrusage(resource.RUSAGE_SELF)
        self._used.value = spent.ru_utime + spent.ru_stime
        self._memory.value = self._resident()
        self._began.value = time.monotonic()
        if self._cpu is not None:
            _allow(self._used.value + self._cpu)

    def _resident(self) -> int:
        if self._statm < 0:
            try:
                self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return 0
        return int(os.pread(self._statm, 100, 0).split()[1]) * PAGE

    @property
    def began(self) -> float:
        """When the last run began, by the clock that does not go back; all processes of a machine have the same."""
        return float(self._began.value)

    @property
    def before(self) -> Use:
        """What the worker had used when the last run began."""
        return Use(float(self._used.value), int(self._memory.value))

    def read(self) -> str:
        """Return the last step as text, empty before the first one of a run."""
        return str(self._text.value, "utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Raised:
    """A piece of work raised `error`; `told` is its traceback, for an error that cannot be sent."""

    error: BaseException | None
    report: str

    def throw(self) -> NoReturn:
        """Raise it here."""
        if self.error is None:
            raise RuntimeError(f"a worker's error or result cannot be sent between processes:\n{self.report}")
        raise self.error


def serve(
    pipe: Connection, function: Callable[..., Any], place: Place, inherited: Iterable[Connection]
) -> None:
    """Do what comes through `pipe` until it is closed: `function` with the arguments that were sent.

    `inherited` are the parent's own ends of pipes, which a copy of it has to let go.
    """
    for other in inherited:
        other.close()
    # The parent decides what an interrupt means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    forget_credentials(os.environ)
    progress.listen(place)
    begin_runs()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            sent = pipe.recv_bytes()
            place.afresh()
            # Arguments that cannot be read are an error of that piece of work.
            pipe.send_bytes(answer(_call, (function, sent)))


def forget_credentials(environment: MutableMapping[str, str]) -> None:
    """Remove the variables whose names say that they hold a key, token, secret or password.

    Model-written code runs in this process, and what it gets hold of lands in reports.
    """
    for name in [name for name in environment if _CREDENTIAL.search(name)]:
        del environment[name]


def _call(function: Callable[..., Any], sent: bytes) -> object:
    return function(*pickle.loads(sent))


def answer(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """Return what comes of a piece of work, or `Raised`, pickled."""
    try:
        came: object = function(*arguments)
    except BaseException as error:  # noqa: BLE001  # whatever it is, it belongs to the parent
        came = Raised(error, traceback.format_exc())
    _flush()
    try:
        sent = pickle.dumps(came, pickle.HIGHEST_PROTOCOL)
        if isinstance(came, Raised):
            # Errors that want more arguments than they keep can be written and not be read.
            pickle.loads(sent)
        return sent
    except Exception:  # noqa: BLE001  # foreign values
        report = came.report if isinstance(came, Raised) else traceback.format_exc()
        return pickle.dumps(Raised(None, report), pickle.HIGHEST_PROTOCOL)


def _allow(cpu: float) -> None:
    """Let the kernel end this process after `cpu` seconds of processor time in all, and one to spare.

    That is for where the parent cannot read what a process uses, and for a parent that is gone.
    """
    soft = math.ceil(cpu) + 1
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard < 0 else min(soft, hard), hard))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
