"""This process as a worker: its name, its clock, and which workers of this machine are certainly dead."""

from __future__ import annotations

import os
import platform
import time

_MARK = "/"


def worker_name() -> str:
    """Return the machine's name and the process's number."""
    return f"{platform.node() or 'machine'}{_MARK}{os.getpid()}"


def real_seconds() -> float:
    """Return the seconds by which all workers measure leases."""
    return time.time()


def is_gone(worker: str) -> bool:
    """Return whether a worker is a process of this machine that is no more; False for all that cannot be known."""
    node, _, number = worker.rpartition(_MARK)
    if node != worker_name().rpartition(_MARK)[0] or not number.isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
