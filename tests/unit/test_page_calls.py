"""Usage curves: what a job used so far under each count, and where its token limit stands at each call."""

from __future__ import annotations

from typing import Any

from statek_sim.reporting.page.details import Curve, curves, result_harness
from statek_sim.suite.result import ScenarioResult
from statek_sim.values import JSON
from tests.unit.usage_samples import dialog, played


def curve_of(result: ScenarioResult, job: str = "main") -> Curve:
    return curves(result, result_harness(result))[job]


def column(curve: Curve, name: str) -> list[Any]:
    return [call[name] for call in curve.calls]


def reactivated(profile: str, *, extension: float) -> ScenarioResult:
    text = dialog({"text": "one"}, {"text": "two"}, {"text": "three"})
    limits: dict[str, JSON] = {"max_token_usage": 1000, "limit_extension_per_completion": extension}
    pushes: list[JSON] = [{"at": float(n), "push": "main", "message": "more"} for n in (1, 2)]
    return played({**text, "limits": limits, "events": pushes}, profile=profile)


def test_totals_are_of_the_job_so_far_and_end_at_what_was_metered() -> None:
    result = played(
        dialog({"tools": [{"name": "echo", "args": {"value": "a"}}]}, {"text": "b"}, tools=["echo"])
    )
    curve, usage = curve_of(result), result.record.usage
    assert column(curve, "turn") == [1, 2]
    assert column(curve, "approx_total")[-1] == usage.approx_tokens
    assert column(curve, "measured_total")[-1] == usage.measured_tokens
    assert sum(column(curve, "bytes_sent")) == usage.bytes_sent
    assert sum(column(curve, "bytes_received")) == usage.bytes_received


def test_an_estimate_so_far_is_floored_once() -> None:
    curve = curve_of(played(dialog({"text": "a"}, {"text": "b"}, reminder={"text": "Go on."})))
    sizes = list(zip(column(curve, "bytes_sent"), column(curve, "bytes_received"), strict=True))
    reached = [sum(map(sum, sizes[: n + 1])) // 4 for n in range(len(sizes))]
    assert column(curve, "approx_total") == reached


def test_what_a_provider_reported_adds_up_from_its_first_report() -> None:
    usage: JSON = {"prompt": 100, "completion": 7}
    told: JSON = {"tools": [{"name": "echo", "args": {"value": "a"}}], "usage": usage}
    curve = curve_of(
        played(
            dialog({"tools": [{"name": "echo", "args": {"value": "a"}}]}, told, {"text": "b"}, tools=["echo"])
        )
    )
    assert column(curve, "reported") == [None, 107, None]
    assert column(curve, "reported_total") == [None, 107, 107]


def test_an_unlimited_job_has_no_limit_line() -> None:
    assert curve_of(played(dialog({"text": "a"}))).limit_line == [None]


def test_the_limit_line_is_the_presets_unless_the_scenario_says_its_own() -> None:
    assert curve_of(played(dialog({"text": "a"}, unlimited=False))).limit_line == [10_000]
    own: dict[str, JSON] = {**dialog({"text": "a"}), "limits": {"max_token_usage": 77_000}}
    assert curve_of(played(own)).limit_line == [77_000]


def test_completions_lift_the_limit_line_as_the_profile_has_it() -> None:
    assert curve_of(reactivated("docs", extension=0.5)).limit_line == [1000, 1001, 1003]
    assert curve_of(reactivated("1.4", extension=0.5)).limit_line == [1000, 1500, 2000]


def test_a_rise_of_the_difficulty_lifts_the_limit_line_where_it_does_so_in_statek() -> None:
    text: dict[str, JSON] = {
        "script": {"clerk": [{"code": "print(1)"}, {"code": "panic()"}, {"code": "exit()"}]},
        "limits": {"max_token_usage": 5000},
    }
    newest, before = curve_of(played(text, profile="1.4")), curve_of(played(text, profile="1.2"))
    used = column(newest, "approx_total")
    assert newest.limit_line == [5000, 5000 + used[1], 5000 + used[1]]
    assert before.limit_line == [5000, 5000, 5000]


def test_calls_that_failed_are_not_on_the_curve() -> None:
    assert len(curve_of(played(dialog({"http": 500}, {"text": "at last"}))).calls) == 1


def test_an_answer_that_ended_its_job_counts_as_it_was_metered() -> None:
    result = played(dialog({"text": "a", "usage": {"prompt": None, "completion": 4}}))
    assert result.record.jobs["main"].stop == "crash"
    (call,) = curve_of(result).calls
    usage = result.record.usage
    assert (call["approx_total"], call["measured_total"]) == (usage.approx_tokens, usage.measured_tokens)
