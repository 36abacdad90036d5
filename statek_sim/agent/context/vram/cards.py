"""The graphics cards of a machine, as `nvidia-smi` lists them; what runs it is an argument."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from statek_sim.errors import BadInput

MIB: Final = 1024 * 1024
"""Bytes of a mebibyte, which is what `nvidia-smi` counts in."""

QUERY: Final = (
    "nvidia-smi",
    "--query-gpu=index,name,memory.total,memory.used,memory.free",
    "--format=csv,noheader,nounits",
)
_SECONDS: Final = 10.0

RunSmi = Callable[[], str]
"""Returns what the query prints; raises `BadInput` where it cannot be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One card; memory in MiB. `used` is what this and other programs hold already."""

    index: int
    name: str
    total: int
    used: int
    free: int


def nvidia_smi() -> str:
    """Return what `nvidia-smi` prints about the cards."""
    try:
        done = subprocess.run(QUERY, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except FileNotFoundError:
        raise BadInput("there is no nvidia-smi here; say the free memory with --free MIB") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BadInput(f"nvidia-smi: {error}; say the free memory with --free MIB") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise BadInput(f"nvidia-smi exits with {done.returncode}: {lines[0] if lines else 'it says nothing'}")
    return done.stdout


def cards(run: RunSmi = nvidia_smi) -> list[Card]:
    """Return all cards; `BadInput` for a line that is none, and where there is no card."""
    found = [_card(line) for line in run().splitlines() if line.strip()]
    if not found:
        raise BadInput("nvidia-smi lists no card; say the free memory with --free MIB")
    return found


def _card(line: str) -> Card:
    # A name may have a comma, a number has none.
    parts = [part.strip() for part in line.split(",")]
    try:
        total, used, free = (int(part) for part in parts[-3:])
        return Card(index=int(parts[0]), name=", ".join(parts[1:-3]), total=total, used=used, free=free)
    except ValueError:
        raise BadInput(
            f"nvidia-smi: {line.strip()!r} is no card, expected index, name, total, used, free in MiB; "
            "a card without memory of its own says [N/A], and then --free MIB does"
        ) from None
