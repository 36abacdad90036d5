"""What the public checkers have in common: the methods that they ask of an adapter, and what came of their trials."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from statek_sim.errors import BadInput, ContractViolation

A = TypeVar("A")
F = TypeVar("F")

Trial = tuple[F | None, str]
"""What a trial found to be wrong, None for nothing, and a sentence about it."""


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


def checked(trials: Iterable[Trial[F]]) -> int:
    """Return how many trials there were; raise `ContractViolation` with the first that found something."""
    number = 0
    for finding, sentence in trials:
        if finding is not None:
            raise ContractViolation(sentence)
        number += 1
    return number


def findings(trials: Iterable[Trial[F]]) -> dict[F, str]:
    """Return everything that trials found, each with the sentence of the first that did."""
    found: dict[F, str] = {}
    for finding, sentence in trials:
        if finding is not None:
            found.setdefault(finding, sentence)
    return found
