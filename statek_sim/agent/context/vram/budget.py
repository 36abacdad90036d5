"""How many tokens of context fit: by the formula, and by the rule of thumb of document 004 §5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim.agent.context.vram.cards import MIB, Card
from statek_sim.agent.context.vram.shape import KvShape
from statek_sim.errors import BadInput

SHARE: Final = 0.70
"""The part of the free memory that is used (004 §5, "to avoid thrashing")."""

DOCUMENT_RATES: Final[Mapping[str, float]] = {"Q4_K_M": 0.35, "Q8_0": 0.65, "FP16": 1.30}
"""MB per 1,000 tokens by the quantisation of the weights (004 §5), about a hundred times too low for an 8B model."""
DOCUMENT_CAP: Final = 128_000
DOCUMENT_DEFAULT: Final = 8_192


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


def document_budget(listing: str | None, quantisation: str = "Q8_0") -> int:
    """Return what `estimate_safe_token_budget` does (004 §5).

    `listing`: what `nvidia-smi --query-gpu=memory.free` prints, a line for each card, None where it fails. Only the
    first card counts, an unknown quantisation is taken for Q8_0, and everything that goes wrong is 8,192.
    """
    rate = DOCUMENT_RATES.get(quantisation, 0.65)
    try:
        if listing is None:
            raise FileNotFoundError("nvidia-smi")
        free = int(listing.strip().split("\n")[0])
        return min(int((free * 0.70 / rate) * 1000), DOCUMENT_CAP)
    except Exception:  # noqa: BLE001  # as in the document
        return DOCUMENT_DEFAULT


def document_listing(found: Sequence[Card]) -> str:
    """Return what the document's query would print for these cards."""
    return "".join(f"{card.free}\n" for card in found)


def mib(number: float) -> float:
    """Return bytes as MiB."""
    return number / MIB
