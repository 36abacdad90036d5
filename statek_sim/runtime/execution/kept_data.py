"""How much a job keeps from block to block: each block has limits of its own, but many of them add up."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Final

from statek_sim.runtime.state.pyenv import PyEnv
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.llm_repr import StoredCollection

STEPS_KEPT: Final = 4
"""A job may keep as much as four blocks may build."""

_OBJECT: Final = 56
_WIDE: Final = 4
_SEQUENCES: Final = (list, tuple, set, frozenset, deque, StoredCollection)

# What a job keeps is whatever its code has made.
Value = Any


def check_kept(env: PyEnv, budget: ExecutionBudget) -> None:
    """Stop the code of a job whose names hold too much, before it adds to it."""
    limit = STEPS_KEPT * budget.allocation
    if weight(env.local_state, limit) > limit:
        budget.stop(
            f"the job keeps more than {limit:,} bytes of data from turn to turn; the likely cause is a list or text "
            "that every turn makes longer"
        )


def weight(names: Mapping[str, Value], limit: int) -> int:
    """Return how many bytes the values of `names` hold, each counted once, or something above `limit`.

    Reckoned, not measured, so that it is the same everywhere.
    """
    total = 0
    met: set[int] = set()
    pending: list[Value] = list(names.values())
    while pending and total <= limit:
        value = pending.pop()
        if id(value) in met:
            continue
        met.add(id(value))
        total += _OBJECT + _own_bytes(value)
        pending += _inside(value)
    return total


def _own_bytes(value: Value) -> int:
    if isinstance(value, str):
        return len(value) if value.isascii() else _WIDE * len(value)
    if isinstance(value, bytes):
        return len(value)
    if type(value) is int:
        return value.bit_length() >> 3
    if isinstance(value, dict):
        return 64 * len(value)
    return 8 * len(value) if isinstance(value, _SEQUENCES) else 0


def _inside(value: Value) -> Iterable[Value]:
    if isinstance(value, StoredCollection):
        # Those shown as a dict have the methods of one.
        stored: Value = value
        try:
            return [*stored, *stored.values()] if issubclass(value.shown_as, dict) else list(stored)
        except Exception:  # noqa: BLE001  # the code that reads it hears what the store has against it
            return ()
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, set):
        return list(set.__iter__(value))
    if isinstance(value, frozenset):
        return list(frozenset.__iter__(value))
    return value if isinstance(value, _SEQUENCES) else ()
