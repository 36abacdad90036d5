"""What a process uses of the machine, read from outside: `/proc` on Linux, elsewhere only the time that passes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Use:
    """Seconds of processor time and bytes of resident memory of a process so far."""

    cpu: float
    memory: int


def use_of(process_id: int) -> Use | None:
    """Return what a process uses; None where that cannot be read, or when it is gone."""
    try:
        # The name in the second field may hold anything, so that fields count from its closing bracket.
        fields = Path(f"/proc/{process_id}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return Use((int(fields[11]) + int(fields[12])) / _TICKS, int(fields[21]) * _PAGE)
