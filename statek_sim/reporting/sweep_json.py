"""A sweep for machines: the schema `statek-sim/sweep@1`."""

from __future__ import annotations

import json
from typing import Final

from statek_sim.gate.sweep import Cell, Sweep
from statek_sim.gate.sweep_ranges import Axis
from statek_sim.reporting.published import schema_named
from statek_sim.values import JSON

SCHEMA: Final = "statek-sim/sweep@1"


def sweep_json(sweep: Sweep) -> dict[str, JSON]:
    """Return the sweep in the schema that `sweep_schema` describes. Equal sweeps give equal objects."""
    return {
        "schema": SCHEMA,
        "preset": sweep.preset,
        "profile": sweep.profile,
        "healthy": sweep.healthy,
        "runaways": sweep.runaways,
        "x": _axis(sweep.x),
        "y": None if sweep.y is None else _axis(sweep.y),
        "cells": [_cell(cell, sweep) for cell in sweep.cells],
        "frontier": list(sweep.frontier),
        "current": sweep.current,
    }


def sweep_json_text(sweep: Sweep) -> str:
    """Return the sweep as the text of a file."""
    return json.dumps(sweep_json(sweep), indent=2, allow_nan=False) + "\n"


def sweep_schema() -> dict[str, JSON]:
    """Return the JSON Schema of the document."""
    return schema_named("sweep")


def _axis(axis: Axis) -> JSON:
    return {"limit": axis.limit.value, "values": list(axis.values)}


def _cell(cell: Cell, sweep: Sweep) -> JSON:
    return {
        "x": cell.setting.x,
        "y": cell.setting.y,
        "killed": len(cell.killed),
        "healthy": sweep.healthy,
        "runaway_tokens": cell.tokens,
        # Text: a float would round money.
        "runaway_cost": None if cell.cost is None else f"{cell.cost:f}",
        "killed_names": list(cell.killed),
        "unstopped_names": list(cell.unstopped),
    }
