"""Values of STATEK's store: as text, as the reference runtime's trace tells them, and as plain YAML values."""

from __future__ import annotations

from typing import Any

import statek
from statek.agents import Agent, DialogAgent
from statek.executors.job import Job
from statek.future import FutureResult

from statek_sim.values import JSON, Parts, TooLarge


def shown(value: Any) -> str:
    """Return the text an agent would see; for an object whose own text raises, its class and the error.

    A job, an agent or a future shows its private fields, which are the runtime's own matter: here it is named.
    """
    if isinstance(value, Job):
        return "<Object>"
    if isinstance(value, FutureResult):
        return f"{type(value).__name__}(a future)"
    if isinstance(value, Agent):
        kind = "DialogAgent" if isinstance(value, DialogAgent) else "Agent"
        return f'{kind}(role="{value.role}")'
    try:
        # Agent code may not look into everything, and STATEK may be in the middle of some.
        with statek.as_unrestricted():
            return str(statek.format_default_llm_repr(value))
    except Exception as error:  # noqa: BLE001  # the value's own __str__ or __llm_repr__
        return f"<{type(value).__name__}: {type(error).__name__}>"


def stored_value(value: Any, *, future: str | None = None) -> JSON:
    """Return a value as a YAML value, or as the text an agent would see. The store has its own lists and mappings.

    `future` stands for every future, where one is given. What is too large or contains itself is told as text.
    """
    try:
        return _plain(value, future, Parts(), 0)
    except TooLarge:
        return shown(value)


def _plain(value: Any, future: str | None, parts: Parts, depth: int) -> JSON:
    parts.one(depth)
    kind = type(value).__name__
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if future is not None and isinstance(value, FutureResult):
        return future
    if isinstance(value, list | tuple) or kind in ("List", "Tuple"):
        return [_plain(item, future, parts, depth + 1) for item in value]
    if isinstance(value, dict) or kind == "Dict":
        # No dict of it: the store's tuples, which may be its keys, have no hash.
        keys = list(value)
        if all(isinstance(key, str) for key in keys):
            return {key: _plain(value[key], future, parts, depth + 1) for key in keys}
    return shown(value)


def label(value: Any) -> str:
    """Return the name of a member of one of STATEK's enumerations."""
    return str(value).rpartition(".")[2]
