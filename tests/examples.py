"""How much is tried: a share in `make test`, everything in `make thorough`, which sets `STATEK_SIM_EXAMPLES=all`."""

from __future__ import annotations

import os
from typing import Final

EVERYTHING: Final = os.environ.get("STATEK_SIM_EXAMPLES") == "all"
SHARE: Final = 4
"""One of so many is tried otherwise."""


def examples(most: int) -> int:
    """Return how many of `most` examples are tried now, at least one."""
    return most if EVERYTHING else max(1, most // SHARE)
