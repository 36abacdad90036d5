"""Which values of a preset can never decide anything (behaviour 4), and which decided nothing on these scenarios."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from statek_sim.gate.gated_preset import GatedPreset, variable_of
from statek_sim.gate.verdict import Remark, Verdict
from statek_sim.harness.limits import LimitName

TURNS = LimitName.MAX_TURNS
TOTAL = LimitName.MAX_EXCEPTIONS
STREAK = LimitName.MAX_CONSECUTIVE_EXCEPTIONS


ENOUGH: Final = 5
"""Runaway scenarios that have to be stopped before it says something that a limit stopped none of them."""


def idle_values(preset: GatedPreset) -> Iterator[Remark]:
    """Yield what cannot bind whatever a job does."""
    limits = preset.limits
    total, streak, turns = limits.max_exceptions, limits.max_consecutive_exceptions, limits.max_turns
    if total and streak is not None and streak >= total:
        # A streak of n failing turns is at least n exceptions, and the total is checked first. Extension keeps it so.
        message = (
            f"{variable_of(STREAK)}={streak} never binds: a longer streak is over {variable_of(TOTAL)}={total} too, "
            f"which is checked first; expected less than {total}"
        )
        yield _remark(preset, STREAK, message)
    if turns == 0:
        message = f"{variable_of(TURNS)}=0: a job's first reply arrives, and its code never runs"
        yield _remark(preset, TURNS, message)
    if limits.limit_extension_per_completion:
        yield from _never_extended(preset)


def _never_extended(preset: GatedPreset) -> Iterator[Remark]:
    for limit in LimitName:
        if getattr(preset.limits, limit.value) == 0:
            message = f"{variable_of(limit)}=0: completions never extend it, since STATEK multiplies it from 1.3.0 on"
            yield _remark(preset, limit, message)


def idle_on(preset: GatedPreset, verdicts: Iterable[Verdict]) -> Iterator[Remark]:
    """Yield the limits that the preset sets and that stopped none of the scenarios that had to be stopped.

    `verdicts` are those of this preset by rules that demand a stop. Nothing is said when few were stopped, or where it
    is known already that the limit cannot bind.
    """
    stopped = {verdict.scenario: verdict.stop.limit for verdict in verdicts if verdict.stop is not None}
    if len(stopped) < ENOUGH:
        return
    first = set(stopped.values())
    known = {remark.place for remark in idle_values(preset)}
    for limit in LimitName:
        value = getattr(preset.limits, limit.value)
        if preset.sets(limit) and limit not in first and preset.place(limit) not in known:
            named = ", ".join(other for other in LimitName if other in first)
            message = (
                f"{variable_of(limit)}={value} decided none of {len(stopped)} runaway scenarios: {named} always came "
                "first"
            )
            yield _remark(preset, limit, message)


def _remark(preset: GatedPreset, limit: LimitName, message: str) -> Remark:
    return Remark(preset=preset.name, place=preset.place(limit), message=message)
