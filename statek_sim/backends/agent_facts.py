"""Reads a finished run on engine two: converts live runs to plain records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from statek_sim import trace as events
from statek_sim.agent.loop import AgentRun
from statek_sim.agent.spec import PROFILE
from statek_sim.agent.tools.registry import lint
from statek_sim.backends.facts import usage_record
from statek_sim.backends.record import JobRecord, RunError, RunRecord, seen_of_run
from statek_sim.scenario.schema import Scenario
from statek_sim.trace import Trace
from statek_sim.usage.token_usage import UsageTotals


def record_of(
    scenario: Scenario,
    runs: Mapping[str, AgentRun],
    trace: Trace,
    error: RunError | None,
    *,
    settled: bool,
) -> RunRecord:
    """Return a run's record, which contains all the data that expectations may use."""
    totals = UsageTotals()
    for run in runs.values():
        totals.merge(run.counters.usage)
    return RunRecord(
        scenario=scenario.id,
        backend="agent",
        jobs={name: _as_asked(scenario, job_record(run, trace), run) for name, run in runs.items()},
        items={},
        idle=any(run.status != "DONE" for run in runs.values()),
        settled=settled,
        usage=usage_record(totals),
        error=error,
        **seen_of_run(trace),
    )


def job_record(run: AgentRun, trace: Trace) -> JobRecord:
    """Return the record of one job on engine two."""
    counters = run.counters
    share = run.conversation.prefix.share
    return JobRecord(
        name=run.job,
        agent=run.spec.role,
        status=run.status,
        stop=run.stop,
        error=None if run.stop in (None, "final") else run.detail,
        llm_calls=sum(isinstance(event, events.LLMRequested) for event in trace.of_job(run.job)),
        turns=counters.answered,
        exceptions=counters.exceptions,
        streak=counters.longest_streak,
        completions=run.completions,
        steps=run.steps,
        locals={},
        history=tuple(run.conversation.sent),
        tool_calls=tuple(dict(call) for call in run.calls),
        subtasks={},
        usage=usage_record(counters.usage),
        answer=run.answer,
        offered=run.offered,
        refused=tuple(dict(refusal) for refusal in run.refused),
        nudges=tuple(failure.value for failure in run.nudged),
        steps_done=run.enforcer.done,
        steps_open=run.enforcer.open,
        cached_share=None if share is None else round(share, 3),
    )


def _as_asked(scenario: Scenario, record: JobRecord, run: AgentRun) -> JobRecord:
    """Return the record, with lint findings if the scenario expects any.

    Linting takes time, so other records have no findings. The findings are for the tools offered last.
    """
    expected = (scenario.expect, scenario.expect_in.get(PROFILE))
    jobs = [
        expect.jobs[record.name] for expect in expected if expect is not None and record.name in expect.jobs
    ]
    if run.offer_made is None or not any(job.said("lint") for job in jobs):
        return record
    return replace(record, lint=tuple(map(str, lint(tuple(run.offer_made.tools.values())))))
