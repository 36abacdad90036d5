"""Noticing code that never ends, or that eats the machine: STATEK has nothing that stops it.

Both are measured in what the process used, so that a machine with much to do changes nothing. A process that is
found out says so and is killed, as an operator or the system would kill it.
"""

from __future__ import annotations

import resource
import signal
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from statek.executors import utils

MOST_SECONDS: Final = 1.0
"""Processor seconds that one block of code may take; a scenario's blocks take a thousandth of one."""

MOST_BYTES: Final = 512 * 2**20
"""Memory that the process may have more than at the beginning, as of a small container."""

_EVERY: Final = 0.02


class Watchdog:
    """Watches while code runs. `lost(kind, message)` is called once and does not come back."""

    def __init__(self, lost: Callable[[str, str], None]) -> None:
        self._lost = lost
        self._begun = 0.0
        self._at_first = _memory()
        signal.signal(signal.SIGPROF, self._look)

    def install(self) -> None:
        """Watch every block of code from now on."""
        run = utils._exec_code_body

        @wraps(run)
        def watched(*args: Any, **kwargs: Any) -> None:
            self._begun = _seconds()
            signal.setitimer(signal.ITIMER_PROF, _EVERY, _EVERY)
            try:
                run(*args, **kwargs)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)

        utils._exec_code_body = watched

    def _look(self, *_: object) -> None:
        if _memory() - self._at_first > MOST_BYTES:
            self._lost(
                "OutOfMemory", f"killed: the code has taken more than {MOST_BYTES // 2**20} MiB of memory"
            )
        elif _seconds() - self._begun > MOST_SECONDS:
            self._lost(
                "NeverEnds", f"killed: the code ran for {MOST_SECONDS:g} s of processor time without an end"
            )


def _seconds() -> float:
    """Return the seconds of processor time that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _memory() -> int:
    """Return the most bytes of memory that this process has had."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
