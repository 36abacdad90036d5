"""This process's name and clock as a worker, lease renewal, and the detection of dead workers."""

from __future__ import annotations

import hashlib
import os
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

from statek_sim.errors import BadStore, Fenced
from statek_sim.store.protocol import Lease, Store

_PARTS: Final = 5
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE: Final = Path("/proc/self/ns/pid")
_STATE: Final = 0
_START: Final = 19
"""Positions of a process's state and start time (in ticks since boot) among the fields after the command in
`/proc/PID/stat`.
"""

_DEAD: Final = frozenset({"Z", "X", "x"})
"""States of a process that has ended: a zombie exists until its parent waits for it."""


def worker_name() -> str:
    """Return this process's name as a worker: `host/pid/world/start/token`.

    `world` identifies the machine's boot and the pid namespace, because a process id is unique only within
    these; it is empty on systems without `/proc`. `start` is the process's start time, and `token` is unique
    to it.
    """
    number = os.getpid()
    node = (platform.node() or "machine").replace("/", "_")
    return "/".join((node, str(number), _world(), _start_of(number), _token(number)))


def real_seconds() -> float:
    """Return the time in seconds on the clock that all workers use for leases."""
    return time.time()


def is_gone(worker: str) -> bool:
    """Return whether a worker is a process on this machine that has ended or is a zombie; False if unknown."""
    parts = worker.split("/")
    if len(parts) != _PARTS:
        return False
    _, number, world, start, _ = parts
    if not (number.isdecimal() and world and start) or world != _world():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    stat = _stat(int(number))
    # Another process may be using the same id by now.
    return bool(stat) and (stat[_STATE] in _DEAD or stat[_START] != start)


def _world() -> str:
    try:
        machine = f"{_BOOT.read_text('ascii').strip()} {os.readlink(_NAMESPACE)}"
    except OSError:
        return ""
    return hashlib.sha256(machine.encode()).hexdigest()[:12]


def _stat(number: int) -> list[str]:
    """Return the fields of `/proc/PID/stat` after the command; empty if they cannot be read."""
    with suppress(OSError):
        # A command may contain spaces and parentheses.
        fields = Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return fields if len(fields) > _START else []
    return []


def _start_of(number: int) -> str:
    stat = _stat(number)
    return stat[_START] if stat else ""


@cache
def _token(_number: int) -> str:
    """Return a random token for this process.

    A forked process has a different id, and therefore gets its own token.
    """
    return os.urandom(4).hex()


BEATS: Final = 3
"""Renewals per lease time: two renewals may fail before another worker can claim the run."""


class Heartbeat:
    """Renews a run's lease in a thread, which accesses nothing else of the run.

    `taken` is the error from a renewal after another worker claimed the run. If a renewal fails for any other
    reason, the next renewal tries again, and the next commit reports the error.
    """

    def __init__(self, store: Store, lease: Lease) -> None:
        self._store = store
        self._lease = lease
        self.taken: Fenced | None = None

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Renew the lease during the block, even without commits."""
        over = threading.Event()
        thread = threading.Thread(target=self._beat, args=(over,), name="statek-lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _beat(self, over: threading.Event) -> None:
        while not over.wait(self._store.lease_seconds / BEATS):
            try:
                self._store.renew(self._lease)
            except Fenced as error:
                self.taken = error
                return
            except BadStore:
                continue
