"""What the public checkers ask of an adapter before they try it: the methods of its protocol."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from statek_sim.errors import BadInput

A = TypeVar("A")


def with_methods(adapter: A, names: Iterable[str], *, of: str) -> A:
    """Return an adapter that has these methods; else `BadInput` names those that are missing. `of`: its protocol."""
    wanted = list(names)
    missing = [name for name in wanted if not callable(getattr(adapter, name, None))]
    if missing:
        raise BadInput(
            f"the adapter {type(adapter).__name__} has no {' and no '.join(missing)}; "
            f"expected the methods of {of}: {', '.join(wanted)}"
        )
    return adapter
