"""How many items a value unfolds to when its shared parts are copied: `x = [x, x]` forty times, a million million."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final

_VIEWS: Final[tuple[type, ...]] = (type({}.keys()), type({}.values()), type({}.items()))
_CONTAINERS: Final[tuple[type, ...]] = (
    list, tuple, dict, set, frozenset, deque, slice, BaseException, *_VIEWS,
)  # fmt: skip
_SCALARS: Final = frozenset({int, float, bool, complex, type(None)})
_FLAT: Final = _SCALARS | {str}
_MAX_NESTING: Final = 400

# What a container holds is up to model-written code.
Value = Any


def is_container(value: Value) -> bool:
    """Return whether walking `value` means walking what is inside it."""
    return type(value) not in _SCALARS and isinstance(value, _CONTAINERS)


MOST_UNFOLDED: Final = 5_000_000
"""Items that may be copied or compared at once: `x = [x, x]` forty times is a million million."""


def unfolded_size(value: Value) -> int:
    """Return how many items a walk through `value` meets that goes into a shared part each time it meets it.

    Worked out from the parts, each of which is looked at once, so it takes no longer than there is data. Containers
    more than 400 levels down, and one that is met inside itself, count as one item.
    """
    sizes: dict[int, int] = {}
    # The entries of a dict's view are made anew: while they are held, no other one has their identity.
    held: list[list[Value]] = []
    open_: list[_Counting] = []
    container: Value | None = value
    while True:
        if container is not None:
            inside = _inside(container)
            held.append(inside)
            flat = len(open_) >= _MAX_NESTING or set(map(type, inside)) <= _FLAT
            # Until all of it is counted: one item.
            sizes[id(container)] = 1
            open_.append(_Counting(container, iter(() if flat else inside), len(inside)))
        container = _next_inside(open_[-1], sizes)
        if container is None:
            done = open_.pop()
            sizes[id(done.container)] = done.total
            if not open_:
                return done.total
            open_[-1].total += done.total


class _Counting:
    """A container whose items are being counted: those that remain, and how many there are so far."""

    __slots__ = ("container", "rest", "total")

    def __init__(self, container: Value, rest: Iterator[Value], total: int) -> None:
        self.container = container
        self.rest = rest
        self.total = total


def _next_inside(counting: _Counting, sizes: Mapping[int, int]) -> Value | None:
    """Count items up to the next container whose size is not known, and return it; None when there is none."""
    for item in counting.rest:
        if is_container(item):
            known = sizes.get(id(item))
            if known is None:
                return item
            counting.total += known
    return None


def _inside(container: Value) -> list[Value]:
    if isinstance(container, dict):
        return [part for item in container.items() for part in item]
    if isinstance(container, set):
        return list(set.__iter__(container))
    if isinstance(container, slice):
        return [container.start, container.stop, container.step]
    if isinstance(container, BaseException):
        return list(container.args)
    return list(frozenset.__iter__(container)) if isinstance(container, frozenset) else list(container)
