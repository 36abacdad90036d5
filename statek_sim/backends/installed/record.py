"""A run on the real package as a record, like those of the reference backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from statek_sim.backends.installed.peer import Lost, Ran
from statek_sim.backends.record import (
    JobRecord,
    RunError,
    RunRecord,
    UsageRecord,
    handler_calls,
    seen_of_job,
    stop_reason,
)
from statek_sim.scenario.schema import Scenario
from statek_sim.trace import Event, Trace

_AS_TUPLES: Final = ("definition_errors", "console", "history")
_AS_THEY_ARE: Final = (
    "agent",
    "status",
    "exit",
    "error",
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

    What a tokenizer measures is empty. A run that was lost has an `error` of its kind, the events until then and
    nothing else.
    """
    facts: Any = outcome.facts if isinstance(outcome, Ran) else {}
    failure = (
        facts.get("error") if isinstance(outcome, Ran) else {"type": outcome.kind, "message": outcome.reason}
    )
    trace = Trace(profile=profile, seed=seed)
    for event in outcome.events:
        trace.add(event)
    jobs = {
        name: job_record(name, facts_of_job, list(trace.of_job(name)))
        for name, facts_of_job in facts.get("jobs", {}).items()
    }
    return RunRecord(
        scenario=scenario.id,
        profile=profile,
        seed=seed,
        backend="installed",
        jobs=jobs,
        handlers=handler_calls(outcome.events),
        items=facts.get("items", {}),
        leaked_claims=tuple(facts.get("leaked_claims", ())),
        ledger=tuple(facts.get("ledger", ())),
        llm_calls=sum(job.llm_calls for job in jobs.values()),
        idle=facts.get("idle", False),
        settled=facts.get("settled", False),
        worker=facts.get("worker"),
        usage=_total([job.usage for job in jobs.values()]),
        digest=trace.digest(),
        events=outcome.events,
        error=None
        if failure is None
        else RunError(**failure).in_run(settled=facts.get("settled", True), until=scenario.until),
    )


def job_record(name: str, facts_of_job: Mapping[str, Any], trace: Sequence[Event]) -> JobRecord:
    """Return one job's facts: what the store says of it, and what its events tell."""
    same: dict[str, Any] = {key: facts_of_job[key] for key in _AS_THEY_ARE}
    same.update((key, tuple(facts_of_job[key])) for key in _AS_TUPLES)
    return JobRecord(
        name=name,
        stop=stop_reason(trace),
        tool_log=tuple(tuple(results) for results in facts_of_job["tool_log"]),
        usage=UsageRecord(
            bytes_sent=facts_of_job["bytes_sent"],
            bytes_received=facts_of_job["bytes_received"],
            approx_tokens=facts_of_job["approx_tokens"],
            reported_tokens=facts_of_job["reported_tokens"] or None,
        ),
        **same,
        **seen_of_job(trace),
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
