"""A report is a pure function of results, whatever order they come in."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from statek_sim.backends.record import UsageRecord
from statek_sim.reporting.model import Report, build_report, total_usage, usage_ratio
from statek_sim.suite.result import Mismatch, ScenarioResult
from tests.unit.reporting_samples import Talk, english, result

WRONG = Mismatch(("jobs", "main", "turns"), 2, 3)


def _report(*results: ScenarioResult) -> Report:
    return build_report(results, preset="default", seed=None)


def _usage(
    approx: int, measured: int, *, reported: int | None = None, tokenizer: str = "o200k_base"
) -> UsageRecord:
    return UsageRecord(
        bytes_sent=approx * 4,
        bytes_received=0,
        approx_tokens=approx,
        measured_tokens=measured,
        reported_tokens=reported,
        tokenizer=tokenizer,
    )


def test_rows_come_by_suite_scenario_and_profile_in_any_order_of_results() -> None:
    results = [
        result("usage/b", english()),
        *(result("usage/a", english(), profile=profile) for profile in ("1.4", "docs", "1.2")),
        result("claims/z", english(), mismatches=[WRONG]),
    ]
    report = _report(*results)
    assert [row.name for row in report.rows] == [
        "claims/z[docs]",
        "usage/a[docs]",
        "usage/a[1.2]",
        "usage/a[1.4]",
        "usage/b[docs]",
    ]
    assert report.profile == "docs,1.2,1.4"
    assert report == _report(*reversed(results))


def test_suites_count_what_passed_and_what_failed() -> None:
    report = _report(result("b/x"), result("a/x", mismatches=[WRONG]), result("a/y"))
    counted = [(suite.name, suite.total, suite.passed, suite.failed) for suite in report.suites]
    assert counted == [("a", 2, 1, 1), ("b", 1, 1, 0)]
    assert (report.overall.total, report.overall.passed, report.overall.failed) == (3, 2, 1)


def test_failures_carry_the_text_that_explains_them() -> None:
    report = _report(result("a/x", english(), mismatches=[WRONG]), result("a/y"))
    (failure,) = report.failures
    assert failure.name == "a/x[docs]"
    assert "jobs.main.turns" in failure.text


def test_the_digest_covers_names_and_digests_in_order() -> None:
    first, second = result("a/x"), result("a/y")
    lines = f"a/x[docs] {first.record.digest}\na/y[docs] {second.record.digest}\n"
    assert _report(second, first).digest == hashlib.sha256(lines.encode()).hexdigest()
    changed = replace(first, record=replace(first.record, digest="0" * 64))
    assert _report(changed, second).digest != _report(first, second).digest


def test_real_time_is_not_in_a_report() -> None:
    assert _report(result("a/x", english(), seconds=1.0)) == _report(result("a/x", english(), seconds=2.0))


def test_totals_add_columns_and_join_tokenizers() -> None:
    nothing = replace(_usage(0, 0), tokenizer="none")
    total = total_usage([_usage(3, 2, reported=5), _usage(4, 4, tokenizer="mine + o200k_base"), nothing])
    assert (total.approx_tokens, total.measured_tokens, total.reported_tokens) == (7, 6, 5)
    assert total.tokenizer == "mine + o200k_base"


def test_totals_of_nothing_are_measured_with_nothing() -> None:
    total = total_usage([])
    assert (total.tokenizer, usage_ratio(total), total.reported_tokens) == ("none", None, None)


@pytest.mark.parametrize(("approx", "measured"), [(0, 5), (5, 0), (0, 0)])
def test_there_is_no_ratio_when_either_number_is_missing(approx: int, measured: int) -> None:
    assert usage_ratio(_usage(approx, measured)) is None


def test_a_report_of_nothing_is_empty() -> None:
    report = _report()
    assert (report.rows, report.suites, report.overall.total, report.profile) == ((), (), 0, "none")


def test_turns_are_those_of_all_jobs() -> None:
    talks = english(2), Talk("second").turn()
    assert _report(result("a/x", *talks)).rows[0].turns == 3
