"""What limits decide, for machines: three small documents, each with its schema's name and its JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final, Literal

from statek_sim.analysis.calibration import Calibration
from statek_sim.analysis.conversations import Traffic
from statek_sim.analysis.sensitivity import Sensitivity
from statek_sim.analysis.stops import JobStops
from statek_sim.reporting.published import schema_named
from statek_sim.values import JSON

SchemaName = Literal["stops", "calibration", "sensitivity"]

NAMES: Final[Mapping[SchemaName, str]] = {
    "stops": "statek-sim/stops@1",
    "calibration": "statek-sim/calibration@1",
    "sensitivity": "statek-sim/sensitivity@1",
}
"""What `schema` is in each document."""


def stops_json(jobs: Sequence[JobStops]) -> str:
    """Return `statek-sim/stops@1`: every job with its ending on each count."""
    return _text({"schema": NAMES["stops"], "jobs": [asdict(job) for job in jobs]})


def calibration_json(found: Calibration, traffic: Traffic | None = None) -> str:
    """Return `statek-sim/calibration@1`: the limit, its interval, and what it rests on.

    `traffic` is what was read where it is calibrated on cassettes.
    """
    members = None if traffic is None else _traffic(traffic)
    return _text({"schema": NAMES["calibration"], **asdict(found), "traffic": members})


def sensitivity_json(found: Sequence[Sensitivity]) -> str:
    """Return `statek-sim/sensitivity@1`: what every scenario needs of every limit."""
    return _text({"schema": NAMES["sensitivity"], "scenarios": [asdict(scenario) for scenario in found]})


def decision_schema(name: SchemaName) -> dict[str, JSON]:
    """Return the JSON Schema (draft 2020-12) of one of the documents."""
    return schema_named(name)


def _traffic(traffic: Traffic) -> dict[str, JSON]:
    """Return what was read, with the curves that the limits come from."""
    return {
        "cassettes": traffic.cassettes,
        "failed": traffic.failed,
        "others": traffic.others,
        "conversations": [
            {
                "name": conversation.name,
                "estimates": [*conversation.estimates()],
                "calls": [asdict(call) for call in conversation.calls],
            }
            for conversation in traffic.conversations
        ],
    }


def _text(document: object) -> str:
    return json.dumps(document, indent=2, allow_nan=False) + "\n"
