"""This process's memory use."""

from __future__ import annotations

import gc
import resource
import sys
from pathlib import Path
from typing import Final

_STATM: Final = Path("/proc/self/statm")
_PEAK_UNIT: Final = 1 if sys.platform == "darwin" else 1024


def resident_bytes() -> int:
    """Return the resident memory in bytes after garbage collection; without /proc, the peak."""
    gc.collect()
    if _STATM.exists():
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _PEAK_UNIT
