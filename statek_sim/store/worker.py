"""This process as a worker: its name, its clock, its heartbeat, and the detection of dead workers on this machine.

`Heartbeat` renews the lease of a run during a block. Its thread touches only the lease: neither the virtual clock, the
trace nor the rows of a run.
"""

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
"""Positions of a process's state, and of its start in ticks since boot, after its command in `/proc/PID/stat`."""

_DEAD: Final = frozenset({"Z", "X", "x"})
"""States of a process that has ended: a zombie exists until its parent waits for it."""


def worker_name() -> str:
    """Return `host/pid/world/start/token`: a process id is meaningful only in its world.

    A world is one boot of a machine and one pid namespace: containers may share a host name, and each may have a
    process 1. It is empty on systems that do not provide it. The token is unique to this process.
    """
    number = os.getpid()
    node = (platform.node() or "machine").replace("/", "_")
    return "/".join((node, str(number), _world(), _start_of(number), _token(number)))


def real_seconds() -> float:
    """Return the clock of all workers' leases, in seconds."""
    return time.time()


def is_gone(worker: str) -> bool:
    """Return whether a worker is a process of this machine that has ended, including a zombie.

    False if unknown.
    """
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
    # Another process may have reused the id.
    return bool(stat) and (stat[_STATE] in _DEAD or stat[_START] != start)


def _world() -> str:
    try:
        machine = f"{_BOOT.read_text('ascii').strip()} {os.readlink(_NAMESPACE)}"
    except OSError:
        return ""
    return hashlib.sha256(machine.encode()).hexdigest()[:12]


def _stat(number: int) -> list[str]:
    """Return `/proc`'s fields about a process after its command; empty without `/proc`."""
    with suppress(OSError):
        # A command may contain spaces and brackets.
        fields = Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return fields if len(fields) > _START else []
    return []


def _start_of(number: int) -> str:
    stat = _stat(number)
    return stat[_START] if stat else ""


@cache
def _token(_number: int) -> str:
    """Return a token unique to this process; a fork has another process id, and so another token."""
    return os.urandom(4).hex()


BEATS: Final = 3
"""Renewals per lease time: two may fail before others may take the run."""


class Heartbeat:
    """Renews the lease of a run during a block.

    `taken` is the error of a renewal after another worker's claim. After any other failed renewal, the next one tries
    again, and the next commit reports the error.
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
