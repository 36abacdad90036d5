"""What holds of the page of every built-in scenario: of one run in three, and of all in `slow` tests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from statek_sim.harness.limits import LimitName
from statek_sim.reporting.model import in_order
from statek_sim.reporting.page.data import PageData, render
from statek_sim.scenario.load import load_or_fail
from statek_sim.suite.result import ScenarioResult
from statek_sim.suite.run import builtin_suites, chosen, run_one
from statek_sim.trace import ProcessKilled
from tests.unit.page_samples import check_details, check_index, page, seqs

MAX_SIZE_PER_RUN = 20_000
"""Characters of details, on average; 100 runs and the charts stay well under 3 MB with it."""


VALIDATED = 25
"""One of so many runs is held against the schema: the validator is slow."""


@pytest.fixture(scope="module", params=[3, pytest.param(1, marks=pytest.mark.slow)], ids=["sampled", "all"])
def every(request: pytest.FixtureRequest) -> int:
    chosen: int = request.param
    return chosen


@pytest.fixture(scope="module")
def results(every: int) -> list[ScenarioResult]:
    pairs = chosen(load_or_fail([builtin_suites()]))[::every]
    return in_order(run_one(scenario, profile) for scenario, profile in pairs)


@pytest.fixture(scope="module")
def data(results: list[ScenarioResult]) -> PageData:
    return page(*results)


@pytest.fixture(scope="module")
def details(data: PageData) -> list[dict[str, Any]]:
    return [json.loads(text) for text in data.details.values()]


def test_the_data_is_what_the_schema_says(data: PageData, details: list[dict[str, Any]]) -> None:
    check_index(json.loads(data.index))
    check_details(*details[::VALIDATED])


def test_every_waterfall_adds_up_to_what_was_metered(
    results: list[ScenarioResult], details: list[dict[str, Any]], every: int
) -> None:
    checked = 0
    for result, found in zip(results, details, strict=True):
        for job in found["jobs"]:
            usage = result.record.jobs[job["name"]].usage
            if steps := job["waterfall"]:
                assert steps["once"] + steps["history"] == steps["from"] == usage.approx_tokens, result.id
                assert steps["from"] + sum(step["tokens"] for step in steps["steps"]) == steps["to"]
                assert steps["to"] == usage.measured_tokens, result.id
                checked += 1
    assert checked * every > 800


def test_the_waterfall_of_all_runs_is_the_reports_totals(data: PageData) -> None:
    index = json.loads(data.index)
    steps, totals = index["waterfall"], index["totals"]
    assert (steps["from"], steps["to"]) == (totals["approx"], totals["measured"])
    assert steps["from"] + sum(step["tokens"] for step in steps["steps"]) == steps["to"]


def test_every_curve_ends_at_what_was_metered(
    results: list[ScenarioResult], details: list[dict[str, Any]]
) -> None:
    for result, found in zip(results, details, strict=True):
        for job in found["jobs"]:
            usage = result.record.jobs[job["name"]].usage
            if any(isinstance(one, ProcessKilled) for one in result.record.events):
                # A run that began anew forgets what was spent before the crash; the page does not.
                assert job["calls"][-1]["approx_total"] >= usage.approx_tokens
                continue
            last = job["calls"][-1] if job["calls"] else {"approx_total": 0, "measured_total": 0}
            assert last["approx_total"] == usage.approx_tokens, result.id
            assert last["measured_total"] == usage.measured_tokens, result.id


def test_a_job_goes_over_its_limit_line_exactly_when_the_token_limit_stops_it(
    details: list[dict[str, Any]], every: int
) -> None:
    stopped = 0
    for found in details:
        for job in found["jobs"]:
            over = [
                limit is not None and call["approx_total"] > limit
                for call, limit in zip(job["calls"], job["limit_line"], strict=True)
            ]
            by_tokens = job["stop"] == LimitName.MAX_TOKEN_USAGE
            stopped += by_tokens
            assert over[-1:] == [by_tokens] if over else not by_tokens
    assert stopped * every > 10


def test_what_the_timeline_shows_is_in_the_order_of_the_trace(details: list[dict[str, Any]]) -> None:
    for found in details:
        jobs = {"", *(lane["job"] for lane in found["lanes"])}
        assert seqs(found["transcript"]) == sorted(seqs(found["transcript"]))
        for span in found["spans"]:
            assert span["job"] in jobs
            assert span["to_seq"] is None or span["to_seq"] >= span["from_seq"]
            assert span["to"] is None or span["to"] >= span["from"]


def test_claims_that_stay_open_are_the_leaked_ones(
    results: list[ScenarioResult], details: list[dict[str, Any]], every: int
) -> None:
    leaks = 0
    for result, found in zip(results, details, strict=True):
        claimed = sorted(name for name, item in result.record.items.items() if item["status"] == "CLAIMED")
        claims = [span for span in found["spans"] if span["kind"] == "claim" and span["to_seq"] is None]
        assert sorted(span["label"].partition(" by ")[0] for span in claims) == claimed, result.id
        assert set(found["leaked_claims"]) <= set(claimed)
        leaks += len(claimed)
    assert leaks * every > 10


def test_a_hundred_runs_take_little_room(data: PageData) -> None:
    sizes = [len(text) for text in data.details.values()]
    assert sum(sizes) / len(sizes) < MAX_SIZE_PER_RUN
    assert len(render(data)) - sum(sizes) - len(data.index) < 1_200_000
