"""The table of the shipped workloads on the page about the gate, as it has to be."""

from __future__ import annotations

from typing import Final

from statek_sim.backends.run import run_scenario
from statek_sim.gate.gate import workloads
from statek_sim.gate.trial import stops
from statek_sim.harness.preset import BUILT_IN
from statek_sim.scenario.schema import Scenario

_HEAD: Final = ("workload", "tags", *BUILT_IN)


def workload_table() -> str:
    """Return the table in Markdown: what each built-in preset makes of each workload."""
    rows = [_HEAD, ("---",) * len(_HEAD), *(_row(scenario) for scenario in workloads(()))]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(scenario: Scenario) -> tuple[str, ...]:
    kind, *finer = scenario.tags
    tags = f"**{kind}**, {', '.join(finer)}"
    return (f"`{scenario.id}`", tags, *(_cell(scenario, preset) for preset in BUILT_IN))


def _cell(scenario: Scenario, preset: str) -> str:
    stopped = stops(run_scenario(scenario, "docs", preset=preset))
    return f"{stopped[0].limit} {stopped[0].turn}" if stopped else "-"
