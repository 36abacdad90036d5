"""Values that jobs leave behind, as plain YAML values where possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from statek_sim.sandbox.llm_repr import StoredCollection
from statek_sim.values import JSON

MOST_VALUES: Final = 10_000
DEEPEST: Final = 50


class _TooLarge(Exception):
    """The value has too many parts, maybe without end."""


def plain(value: object, shown: Callable[[object], str]) -> JSON:
    """Return `value` as a YAML value; objects, and what is too large or contains itself, as `shown` text."""
    try:
        return _plain(value, shown, [MOST_VALUES], 0)
    except _TooLarge:
        return shown(value)


def _plain(value: object, shown: Callable[[object], str], left: list[int], depth: int) -> JSON:
    left[0] -= 1
    if left[0] < 0 or depth > DEEPEST:
        raise _TooLarge
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, StoredCollection) and issubclass(value.shown_as, dict):
        entries: Any = value
        # A stored tuple has no hash, so it cannot be a key here.
        if not all(isinstance(key, str) for key in entries):
            return shown(value)
        value = {key: entries[key] for key in entries}
    if isinstance(value, list | tuple) or (
        isinstance(value, StoredCollection) and issubclass(value.shown_as, list | tuple)
    ):
        return [_plain(item, shown, left, depth + 1) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(item, shown, left, depth + 1) for key, item in value.items()}
    return shown(value)
