"""`report.md` shows what it is given, whatever that holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from statek_sim.reporting.model import Failure, Report, build_report
from statek_sim.reporting.report_text import markdown_report
from statek_sim.suite.result import Mismatch, ScenarioResult
from tests.unit.reporting_samples import Talk, digits, english, result, said

WRONG = Mismatch(("jobs", "main", "turns"), 2, 3)


def _report(*results: ScenarioResult) -> Report:
    return build_report(results, preset="default", seed=3)


def _failed(texts: Sequence[str]) -> Report:
    names = [f"a/x-{number}[docs]" for number in range(len(texts))]
    failures = tuple(Failure(name, text, (name,)) for name, text in zip(names, texts, strict=True))
    return replace(_report(result("a/x", mismatches=[WRONG])), failures=failures)


def test_the_head_and_the_summary_tell_how_it_ended() -> None:
    text = markdown_report(
        _report(result("claims/x", mismatches=[WRONG]), result("usage/y"), result("usage/z"))
    )
    assert text.startswith("# STATEK scenarios: 2 passed, 1 failed\n\nProfile docs; preset default; seed 3.")
    assert "| claims | 1 | - | **1** |\n| usage | 2 | 2 | - |\n| **all** | 3 | 2 | **1** |" in text


def test_a_failure_is_shown_with_its_text() -> None:
    text = markdown_report(_report(result("claims/x", english(), mismatches=[WRONG])))
    assert "## Failures\n\n### `claims/x[docs]`\n\n```text\njobs.main.turns: expected 2, got 3\n" in text
    assert "\n  What it shows.\n" in text


def test_a_failure_cannot_leave_its_block() -> None:
    text = markdown_report(_failed(["said:\n````\n# not a heading"]))
    assert "\n`````text\nsaid:\n````\n# not a heading\n`````\n" in text


def test_a_failure_shows_characters_that_nobody_can_see() -> None:
    assert "\\x1b[31mred \\ud800 zażółć 😀\n" in markdown_report(_failed(["\x1b[31mred \ud800 zażółć 😀"]))


def test_a_long_failure_is_cut() -> None:
    text = markdown_report(_failed(["x" * 20_000]))
    assert "\n... 4,000 more characters\n" in text


def test_many_failures_are_named_only() -> None:
    text = markdown_report(_failed(["wrong"] * 45))
    assert text.count("```text") == 40
    assert "And 5 more failures:\n\n- `a/x-40[docs]`" in text


def test_the_usage_table_has_the_ratio_and_the_tokenizer() -> None:
    talk = Talk(model="claude-sonnet-4").turn(said("user", "go on"))
    totals = talk.totals
    text = markdown_report(_report(result("usage/a", talk)))
    columns = f"{totals.approx_tokens} | {totals.measured_tokens} | {totals.reported_tokens}"
    ratio = totals.approx_tokens / totals.measured_tokens
    assert f"| usage | {columns} | x{ratio:.2f} over | o200k_base (proxy) |" in text
    assert "Proxy: measured with another tokenizer" in text


def test_without_usage_there_is_no_usage_section() -> None:
    assert "## Usage" not in markdown_report(_report(result("a/x")))


def test_a_users_own_label_cannot_break_the_table() -> None:
    sample = result("usage/a", english())
    usage = replace(sample.record.usage, tokenizer="a|b <*>")
    text = markdown_report(_report(replace(sample, record=replace(sample.record, usage=usage))))
    assert "| a\\|b \\<\\*\\> |" in text


def test_an_empty_run_says_so() -> None:
    assert markdown_report(_report()).startswith("# STATEK scenarios: no scenarios ran\n")


def test_equal_reports_are_equal_texts() -> None:
    results = [result("usage/a", english()), result("usage/b", digits())]
    assert markdown_report(_report(*results)) == markdown_report(_report(*results[::-1]))
