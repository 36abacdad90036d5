"""What a sweep leaves out is exactly what running it again would give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import accumulate, product

from hypothesis import given, settings
from hypothesis import strategies as st

from statek_sim.analysis.rerun import Replay
from statek_sim.backends.record import RunRecord
from statek_sim.gate.sweep_run import outcome_of, reads_errors, watched_run
from statek_sim.gate.trial import stops
from statek_sim.gate.watched_harness import Checks
from statek_sim.harness.limits import HarnessLimits
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import DEFAULT_PROFILES
from statek_sim.suite.run import builtin_suites
from statek_sim.trace import Event, LLMRequested
from tests.examples import examples
from tests.tables import table_test

SUITES = (
    "workloads",
    "extension",
    "harness",
    "delegation",
    "reactivation",
    "versions",
    "claims",
    "exceptions",
)
GENEROUS = HarnessLimits(max_turns=9, max_exceptions=9, max_consecutive_exceptions=4, max_token_usage=12_000)


@cache
def replays() -> tuple[Replay, ...]:
    found = load_or_fail([builtin_suites() / suite for suite in SUITES])
    return tuple(
        Replay(scenario=scenario, profile=profile, preset="default")
        for scenario in found
        for profile in DEFAULT_PROFILES
        if profile in scenario.profiles
    )


def close_calls(replay: Replay, extension: float) -> Iterator[HarnessLimits]:
    """Yield limits that stop a run here or there: just below, at and above what its jobs use."""
    base = replace(GENEROUS, limit_extension_per_completion=extension)
    record, _ = watched_run(replay, base)
    sizes = [call.usage.bytes_sent + call.usage.bytes_received for call in record.calls if call.job == "main"]
    used = [total // 4 for total in accumulate(sizes)][-4:]
    tokens = sorted({max(0, total + more) for total in used for more in (-1, 0)} | {9_999, 10_000})
    for turns, most in product((1, 2, 4, 7, 9), tokens):
        yield replace(base, max_turns=turns, max_token_usage=most)
    for total, streak in product((0, 1, 2, 4), (0, 1, 2)):
        yield replace(base, max_exceptions=total, max_consecutive_exceptions=streak)


def requests(record: RunRecord) -> list[Event]:
    return [event for event in record.events if isinstance(event, LLMRequested)]


@settings(max_examples=examples(25), deadline=None)
@given(st.sampled_from(replays()), st.sampled_from([0.0, 0.25]))
def test_limits_that_answer_every_check_alike_need_no_run_of_their_own(
    replay: Replay, extension: float
) -> None:
    known: list[tuple[Checks, RunRecord]] = []
    for limits in close_calls(replay, extension):
        record, checks = watched_run(replay, limits)
        for before, other in known:
            if before.same_run(limits):
                assert other.events == record.events
                assert other.jobs == record.jobs
            elif before.same_run(limits, message_matters=reads_errors(replay.scenario)):
                assert requests(other) == requests(record)
                assert stops(other) == stops(record)
                assert outcome_of(other, replay.scenario, None) == outcome_of(record, replay.scenario, None)
        known.append((checks, record))


@settings(max_examples=examples(40), deadline=None)
@given(st.sampled_from(replays()), st.integers(0, 6))
def test_a_watched_harness_changes_nothing(replay: Replay, turns: int) -> None:
    limits = replace(GENEROUS, max_turns=turns)
    record, checks = watched_run(replay, limits)
    ended = {name: job.stop for name, job in record.jobs.items() if job.llm_calls or job.stop}
    assert {name: ending.stop for name, ending in replay.endings(limits).items()} == ended
    assert checks.limits_read or checks.same_run(limits)


@table_test("name", ["long-useful-chat", "delegation-storm", "growing-context", "harness-counts-per-job"])
def test_most_settings_of_a_sweep_need_no_run_of_their_own(name: str) -> None:
    replay = next(one for one in replays() if one.scenario.id == name)
    known: list[Checks] = []
    every = list(close_calls(replay, 0.0))
    for limits in every:
        if not any(checks.same_run(limits, message_matters=False) for checks in known):
            known.append(watched_run(replay, limits)[1])
    assert 1 < len(known) < len(every) / 2
