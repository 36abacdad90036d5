"""Renders the efficacy of guards as a table for a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.text import Text

from statek_sim.agent.guards.efficacy import Efficacy
from statek_sim.reporting.table import Table
from statek_sim.reporting.text_format import NOTHING, count
from statek_sim.values import JSON, record

SCHEMA: Final = "statek-sim/guards@1"
"""The schema of the `statek-sim guards --json` output."""

_HEADS: Final = ("guard", "corpus", "caught", "recall %", "flagged", "precision %", "us/KB")


def guard_lines(measured: Sequence[Efficacy], *, width: int) -> list[Text]:
    """Return a table with a row for each guard and corpus; percentages come with 95 % intervals."""
    return Table(head=_HEADS, rows=[*map(_cells, measured)], left=("corpus",)).lines(width=width)


def _cells(efficacy: Efficacy) -> tuple[str, ...]:
    return (
        efficacy.name,
        "own" if efficacy.corpus == efficacy.name else efficacy.corpus,
        f"{efficacy.caught} of {efficacy.attacks}",
        _percent(efficacy.recall, efficacy.intervals["recall"]),
        f"{efficacy.flagged} of {efficacy.harmless}",
        _percent(efficacy.precision, efficacy.intervals["precision"]),
        count(round(efficacy.microseconds_per_kb)),
    )


def _percent(share: float | None, interval: tuple[float, float] | None) -> str:
    if share is None or interval is None:
        return NOTHING
    return f"{100 * share:.0f} ({100 * interval[0]:.0f}-{100 * interval[1]:.0f})"


def guards_json(measured: Sequence[Efficacy]) -> dict[str, JSON]:
    """Return the figures as JSON that follows `guards_schema.json`; fractions are from 0 to 1."""
    return {"schema": SCHEMA, "guards": [_record(efficacy) for efficacy in measured]}


def _record(efficacy: Efficacy) -> JSON:
    return {
        **record(
            efficacy, "name", "corpus", "attacks", "caught", "harmless", "flagged", "precision", "recall"
        ),
        **record(efficacy, "intervals", "microseconds_per_kb", "missed", "wrong"),
        "rules": {
            rule: {"bad": bad, "harmless": harmless} for rule, (bad, harmless) in efficacy.by_rule.items()
        },
    }
