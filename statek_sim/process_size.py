"""The memory use of this process, by which blocks and runs are limited."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

PAGE: Final = os.sysconf("SC_PAGE_SIZE")
"""Bytes of a page, the unit in which the system counts."""


@dataclass(slots=True)
class _Open:
    """The open file with the size of `process`; a forked process opens its own."""

    process: int = 0
    file: int = -1


_OPEN: Final = _Open()


def process_size() -> tuple[int, int] | None:
    """Return the size of the address space and of resident memory, in bytes; None on systems without `/proc`.

    The file stays open: this runs for each block, and opening it would take a fifth of the block's time.
    """
    try:
        if _OPEN.process != os.getpid():
            _OPEN.file = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
            _OPEN.process = os.getpid()
        total, resident, *_ = os.pread(_OPEN.file, 100, 0).split()
    except OSError:
        return None
    return int(total) * PAGE, int(resident) * PAGE
