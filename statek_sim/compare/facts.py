"""The facts of a run that both sides can tell, and in which of them two runs differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from statek_sim.backends.record import HandlerCall, JobRecord, RunRecord
from statek_sim.compare.normalization import normal, normal_local
from statek_sim.compare.traces import size_corrections
from statek_sim.usage.totals import approx_tokens
from statek_sim.values import JSON

Facts = Mapping[str, JSON]

_SAME_NAMES: Final = (
    "agent",
    "status",
    "stop",
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
    "tool_calls",
    "delivered",
    "subtasks",
)


def facts_of(record: RunRecord) -> dict[str, JSON]:
    """Return what is compared of a run, its trace apart. Sizes are those of requests with normal text."""
    sizes = size_corrections(record.events)
    return _plain(
        {
            "error": None
            if record.error is None
            else {"type": record.error.type, "message": record.error.message},
            "worker": record.worker,
            "jobs": {name: _job(job, sizes.get(name, 0)) for name, job in record.jobs.items()},
            "handlers": [_handler(call) for call in record.handlers],
            "items": record.items,
            "leaked_claims": record.leaked_claims,
            "ledger": record.ledger,
            "idle": record.idle,
            "settled": record.settled,
        }
    )


def _job(job: JobRecord, correction: int) -> dict[str, Any]:
    sent, received = job.usage.bytes_sent + correction, job.usage.bytes_received
    return {
        **{name: getattr(job, name) for name in _SAME_NAMES},
        "bytes_sent": sent,
        "bytes_received": received,
        # As STATEK counts, unless the sizes had to be corrected.
        "approx_tokens": approx_tokens(sent, received) if correction else job.usage.approx_tokens,
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
    plain: dict[str, JSON] = json.loads(json.dumps(facts, default=_mapping))
    return plain


def _mapping(value: Any) -> Any:
    """Messages are read-only mappings, which JSON does not know."""
    return dict(value)


FIRST: Final = ("error", "worker", "jobs")
"""What is told first when it differs: the rest follows from it."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that differs: `field` like `jobs.main.turns`, and the values of both sides."""

    field: str
    reference: JSON
    installed: JSON


def differences(reference: dict[str, JSON], installed: dict[str, JSON]) -> tuple[Difference, ...]:
    """Return what differs, the most telling first. Job facts are fields of their own, other facts as a whole."""
    return tuple(_differences(_fields(reference), _fields(installed)))


_MISSING: Final = "(absent)"


def _differences(reference: dict[str, JSON], installed: dict[str, JSON]) -> Iterator[Difference]:
    for field in dict.fromkeys((*reference, *installed)):
        ours, theirs = reference.get(field, _MISSING), installed.get(field, _MISSING)
        if ours != theirs:
            yield Difference(field, ours, theirs)


def _fields(facts: dict[str, JSON]) -> dict[str, JSON]:
    fields: dict[str, JSON] = {}
    for name in (*FIRST, *(name for name in facts if name not in FIRST)):
        value = facts.get(name)
        if name != "jobs" or not isinstance(value, dict):
            fields[name] = normal(value)
            continue
        fields["jobs"] = list(value)
        for job, job_facts in value.items():
            if isinstance(job_facts, dict):
                fields.update(
                    {f"jobs.{job}.{key}": normal(_job_fact(key, fact)) for key, fact in job_facts.items()}
                )
    return fields


_SHOWN: Final = ("locals", "tool_calls")
"""Facts that hold values as texts that no agent ever sees."""


def _job_fact(key: str, fact: JSON) -> JSON:
    return normal_local(fact) if key in _SHOWN else fact
