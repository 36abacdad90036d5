"""What limits decide, for machines: three small documents, each with its schema's name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from statek_sim.analysis.calibrate import Calibration
from statek_sim.analysis.sensitivity import Sensitivity
from statek_sim.analysis.stops import JobStops


def stops_json(jobs: Sequence[JobStops]) -> str:
    """Return `statek-sim/stops@1`: every job with its ending on each count."""
    return _text({"schema": "statek-sim/stops@1", "jobs": [asdict(job) for job in jobs]})


def calibration_json(found: Calibration) -> str:
    """Return `statek-sim/calibration@1`: the limit, its interval, and what it rests on."""
    return _text({"schema": "statek-sim/calibration@1", **asdict(found)})


def sensitivity_json(found: Sequence[Sensitivity]) -> str:
    """Return `statek-sim/sensitivity@1`: what every scenario needs of every limit."""
    return _text({"schema": "statek-sim/sensitivity@1", "scenarios": [asdict(one) for one in found]})


def _text(document: object) -> str:
    return json.dumps(document, indent=2, allow_nan=False) + "\n"
