"""Values whose sets are of a fixed order, wherever in the value they are."""

from __future__ import annotations

from collections import deque
from dataclasses import fields, is_dataclass
from typing import Any

from pydantic import BaseModel

from statek_sim.sandbox.ordered_set import stable_set


def with_ordered_sets(value: Any) -> Any:
    """Return what a conversion made with all its sets in a fixed order; models and dataclasses are changed in place.

    A tool that joins the items of a set must not differ from run to run, however deep in an argument it stands.
    """
    kind = type(value)
    if kind in (set, frozenset):
        return stable_set(kind(map(with_ordered_sets, value)))
    if kind in (list, tuple):
        return kind(map(with_ordered_sets, value))
    if kind is deque:
        return deque(map(with_ordered_sets, value), value.maxlen)
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(map(with_ordered_sets, value))
    if isinstance(value, dict):
        for key, item in value.items():
            value[key] = with_ordered_sets(item)
    elif isinstance(value, BaseModel):
        for held in (value.__dict__, value.__pydantic_extra__ or {}):
            for name, item in held.items():
                held[name] = with_ordered_sets(item)
    elif is_dataclass(value):
        for each in fields(value):
            if hasattr(value, each.name):
                # A frozen one is ours alone so far.
                object.__setattr__(value, each.name, with_ordered_sets(getattr(value, each.name)))
    return value
