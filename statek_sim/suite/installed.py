"""Running scenarios on the real package, and comparing them with what they expect."""

from __future__ import annotations

import time
from typing import Any, Final

from statek_sim.backends.exchanges import Exchanges
from statek_sim.backends.installed.peer import Peer
from statek_sim.backends.installed.record import installed_record
from statek_sim.backends.record import RunRecord
from statek_sim.backends.reference import run_scenario
from statek_sim.scenario.expect import Expect
from statek_sim.scenario.load import expectations_for
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.suite.endings import ending, real_ending
from statek_sim.suite.expectations import compare
from statek_sim.suite.result import Mismatch, ScenarioResult
from statek_sim.usage.tokenizers import TokenizerRegistry

_OF_A_RUN: Final = ("digest",)
_OF_USAGE: Final = ("measured_tokens", "measured_prompt", "measured_completion", "tokenizer")


def run_one_installed(
    peer: Peer,
    scenario: Scenario,
    profile: Profile,
    *,
    preset: str | None = None,
    seed: int | None = None,
    tokenizers: TokenizerRegistry | None = None,
    exchanges: Exchanges | None = None,
) -> ScenarioResult:
    """Run one scenario on `peer`'s STATEK and compare what can be compared there.

    `exchanges` take the place of the scenario's script. Of a scenario whose code the reference runtime stops, only how
    it ends there is looked at (`suite.endings`).
    """
    started = time.perf_counter()
    outcome = peer.run(
        scenario, profile, preset=preset, seed=seed, tokenizers=tokenizers, exchanges=exchanges
    )
    record = installed_record(scenario, profile, outcome, seed=scenario.seed if seed is None else seed)
    return ScenarioResult(
        scenario=scenario,
        profile=profile,
        record=record,
        mismatches=_mismatches(scenario, profile, record, preset=preset, seed=seed, exchanges=exchanges),
        seconds=time.perf_counter() - started,
        preset=preset,
    )


def _mismatches(
    scenario: Scenario,
    profile: Profile,
    record: RunRecord,
    *,
    preset: str | None,
    seed: int | None,
    exchanges: Exchanges | None,
) -> tuple[Mismatch, ...]:
    # Tools of the user's own may be STATEK's, which the reference runtime cannot run.
    own = any(":" in tool for agent in scenario.agents.values() for tool in agent.tools)
    stop = (
        None
        if own or exchanges is not None
        else ending(run_scenario(scenario, profile, preset=preset, seed=seed))
    )
    if stop is None:
        return compare(record, answerable(expectations_for(scenario, profile)))
    theirs = real_ending(record, stop)
    return () if theirs == stop.expected else (Mismatch(("ending",), stop.expected, theirs),)


def answerable(expect: Expect) -> Expect:
    """Return the expectations without those that only the reference runtime's tokenizers can answer."""
    fields: dict[str, Any] = expect.model_dump(exclude_unset=True)
    _drop(fields, _OF_A_RUN)
    _drop(fields.get("usage"), _OF_USAGE)
    for job in fields.get("jobs", {}).values():
        _drop(job.get("usage"), _OF_USAGE)
    return Expect.model_validate(fields)


def _drop(fields: dict[str, Any] | None, keys: tuple[str, ...]) -> None:
    for key in keys:
        if fields is not None:
            fields.pop(key, None)
