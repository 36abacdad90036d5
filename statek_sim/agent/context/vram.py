"""How many tokens of context fit into the memory of graphics cards, which `nvidia-smi` lists."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim.agent.context.kv_cache import KvShape
from statek_sim.errors import BadInput

MIB: Final = 1024 * 1024
"""Bytes of a mebibyte, which is what `nvidia-smi` counts in."""

SHARE: Final = 0.70
"""The part of the free memory that is used (004 §5, "to avoid thrashing")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFit:
    """How much context fits: `tokens`, None for any number; `bound` says what bounds it."""

    tokens: int | None
    bound: str
    usable: int
    """Bytes that the cache may have."""
    per_token: float
    """Bytes of a token while no window is full."""


def fitting(
    shape: KvShape,
    free: Sequence[int],
    *,
    kv: str = "f16",
    weights: int = 0,
    share: float = SHARE,
    windows: bool = True,
) -> ContextFit:
    """Return how much context fits into cards with `free` bytes each.

    `weights`: bytes of the model, where it is not loaded yet and its place is still counted as free. `share`: the part
    of what is then left that is used; the rest is for the buffers of the computation. The model is taken to be split
    over all cards, as llama.cpp and vLLM do it.
    """
    if not 0 < share <= 1:
        raise BadInput(f"share is {share!r}, expected more than 0 and at most 1")
    if not free or min(free) < 0 or weights < 0:
        raise BadInput(
            f"the free memory is {list(free)!r} and the weights are {weights}: expected bytes from 0"
        )
    usable = int(max(0, sum(free) - weights) * share)
    tokens = shape.tokens_in(usable, kv, windows=windows)
    bound = "memory"
    if shape.longest is not None and (tokens is None or tokens >= shape.longest):
        tokens, bound = shape.longest, "the model's longest context"
    return ContextFit(tokens=tokens, bound=bound, usable=usable, per_token=float(shape.bytes_per_token(kv)))


def mib(number: float) -> float:
    """Return bytes as MiB."""
    return number / MIB


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
