"""A run on the real package as a record, like those of the reference backend."""

from __future__ import annotations

from typing import Any, Final

from statek_sim.backends.installed.peer import Lost, Ran
from statek_sim.backends.record import HandlerCall, JobRecord, RunError, RunRecord, UsageRecord
from statek_sim.scenario.schema import Scenario

_AS_TUPLES: Final = ("definition_errors", "console", "history", "delivered")
_AS_THEY_ARE: Final = (
    "agent",
    "status",
    "exit",
    "error",
    "llm_calls",
    "turns",
    "exceptions",
    "streak",
    "completions",
    "steps",
    "locals",
    "subtasks",
)


def installed_record(scenario: Scenario, profile: str, outcome: Ran | Lost, *, seed: int) -> RunRecord:
    """Return the record of one run.

    STATEK keeps no trace: `events`, `digest`, a job's `stop` and `tool_calls` and what a tokenizer measures are
    empty. A run that was lost has an `error` of type `Lost` and nothing else.
    """
    facts: Any = outcome.facts if isinstance(outcome, Ran) else {}
    failure = facts.get("error") if isinstance(outcome, Ran) else {"type": "Lost", "message": outcome.reason}
    handlers = tuple(HandlerCall(**call) for call in facts.get("handlers", ()))
    jobs = {name: _job(name, told, handlers) for name, told in facts.get("jobs", {}).items()}
    return RunRecord(
        scenario=scenario.id,
        profile=profile,
        seed=seed,
        backend="installed",
        jobs=jobs,
        handlers=handlers,
        items=facts.get("items", {}),
        leaked_claims=tuple(facts.get("leaked_claims", ())),
        ledger=tuple(facts.get("ledger", ())),
        llm_calls=sum(job.llm_calls for job in jobs.values()),
        idle=facts.get("idle", False),
        settled=facts.get("settled", False),
        worker=facts.get("worker"),
        usage=_total([job.usage for job in jobs.values()]),
        digest="",
        events=(),
        error=None if failure is None else RunError(**failure),
    )


def _job(name: str, told: Any, handlers: tuple[HandlerCall, ...]) -> JobRecord:
    same: dict[str, Any] = {key: told[key] for key in _AS_THEY_ARE}
    same.update((key, tuple(told[key])) for key in _AS_TUPLES)
    return JobRecord(
        name=name,
        stop=None,
        tool_log=tuple(tuple(results) for results in told["tool_log"]),
        tool_calls=(),
        handlers=tuple(call for call in handlers if call.job == name),
        usage=UsageRecord(
            bytes_sent=told["bytes_sent"],
            bytes_received=told["bytes_received"],
            approx_tokens=told["approx_tokens"],
            reported_tokens=told["reported_tokens"] or None,
        ),
        **same,
    )


def _total(usages: list[UsageRecord]) -> UsageRecord:
    sent = sum(usage.bytes_sent for usage in usages)
    received = sum(usage.bytes_received for usage in usages)
    return UsageRecord(
        bytes_sent=sent,
        bytes_received=received,
        approx_tokens=sum(usage.approx_tokens for usage in usages),
        reported_tokens=sum(usage.reported_tokens or 0 for usage in usages) or None,
    )
