"""The facts of a run on the reference runtime, by the names that the installed backend uses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from statek_sim.backends.record import HandlerCall, JobRecord, RunRecord
from statek_sim.values import JSON

Facts = Mapping[str, JSON]

_SAME_NAMES: Final = (
    "agent",
    "status",
    "exit",
    "error",
    "definition_errors",
    "llm_calls",
    "turns",
    "exceptions",
    "streak",
    "completions",
    "steps",
    "console",
    "locals",
    "history",
    "tool_log",
    "delivered",
    "subtasks",
)


def reference_facts(record: RunRecord) -> dict[str, JSON]:
    """Return what both runtimes can tell about a run, as plain JSON values."""
    return _plain(
        {
            "error": None
            if record.error is None
            else {"type": record.error.type, "message": record.error.message},
            "worker": record.worker,
            "jobs": {name: _job(job) for name, job in record.jobs.items()},
            "handlers": [_handler(call) for call in record.handlers],
            "items": record.items,
            "leaked_claims": record.leaked_claims,
            "ledger": record.ledger,
            "idle": record.idle,
            "settled": record.settled,
        }
    )


def _job(job: JobRecord) -> dict[str, Any]:
    return {
        **{name: getattr(job, name) for name in _SAME_NAMES},
        "bytes_sent": job.usage.bytes_sent,
        "bytes_received": job.usage.bytes_received,
        "approx_tokens": job.usage.approx_tokens,
        "reported_tokens": job.usage.reported_tokens or 0,
    }


def _handler(call: HandlerCall) -> dict[str, Any]:
    return {
        "job": call.job,
        "name": call.name,
        "context": call.context,
        "error": call.error,
        "failed": call.failed,
    }


def _plain(facts: Mapping[str, Any]) -> dict[str, JSON]:
    told: dict[str, JSON] = json.loads(json.dumps(facts, default=_mapping))
    return told


def _mapping(value: Any) -> Any:
    """Messages are read-only mappings, which JSON does not know."""
    return dict(value)
