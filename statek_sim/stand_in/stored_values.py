"""What a stored object can hold: the rules of `statek_sim.runtime.stored`, with a hint to who reads the error."""

from __future__ import annotations

from typing import Any

from statek_sim.runtime.stored.attributes import attribute
from statek_sim.runtime.stored.containers import Kept
from statek_sim.runtime.stored.kinds import STORED_MARK as STORED_MARK


def kept(value: Any, owner: str, name: str) -> Kept:
    """Return what attribute `name` of a stored `owner` keeps of `value`; what it refuses is dbzero's error."""
    try:
        return attribute(value)
    except (AttributeError, TypeError) as refused:
        refused.add_note(
            f"{owner}.{name} cannot be {type(value).__name__} {value!r}: dbzero stores numbers, texts, bytes, dates, "
            "times, functions of modules, its own enums, @memo objects, and collections of these"
        )
        raise
