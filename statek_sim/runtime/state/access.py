"""What may be read of stored objects, and by whom: agent code is refused what the application reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

_ACCESS: ContextVar[int] = ContextVar("statek_sim_access", default=0)

FULL, RESTRICTED, IN_METHOD = 0, 1, 2
"""What may be read of stored objects: everything; what agent code may; and what their methods may for agent code."""

set_access = _ACCESS.set
reset_access = _ACCESS.reset
current_access = _ACCESS.get


def readable(name: str, value: T) -> T:
    """Return what a property of a stored object gives; dbzero refuses agent code a property that is None."""
    if value is None and current_access() == RESTRICTED:
        raise AttributeError(f"Restricted memo attribute access denied: {name}")
    return value


def missing(owner: object, name: str) -> AttributeError:
    """Return the error for an attribute that a stored object lacks: dbzero tells agent code that it is denied."""
    if current_access() == FULL:
        return AttributeError(
            f"{type(owner).__name__!r} object has no attribute {name!r}", name=name, obj=owner
        )
    return AttributeError(f"Restricted memo attribute access denied: {name}")


@contextmanager
def access(level: int) -> Iterator[None]:
    """Let stored objects be read as `level` says inside the block."""
    token = _ACCESS.set(level)
    try:
        yield
    finally:
        _ACCESS.reset(token)
