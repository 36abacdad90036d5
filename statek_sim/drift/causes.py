"""Which rules make the difference: found by changing them one at a time, so that it is exact and can be repeated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from statek_sim.backends.record import RunRecord
from statek_sim.semantics import Profile as Rules

Seen = TypeVar("Seen")


def causes(
    before: Rules,
    after: Rules,
    rules: Sequence[str],
    run: Callable[[Rules], RunRecord],
    same: Callable[[RunRecord], bool],
) -> tuple[str, ...]:
    """Return the rules that, changed in `before`, are enough for what `same` recognises as the outcome of `after`.

    None of them can be left out. Begins with all that differ and takes away, in their order, every rule without
    which the outcome stays the same. Where two rules are each enough alone, the later one is told.
    """
    needed = list(rules)
    for rule in rules:
        fewer = [name for name in needed if name != rule]
        if same(run(changed(before, after, fewer))):
            needed = fewer
    return tuple(needed)


def changed(before: Rules, after: Rules, rules: Sequence[str]) -> Rules:
    """Return `before` with these rules of `after`, and its name, which some error texts carry."""
    return replace(before, name=after.name, **{rule: getattr(after, rule) for rule in rules})
