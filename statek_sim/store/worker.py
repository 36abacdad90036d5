"""This process as a worker: its name, its clock, and which workers of this machine are certainly dead."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

_PARTS: Final = 5
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE: Final = Path("/proc/self/ns/pid")
_START: Final = 19
"""Where a process's start, in ticks since the machine's, is in what follows its command in `/proc/PID/stat`."""


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
    """Return whether a worker is a process of this machine that is no more; False for all that cannot be known."""
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
    # Another process may have its number by now.
    return _start_of(int(number)) not in ("", start)


def _world() -> str:
    try:
        machine = f"{_BOOT.read_text('ascii').strip()} {os.readlink(_NAMESPACE)}"
    except OSError:
        return ""
    return hashlib.sha256(machine.encode()).hexdigest()[:12]


def _start_of(number: int) -> str:
    with suppress(OSError, IndexError):
        # A command may have spaces and brackets of its own.
        return Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[_START]
    return ""


@cache
def _token(_number: int) -> str:
    """Return what no other process has; a fork has a number, and so a token, of its own."""
    return os.urandom(4).hex()
