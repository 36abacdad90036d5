"""What the parts of a run know, as values that a checkpoint can hold."""

from __future__ import annotations

import types
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from statek_sim.agent.effects import Parts, Saved
from statek_sim.errors import BadInput

SEAMS: Final = ("watchers", "gates", "guards")
SINGLE: Final = ("chooser", "reader", "compactor")


def saved_parts(parts: Parts) -> dict[str, list[object]]:
    """Return what the parts know, those of each seam in their order."""
    return {seam: [_known(seam, part) for part in stateful(parts, seam)] for seam in (*SEAMS, *SINGLE)}


def stateful(parts: Parts, seam: str) -> list[Any]:
    """Return the parts of a seam that say what they know."""
    found = getattr(parts, seam)
    given: Iterable[Any] = found if seam in SEAMS else () if found is None else (found,)
    # A part may stand in another one, which looks after it.
    every = [getattr(part, "inner", part) for part in given]
    return [part for part in every if not _is_stateless(seam, part)]


def _known(seam: str, part: Saved) -> object:
    return part.saved()


def _is_stateless(seam: str, part: Any) -> bool:
    """Return whether a part has nothing to save; `BadInput` where that cannot be seen."""
    if isinstance(part, Saved):
        return False
    code = part.func if isinstance(part, partial) else part
    if getattr(part, "stateless", False) is True:
        return True
    if isinstance(code, types.FunctionType) and not code.__closure__:
        return True
    raise BadInput(
        f"{seam}: {_named(code)} may know something of the run that a checkpoint would not hold; give it `saved()` and "
        "`restore(saved)`, or `stateless = True` where it knows nothing"
    )


def _named(code: Any) -> str:
    """Return what a part is called, without its place in memory."""
    name = getattr(code, "__qualname__", type(code).__qualname__)
    return f"a {name}" if isinstance(code, types.FunctionType) else f"{name!r}"
