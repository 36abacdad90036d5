"""What limits decide: stops on other counts, the room a preset leaves, the limit that fits a budget."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import SimpleNamespace

import pytest

from statek_sim import tool
from statek_sim.analysis.calibration import calibrate, quantile
from statek_sim.analysis.limits import (
    Ending,
    JobStops,
    Judgement,
    Replay,
    Sensitivity,
    compare_stops,
    sensitivity,
)
from statek_sim.backends.run import run_scenario
from statek_sim.errors import BadInput
from statek_sim.gate.trial import stops as every_stop
from statek_sim.harness.current import get_llm_harness
from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.limits import LimitName
from statek_sim.harness.usage_basis import BasisHarness, UsageBasis
from statek_sim.scenario.load import load_or_fail
from statek_sim.suite.run import builtin_suites
from statek_sim.values import JSON
from tests.tables import table_test
from tests.unit.usage_samples import scenario

CHINESE = "请您核对一下款项是否到账并告诉我们这个月是否还有其他应付款项。" * 4
DIGITS = " ".join(str(number * 7919 % 10007) for number in range(120))
FAILURE: JSON = {"code": "1/0"}
EXIT: JSON = {"code": "exit(1)"}


def looping(turns: int, *, say: str = "", **text: JSON) -> dict[str, JSON]:
    """Return a job that prints something for `turns` turns and then exits."""
    steps: list[JSON] = [{"code": f"print({say + str(turn)!r})"} for turn in range(turns)]
    return {"script": {"clerk": [*steps, EXIT]}, **text}


def replay(text: Mapping[str, JSON], name: str = "sample", *, preset: str | None = None) -> Replay:
    return Replay(scenario=scenario(text, name), profile="docs", preset=preset)


def stops(text: Mapping[str, JSON]) -> JobStops:
    (job,) = compare_stops([replay(text)])
    return job


def limited(tokens: int) -> dict[str, JSON]:
    """Return limits of which only the token limit can bind."""
    none: dict[str, JSON] = dict.fromkeys(("max_turns", "max_exceptions", "max_consecutive_exceptions"))
    return {**none, "max_token_usage": tokens}


def real(endings: Mapping[str, Ending], basis: UsageBasis = UsageBasis.MEASURED) -> int:
    return max(ending.tokens(basis) or 0 for ending in endings.values())


# -- where the estimate stops jobs ---------------------------------------------------------------------------------


def test_a_job_in_chinese_is_stopped_early_by_its_escapes() -> None:
    job = stops(looping(8, say=CHINESE, limits=limited(3000)))
    measured, reported = job.comparisons
    assert (job.ending.stop, measured.judgement) == ("max_token_usage", Judgement.FALSE_STOP)
    assert measured.turns >= 1
    assert measured.tokens > 0
    assert measured.ending.measured_tokens > 3000 or measured.ending.stop == "exit"
    assert reported.judgement is Judgement.UNKNOWN


def test_a_job_full_of_numbers_is_stopped_late() -> None:
    job = stops(looping(8, say=DIGITS, limits=limited(3000)))
    measured, _ = job.comparisons
    assert measured.judgement is Judgement.LATE_STOP
    assert measured.turns < 0
    assert measured.tokens < 0
    assert measured.ending.stop == "max_token_usage"


def test_a_job_that_no_count_stops_is_the_same() -> None:
    job = stops(looping(2, limits=limited(10_000)))
    assert not job.differs
    assert [one.judgement for one in job.comparisons] == [Judgement.SAME, Judgement.UNKNOWN]


def test_reported_tokens_decide_where_every_call_is_reported() -> None:
    costly: JSON = {"code": "print(1)", "usage": {"prompt": 4000, "completion": 100}}
    job = stops(
        {
            "script": {"clerk": [costly, costly, {**EXIT, "usage": {"prompt": 1, "completion": 1}}]},  # type: ignore[dict-item]
            "limits": limited(5000),
        }
    )
    _, reported = job.comparisons
    assert (reported.judgement, reported.turns) == (Judgement.LATE_STOP, -1)
    assert reported.ending.reported_tokens == 8200


def test_a_job_that_would_outlive_its_script_goes_at_least_that_far() -> None:
    text = looping(6, say=CHINESE, limits=limited(2500))
    script = text["script"]
    assert isinstance(script, dict)
    replies = script["clerk"]
    assert isinstance(replies, list)
    text["script"] = {"clerk": replies[:4]}
    measured = stops(text).comparisons[0]
    assert (measured.judgement, measured.at_least) == (Judgement.FALSE_STOP, True)


def test_a_harness_on_tokens_refuses_a_job_that_does_not_know_them() -> None:
    harness = BasisHarness(LLM_Harness(1, 1, 1, 1), UsageBasis.MEASURED)
    with pytest.raises(TypeError, match="which this limit needs"):
        harness.check_after_step(SimpleNamespace(num_completions=0, difficulty_token_extension=0))


# -- how much room a preset leaves ---------------------------------------------------------------------------------


@table_test(
    "text",
    [
        looping(3),
        looping(8),
        {"script": {"clerk": [FAILURE, {"code": "print(1)"}, FAILURE, EXIT]}},
        {"script": {"clerk": [FAILURE, FAILURE, FAILURE, EXIT]}, "limits": {"max_exceptions": 9}},
        looping(2, say=DIGITS, preset="interactive"),
    ],
)
def test_what_is_needed_is_what_trying_every_value_finds(text: dict[str, JSON]) -> None:
    sample = replay(text)
    *others, last = sensitivity(sample).needs
    for need in others:
        assert need.needed == _tried(sample, need.limit, range(15))
    tokens = last.needed
    assert tokens is not None
    assert tokens == _tried(sample, LimitName.MAX_TOKEN_USAGE, range(max(tokens - 40, 0), tokens + 40))


def _tried(sample: Replay, limit: LimitName, values: range) -> int:
    """Return the smallest of the values with which the limit stops no job; check that none above it does."""
    fits = [limit not in _stopping(sample, limit, value) for value in values]
    first = fits.index(True)
    assert all(fits[first:])
    return values[first]


def test_the_limit_that_stopped_a_scenario_binds() -> None:
    found = sensitivity(replay(looping(8)))
    turns = found.needs[0]
    assert (found.verdict, found.stopped, found.binds) == ("max_turns", True, LimitName.MAX_TURNS)
    # Eight turns that print and one that exits: its code runs before the tenth call would be made.
    assert (turns.value, turns.needed, turns.enough, turns.then) == (5, 9, False, "finishes")


def test_a_scenario_that_finishes_is_bound_by_the_limit_it_comes_closest_to() -> None:
    found = sensitivity(replay(looping(3)))
    assert (found.verdict, found.stopped, found.binds) == ("finishes", False, LimitName.MAX_TURNS)
    assert found.needs[0].used == 4 / 5


def test_limits_that_a_scenario_states_itself_are_marked() -> None:
    found = sensitivity(replay(looping(3, limits={"max_turns": 4})))
    assert [need.stated for need in found.needs] == [True, False, False, False]


def test_raising_one_limit_may_only_bring_the_next_one() -> None:
    found = sensitivity(replay({"script": {"clerk": [FAILURE] * 4}, "limits": {"max_exceptions": 1}}))
    by_limit = {need.limit: need for need in found.needs}
    assert found.verdict == "max_exceptions"
    assert by_limit[LimitName.MAX_EXCEPTIONS].then == "max_consecutive_exceptions"


@table_test(
    ("suite", "name"),
    [
        ("claims", "claim-handlers-run-once"),
        ("claims", "claim-stale-handler-guarded"),
        ("claims", "claim-stale-handler-unguarded"),
        ("delegation", "subtask-result-revives-stopped-parent"),
        ("extension", "extension-chat-under-defaults"),
        ("extension", "extension-of-exceptions"),
        ("harness", "check-after-step-ignores-turns"),
        ("reactivation", "reactivation-of-a-stopped-job"),
        ("reactivation", "reactivation-of-a-crashed-job"),
        ("versions", "follow-ups-until-the-harness-stops-the-chat"),
        ("workloads", "delegation-storm"),
    ],
)
def test_a_stop_counts_even_if_the_job_is_reactivated(suite: str, name: str) -> None:
    sample = _built_in(suite, name)
    for need in sensitivity(sample).needs:
        assert need.needed is not None
        assert need.limit not in _stopping(sample, need.limit, need.needed)
        assert not need.needed or need.limit in _stopping(sample, need.limit, need.needed - 1)


def test_no_limit_is_enough_for_a_job_that_never_ends() -> None:
    sample = _built_in("extension", "extension-of-document-000")
    turns = sensitivity(sample).needs[0]
    assert (turns.needed, turns.then, turns.enough, turns.used) == (None, "RunawayJob", False, 0.0)
    for value in (0, 5):
        assert _stopping(sample, turns.limit, value) == {LimitName.MAX_TURNS}


def test_a_reactivated_job_was_stopped() -> None:
    found = sensitivity(_built_in("reactivation", "reactivation-of-a-stopped-job"))
    assert (found.verdict, found.stopped, found.binds) == ("finishes", True, LimitName.MAX_TURNS)


def test_what_is_needed_is_counted_in_the_run_with_the_scenarios_deviations() -> None:
    sample = replay(looping(3, deviations=[{"limit": "max_turns", "value": 2}]))
    found = sensitivity(sample)
    assert (found.stopped, found.binds) == (True, LimitName.MAX_TURNS)
    turns, *_, tokens = found.needs
    assert (turns.needed, turns.enough) == (None, False)
    assert _stopping(sample, turns.limit, 50) == {LimitName.MAX_TURNS}
    assert tokens.needed
    assert _stopping(sample, tokens.limit, tokens.needed) == {LimitName.MAX_TURNS}
    assert _stopping(sample, tokens.limit, tokens.needed - 1) == {LimitName.MAX_TOKEN_USAGE}


@table_test(("before", "most", "needed"), [(0, 50, 1), (3, 50, 4), (0, 12, 1), (0, 11, None)])
def test_a_limit_that_code_assigns_is_needed_only_until_then(
    before: int, most: int, needed: int | None
) -> None:
    printed: list[JSON] = [{"code": "print(1)"}] * 10
    script: list[JSON] = [*printed[:before], {"code": f"set_max_turns({most})"}, *printed[before:], EXIT]
    tools: JSON = {"clerk": {"tools": [f"{__name__}:set_max_turns"]}}
    sample = replay({"agents": tools, "script": {"clerk": script}, "limits": {"max_token_usage": None}})
    turns = sensitivity(sample).needs[0]
    assert turns.needed == needed
    if needed is None:
        assert _stopping(sample, turns.limit, 100) == {LimitName.MAX_TURNS}
    else:
        assert _tried(sample, turns.limit, range(5)) == needed


@tool
def set_max_turns(most: int, **kwargs: object) -> None:
    """Set the harness's limit on turns."""
    get_llm_harness().max_turns = most  # type: ignore[misc]


def _built_in(suite: str, name: str) -> Replay:
    found = [one for one in load_or_fail([builtin_suites() / suite]) if one.id == name]
    return Replay(scenario=found[0], profile="docs")


def _stopping(sample: Replay, limit: LimitName, value: int) -> set[LimitName]:
    """Return the limits that stop a job, even if it then continues, with one limit changed."""
    limits = sample.with_limit(limit, value)
    record = run_scenario(
        sample.scenario,
        sample.profile,
        preset=sample.preset,
        harness=lambda harness: LLM_Harness.from_limits(limits, rule=harness.rule),
    )
    return {stop.limit for stop in every_stop(record)}


# -- the limit that fits a budget ----------------------------------------------------------------------------------


@table_test("say", ["", CHINESE, DIGITS])
@table_test("basis_budget", [1500, 4000])
def test_the_limit_keeps_real_usage_within_the_budget_and_one_more_does_not(
    say: str, basis_budget: int
) -> None:
    sample = replay(looping(12, say=say or "x" * 200, limits=limited(10**6)))
    found = calibrate([sample], basis_budget)
    assert real(sample.endings(sample.with_limit(LimitName.MAX_TOKEN_USAGE, found.limit))) <= basis_budget
    assert not found.scenarios[0].projected
    assert real(sample.endings(sample.with_limit(LimitName.MAX_TOKEN_USAGE, found.limit + 1))) > basis_budget


def test_traffic_that_never_reaches_the_budget_is_projected_at_its_own_rate() -> None:
    sample = replay(looping(2))
    (ending,) = sample.endings().values()
    found = calibrate([sample], 50_000)
    assert found.scenarios[0].projected
    assert found.limit == 50_000 * ending.approx_tokens // ending.measured_tokens
    assert found.stopped == ()


def test_the_strictest_scenario_decides_and_others_are_stopped_needlessly() -> None:
    dense = replay(looping(12, say=DIGITS, limits=limited(10**6)), "dense")
    chinese = replay(looping(6, say=CHINESE, limits=limited(10**6)), "chinese")
    found = calibrate([dense, chinese], 6000)
    by_name = {one.scenario: one.limit for one in found.scenarios}
    assert found.limit == by_name["samples/dense[docs]"]
    assert found.over == ()
    assert {(one.scenario, one.needlessly) for one in found.stopped} == {
        ("samples/dense[docs]", False),
        ("samples/chinese[docs]", True),
    }


def test_keeping_fewer_scenarios_allows_a_higher_limit_and_names_those_over_it() -> None:
    samples = [
        replay(looping(12, say=DIGITS, limits=limited(10**6)), "dense"),
        *(replay(looping(4, say=CHINESE, limits=limited(10**6)), f"chinese-{n}") for n in range(3)),
    ]
    found = calibrate(samples, 6000, keep=0.75)
    assert found.limit > calibrate(samples, 6000).limit
    assert found.over == ("samples/dense[docs]",)


def test_a_first_call_over_the_budget_can_be_kept_by_no_limit() -> None:
    message = re.escape(
        "--budget-tokens 10: no limit keeps any of the 1 scenarios within this budget in measured tokens"
    )
    with pytest.raises(BadInput, match=f"^{message}$"):
        calibrate([replay(looping(2, say=DIGITS))], 10)


def test_scenarios_without_reports_are_left_out_on_reported_tokens() -> None:
    told: JSON = {"code": "exit(1)", "usage": {"prompt": 100, "completion": 1}}
    samples = [replay({"script": {"clerk": [told]}}, "told"), replay(looping(1), "untold")]
    found = calibrate(samples, 5000, basis=UsageBasis.REPORTED)
    assert (len(found.scenarios), found.unknown) == (1, ("samples/untold[docs]",))


@table_test(("share", "expected"), [(0.0, 1), (0.25, 2), (0.5, 3), (1.0, 4)])
def test_a_quantile_is_one_of_the_values(share: float, expected: int) -> None:
    assert quantile([1, 2, 3, 4], share) == expected


def test_a_run_that_never_ends_is_told_as_such() -> None:
    forever: JSON = {"code": "print(1)", "repeat": "forever"}
    found: Sensitivity = sensitivity(
        replay({"script": {"clerk": [forever]}, "limits": {"max_token_usage": 2000}})
    )
    turns = found.needs[0]
    assert (found.verdict, turns.then) == ("max_turns", "max_token_usage")
