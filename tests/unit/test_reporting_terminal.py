"""The terminal report: plain and narrow where nobody watches, with progress where somebody does."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from statek_sim.reporting.model import Failure, Report, build_report
from statek_sim.reporting.report_text import RunProgress, report_lines, unchecked
from statek_sim.scenario.expect import Expect
from statek_sim.suite.result import Mismatch, ScenarioResult
from tests.tables import table_test
from tests.unit.reporting_samples import ONE_CALL, Talk, chinese, digits, english, result, said, tooled

WRONG = Mismatch(("jobs", "main", "turns"), 2, 3)

LONG = "usage/the-tools-of-a-direct-agent-with-all-tools-in-scope-and-a-very-long-name"


def _results() -> list[ScenarioResult]:
    proxy = Talk(model="claude-sonnet-4").turn(said("user", "Zażółć gęślą jaźń"))
    return [
        result("claims/crash"),
        result("claims/two", english(2), english(3, "second")),
        result("reactivation/push", english(4), mismatches=[WRONG]),
        result("usage/chinese", chinese()),
        result("usage/digits", digits(), seconds=1.5),
        result(LONG, tooled(), profile="1.4"),
        result("usage/polish", proxy),
        *(result(f"usage/s-{number}", english(number)) for number in range(1, 10)),
    ]


def _report(results: Sequence[ScenarioResult]) -> Report:
    return build_report(results, preset="default", seed=None)


def _console(*, terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), width=80, force_terminal=terminal, legacy_windows=False, _environ={})


def _written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def _printed(
    results: Sequence[ScenarioResult], *, width: int = 80, quiet: bool = False, report: Report | None = None
) -> str:
    report = _report(results) if report is None else report
    return "\n".join(line.plain for line in report_lines(report, results, width=width, quiet=quiet)) + "\n"


@table_test("width", [80, 100, 140])
def test_plain_output_is_ascii_and_keeps_its_width(*, width: int) -> None:
    text = _printed([one for one in _results() if not one.mismatches], width=width)
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= width
    assert all(line == line.rstrip() for line in text.splitlines())


def test_suites_are_summed_up_with_counts_and_time() -> None:
    head, claims, reactivation, usage, total = (
        line.split() for line in _printed(_results()).splitlines()[:5]
    )
    assert head == ["suite", "pass", "fail", "time"]
    assert claims == ["claims", "2", "-", "0.50s"]
    assert reactivation == ["reactivation", "-", "1", "0.25s"]
    assert usage == ["usage", "13", "-", "4.50s"]
    assert total == ["all", "15", "1", "5.25s"]


def test_quiet_output_is_failures_and_the_verdict() -> None:
    first, *_, last = _printed(_results(), quiet=True).splitlines()
    assert first == "reactivation/push[docs]: jobs.main.turns: expected 2, got 3"
    assert last == "15 passed, 1 failed"


def test_a_failure_is_told_and_the_verdict_comes_last() -> None:
    text = _printed(_results())
    assert "\nreactivation/push[docs]: jobs.main.turns: expected 2, got 3\n" in text
    assert "\n  What it shows.\n" in text
    assert text.splitlines()[-3:] == [
        "15 passed, 1 failed in 5.25s",
        "profiles docs, 1.4; preset default; seeds as written",
        f"digest {_report(_results()).digest}",
    ]


def test_a_failures_lines_are_neither_wrapped_nor_obeyed() -> None:
    results = [result("a/x", mismatches=[WRONG])]
    failure = Failure("a/x[docs]", f"it\n  [bold]{'long ' * 40}\x1b[2J :smile:", ("a/x[docs]",))
    text = _printed(results, report=replace(_report(results), failures=(failure,)))
    assert f"\n  [bold]{'long ' * 40}\\x1b[2J :smile:\n" in text


def test_without_a_preset_for_the_whole_run_the_presets_are_as_written() -> None:
    report = build_report([result("a/x")], preset=None, seed=3)
    assert "\nprofile docs; presets as written; seed 3\n" in _printed([], report=report)


def test_scenarios_that_expect_nothing_are_named() -> None:
    nothing = Expect()
    one = _printed(
        [result("a/x"), result("a/y", expects=nothing), result("a/y", profile="1.4", expects=nothing)]
    )
    assert (
        "1 scenario has no expectations and always passes: a/y; to add expectations, use `statek-sim run"
        in one
    )
    partly = result("a/z", expects=nothing)
    said_elsewhere = partly.scenario.model_copy(update={"expect_in": {"1.4": ONE_CALL}})
    runs = [replace(partly, scenario=said_elsewhere, profile=profile) for profile in ("docs", "1.4")]
    assert build_report(runs, preset=None, seed=None).unchecked == ("a/z[docs]",)
    many = [result(f"a/s-{number:02}", expects=nothing) for number in range(12)]
    assert "a/s-09 and 2 more; " in unchecked(_report(many))
    assert unchecked(_report([result("a/x")])) == ""


def test_an_empty_run_says_so() -> None:
    assert _printed([]).startswith("no scenarios ran\nprofiles none; preset default;")


def test_a_terminal_shows_progress_and_takes_it_away() -> None:
    console = _console(terminal=True)
    with RunProgress(console, 2) as progress:
        progress.advance("", "usage/s-1[docs]")
        progress.advance("1 failed", "usage/s-9[docs]")
    text = _written(console)
    assert "2/2" in text
    assert "1 failed  usage/s-9[docs]" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def test_progress_is_not_shown_where_nobody_watches() -> None:
    console = _console()
    with RunProgress(console, 2) as progress:
        progress.advance("", "usage/s-1[docs]")
    assert _written(console).strip() == ""


def _break_off(progress: RunProgress) -> None:
    with progress:
        progress.advance("", "a/x")
        raise KeyboardInterrupt("stop")


def test_progress_is_taken_away_when_a_run_breaks_off() -> None:
    console = _console(terminal=True)
    with pytest.raises(KeyboardInterrupt, match="stop"):
        _break_off(RunProgress(console, 3))
    assert _written(console).rindex("\x1b[?25h") > _written(console).rindex("\x1b[?25l")


def test_only_real_time_differs_between_equal_runs() -> None:
    slow = [replace(one, seconds=one.seconds * 1.01) for one in _results()]
    pairs = zip(_printed(_results()).splitlines(), _printed(slow).splitlines(), strict=True)
    assert all("s" in first for first, second in pairs if first != second)
