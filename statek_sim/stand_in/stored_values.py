"""What a stored object can hold: the rules of `statek_sim.runtime.stored`, with the errors of attributes."""

from __future__ import annotations

from typing import Any

from statek_sim.runtime.stored import containers
from statek_sim.runtime.stored.kinds import STORED_MARK as STORED_MARK


def kept(value: Any, owner: str, name: str) -> Any:
    """Return `value` as attribute `name` of a stored `owner` keeps it; what it cannot keep is an AttributeError."""
    found = containers.kept(value)
    if found.value is containers.NOTHING and not isinstance(value, list | tuple | dict | set):
        raise AttributeError(
            f"Unsupported attribute type: {owner}.{name} cannot be {type(value).__name__} {value!r}; dbzero stores "
            "numbers, texts, bytes, dates, times, functions of modules, its own enums, @memo objects, and collections "
            "of these"
        )
    if found.error is not None:
        raise found.error
    return found.value
