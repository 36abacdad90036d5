"""Looking a variant up by its name, the same way for every part of the agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput

Variant = TypeVar("Variant")


def named(variants: Mapping[str, Variant], name: str, *, of: str) -> Variant:
    """Return the variant called `name`; an unknown name is `BadInput`: of what, the known ones, the one it is like."""
    try:
        return variants[name]
    except KeyError:
        known = ", ".join(variants)
        raise BadInput(
            f"no variant of {of} is called {name!r}: {known}.{suggestion(name, variants)}"
        ) from None
