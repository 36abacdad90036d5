"""How many tokens of context fit into the memory of graphics cards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim.agent.context.vram.cards import MIB
from statek_sim.agent.context.vram.shape import KvShape
from statek_sim.errors import BadInput

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
