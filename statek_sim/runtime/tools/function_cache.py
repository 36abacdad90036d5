"""Something worked out once per function, and forgotten with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

V = TypeVar("V")


def once_per_function(build: Callable[[Callable[..., Any]], V]) -> Callable[[Callable[..., Any]], V]:
    """Return `build` with its results kept for as long as the function they belong to lives.

    A tool made in a test often closes over that test's whole world: a cache of the usual kind would keep the last
    thousand worlds alive. A result must not refer to its function, or both stay. What has no hash or no weak
    references is worked out every time.
    """
    known: WeakKeyDictionary[Callable[..., Any], V] = WeakKeyDictionary()

    @wraps(build)
    def remembered(function: Callable[..., Any]) -> V:
        try:
            return known[function]
        except KeyError:
            known[function] = result = build(function)
            return result
        except TypeError:
            return build(function)

    return remembered
