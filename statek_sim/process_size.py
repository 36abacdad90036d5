"""This process's memory use, which is subject to limits on blocks and runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

PAGE: Final = os.sysconf("SC_PAGE_SIZE")
"""The size of a memory page in bytes, the unit in `/proc/self/statm`."""


@dataclass(slots=True)
class _Open:
    """The open file with the memory use of `process`; a forked process opens its own file."""

    process: int = 0
    file: int = -1


_OPEN: Final = _Open()


def process_size() -> tuple[int, int] | None:
    """Return the size of the address space and of resident memory in bytes, or None on systems without `/proc`.

    The file stays open: this function runs for each block, and opening the file would take a fifth of a block's time.
    """
    try:
        if _OPEN.process != os.getpid():
            _OPEN.file = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
            _OPEN.process = os.getpid()
        total, resident, *_ = os.pread(_OPEN.file, 100, 0).split()
    except OSError:
        return None
    return int(total) * PAGE, int(resident) * PAGE
