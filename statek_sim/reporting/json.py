"""`report.json`: the schema `statek-sim/report@1`, for machines."""

from __future__ import annotations

import json
import math
from typing import Final

from statek_sim.backends.record import JobRecord
from statek_sim.reporting.model import Report, Row, Usage
from statek_sim.values import JSON, record

SCHEMA: Final = "statek-sim/report@1"

_LONGEST_EXIT: Final = 1_000_000
"""Characters of texts in what a job exits with that are written: a list may hold a text a thousand times over."""
_LONGEST_INTEGER: Final = 14_000
"""Bits up to which Python writes an integer in decimals (4,300 digits, its default limit)."""


def report_json(report: Report) -> dict[str, JSON]:
    """Return the report in the schema that `report_schema.json` describes.

    Scenarios are sorted by suite, id and profile, jobs by creation. Equal runs give equal objects.
    """
    return {
        "schema": SCHEMA,
        **record(report, "profile", "preset", "seed", "digest"),
        "summary": record(report.overall, "total", "passed", "failed"),
        "scenarios": [_scenario(row) for row in report.rows],
    }


def report_json_text(report: Report) -> str:
    """Return the report as the text of a file."""
    return json.dumps(report_json(report), indent=2, allow_nan=False) + "\n"


def _scenario(row: Row) -> JSON:
    return {
        **record(row, "suite", "id", "engine", "profile", "outcome", "digest"),
        "jobs": [_job(job) for job in row.jobs],
        "usage": record(row.usage),
    }


def _job(job: JobRecord) -> JSON:
    return {
        **record(job, "name", "agent", "status", "stop", "error", "llm_calls", "turns", "exceptions"),
        "exit": _exit(job.exit),
        "usage": record(Usage.of(job.usage)),
    }


def _exit(value: JSON) -> JSON:
    """Return what a job exited with; of a long one, how long it is."""
    size = _characters(value)
    return writable(value) if size <= _LONGEST_EXIT else f"<{size} characters, too many to write here>"


def _characters(value: JSON) -> int:
    match value:
        case dict():
            return sum(len(key) + _characters(item) for key, item in value.items())
        case list():
            return sum(map(_characters, value))
        case str():
            return len(value)
        case _:
            return 0


def writable(value: JSON) -> JSON:
    """Return a value of agents as JSON can write it: one may exit with `nan` or an endless integer."""
    match value:
        case dict():
            return {key: writable(item) for key, item in value.items()}
        case list():
            return [writable(item) for item in value]
        case float() if not math.isfinite(value):
            return repr(value)
        case int() if value.bit_length() > _LONGEST_INTEGER:
            return f"integer of {value.bit_length()} bits"
        case _:
            return value
