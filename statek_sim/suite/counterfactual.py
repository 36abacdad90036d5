"""What would have come of runs if warnings of guards had been blocks: each is run as it is, and once more so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from statek_sim import trace as events
from statek_sim.agent.guards.guard import Guard
from statek_sim.backends.agent import run_agent_scenario
from statek_sim.backends.record import JobRecord, RunRecord
from statek_sim.backends.setup import RunOptions
from statek_sim.providers.http_provider import Exchanges
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.suite.recorded import Cassettes, replayed
from statek_sim.suite.result import ScenarioResult

_SHOWN: Final = 60
"""Characters of an answer that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """One run twice. `warnings` of guards as it is; `changed` says per job how it would have ended instead."""

    scenario: str
    variant: str
    warnings: tuple[str, ...]
    changed: tuple[str, ...]


def what_if_warnings_block(
    scenario: Scenario, variant: Profile, cassettes: Cassettes | None = None
) -> WhatIf:
    """Run a scenario of engine agent as it is and with its shipped guards' warnings as blocks, and compare.

    With `cassettes` what its model said was recorded; a request that was never made has no answer then, which ends the
    second run there.
    """
    before = _run(scenario, variant, cassettes, blocks=False)
    after = _run(scenario, variant, cassettes, blocks=True)
    return WhatIf(
        scenario=scenario.id,
        variant=variant,
        warnings=tuple(_warnings(before)),
        changed=tuple(_changes(before, after)),
    )


def _run(scenario: Scenario, variant: Profile, cassettes: Cassettes | None, *, blocks: bool) -> RunRecord:
    play = partial(_played, blocks=blocks)
    played = play(scenario, variant) if cassettes is None else replayed(scenario, variant, cassettes, play)
    return played.record


def _played(
    scenario: Scenario, variant: Profile, *, exchanges: Exchanges | None = None, blocks: bool
) -> ScenarioResult:
    record = (
        run_agent_scenario(scenario, variant, RunOptions(exchanges=exchanges), guards=blocking)
        if blocks
        else run_agent_scenario(scenario, variant, RunOptions(exchanges=exchanges))
    )
    return ScenarioResult(scenario=scenario, profile=variant, record=record, mismatches=(), seconds=0.0)


def blocking(guard: Guard) -> Guard:
    """Return a guard that blocks where it warned."""
    return replace(guard, action="block") if guard.action == "warn" else guard


def _warnings(record: RunRecord) -> Iterator[str]:
    for event in record.events:
        if isinstance(event, events.HarnessSpoke) and event.action == "warn" and event.part.endswith("guard"):
            yield f"{event.job}: {event.part}: {event.detail}"


def _changes(before: RunRecord, after: RunRecord) -> Iterator[str]:
    for name, job in before.jobs.items():
        other = after.jobs.get(name)
        if other is None:
            yield f"{name}: would not have begun"
        elif _ending(job) == _ending(other):
            continue
        elif after.error is not None and other.stop is None:
            yield f"{name}: would have asked for what nobody has said ({after.error.type})"
        else:
            yield f"{name}: would have ended {_shown(other)} instead of {_shown(job)}"


def _ending(job: JobRecord) -> tuple[str | None, ...]:
    return job.answer, job.stop, job.error, job.status


def _shown(job: JobRecord) -> str:
    if job.answer is not None:
        return f"with {job.answer if len(job.answer) <= _SHOWN else job.answer[: _SHOWN - 3] + '...'!r}"
    if job.stop is None:
        return f"{job.status}, with nothing said"
    return f"{job.stop} ({job.error})" if job.error else job.stop
