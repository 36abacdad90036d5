"""This process as a worker: its name, its clock, its sign of life, and which workers of this machine are dead.

`Heartbeat` renews the lease of a run while a block is worked on. Its thread touches the lease and nothing else: neither
the virtual clock, the trace nor the rows of a run know of it.
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
"""Where a process's state, and its start in ticks since the machine's, are after its command in `/proc/PID/stat`."""

_DEAD: Final = frozenset({"Z", "X", "x"})
"""States of a process that has ended: a zombie is there until its parent asks how it ended."""


def worker_name() -> str:
    """Return `host/number/world/start/token`: a process's number means something in its world only.

    A world is one boot of a machine and one namespace of process numbers: containers may share the name of a host, and
    each may have a process 1. Empty where the system does not tell. The token is of this process alone.
    """
    number = os.getpid()
    node = (platform.node() or "machine").replace("/", "_")
    return "/".join((node, str(number), _world(), _start_of(number), _token(number)))


def real_seconds() -> float:
    """Return the seconds by which all workers measure leases."""
    return time.time()


def is_gone(worker: str) -> bool:
    """Return whether a worker is a process of this machine that has ended, also one that is a zombie yet.

    False for all that cannot be known.
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
    # Another process may have its number by now.
    return bool(stat) and (stat[_STATE] in _DEAD or stat[_START] != start)


def _world() -> str:
    try:
        machine = f"{_BOOT.read_text('ascii').strip()} {os.readlink(_NAMESPACE)}"
    except OSError:
        return ""
    return hashlib.sha256(machine.encode()).hexdigest()[:12]


def _stat(number: int) -> list[str]:
    """Return what `/proc` says about a process after its command; nothing where there is no `/proc`."""
    with suppress(OSError):
        # A command may have spaces and brackets of its own.
        fields = Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return fields if len(fields) > _START else []
    return []


def _start_of(number: int) -> str:
    stat = _stat(number)
    return stat[_START] if stat else ""


@cache
def _token(_number: int) -> str:
    """Return what no other process has; a fork has a number, and so a token, of its own."""
    return os.urandom(4).hex()


BEATS: Final = 3
"""So often in the time of one lease it is begun anew: two renewals may fail before others may take the run."""


class Heartbeat:
    """Renews the lease of a run while a block is worked on.

    `taken` is the error of a renewal that another worker's claim had made impossible. Any other failure to renew is
    left to the next one, and to the next commit, which tells it.
    """

    def __init__(self, store: Store, lease: Lease) -> None:
        self._store = store
        self._lease = lease
        self.taken: Fenced | None = None

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Renew the lease as long as the block lasts, however little it commits."""
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
