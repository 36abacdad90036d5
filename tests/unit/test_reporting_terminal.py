"""The terminal report: plain and narrow where nobody watches, with progress where somebody does."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from statek_sim.reporting.model import Failure, Report, build_report
from statek_sim.reporting.report_text import unchecked
from statek_sim.reporting.terminal import TerminalReporter
from statek_sim.scenario.expect import Expect
from statek_sim.scenario.statements import Coverage
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


def _report(results: Sequence[ScenarioResult], statements: Coverage | None = None) -> Report:
    return build_report(results, preset="default", seed=None, statements=statements)


def _printed(
    results: Sequence[ScenarioResult],
    *,
    width: int = 80,
    verbose: bool = False,
    terminal: bool = False,
    report: Report | None = None,
) -> str:
    console = Console(
        file=io.StringIO(), width=width, force_terminal=terminal, legacy_windows=False, _environ={}
    )
    with TerminalReporter(console, verbose) as reporter:
        reporter.start(len(results))
        for one in results:
            reporter.result(one)
        reporter.finish(_report(results) if report is None else report)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@table_test("width", [80, 100, 140])
@table_test("verbose", [False, True])
def test_plain_output_is_ascii_and_keeps_its_width(*, width: int, verbose: bool) -> None:
    text = _printed([one for one in _results() if not one.mismatches], width=width, verbose=verbose)
    assert text.isascii()
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= width
    assert all(line == line.rstrip() for line in text.splitlines())


def test_suites_are_summed_up_with_counts_time_and_usage() -> None:
    lines = _printed(_results()).splitlines()
    head, claims, reactivation, usage, total = (line.split() for line in lines[:5])
    assert head == ["suite", "pass", "fail", "time", "estimate", "measured", "reported", "ratio"]
    assert claims[:4] == ["claims", "2", "-", "0.50s"]
    assert reactivation[:4] == ["reactivation", "-", "1", "0.25s"]
    assert usage[:4] == ["usage", "13", "-", "4.50s"]
    assert total[:4] == ["all", "15", "1", "5.25s"]


def test_the_worst_twelve_are_shown_and_all_when_verbose() -> None:
    text, verbose = _printed(_results()), _printed(_results(), verbose=True)
    assert "the worst 12 of 15 scenarios, each under its worst profile; 1 run without" in text
    assert "usage/s-1[docs] " in text
    assert "usage/s-9[docs] " not in text
    assert all(f"\nusage/s-{number}[docs] " in verbose for number in range(1, 10))
    assert "\nclaims/crash[docs] " in verbose


def test_a_stand_in_tokenizer_shows_at_every_width() -> None:
    results = _results()
    narrow, wide = _printed(results, verbose=True), _printed(results, verbose=True, width=140)
    (line,) = (line for line in narrow.splitlines() if line.startswith("usage/polish"))
    assert line.endswith(" over   proxy")
    (line,) = (line for line in wide.splitlines() if line.startswith("usage/polish"))
    assert line.endswith(" over   o200k_base (proxy)")
    assert "proxy: measured with a stand-in" in narrow


def test_room_is_used_for_bytes() -> None:
    assert " sent  received " not in _printed(_results())
    assert " sent  received " in _printed(_results(), width=140)


def test_offenders_come_with_the_reason() -> None:
    assert (
        "x0.60 under  usage/digits[docs]\n"
        "  the harness thinks 727 tokens, the model saw 1,209, counted with o200k_base:\n"
        "  -542 from tokenizer density.\n"
    ) in _printed(_results())


def test_a_failure_is_told_and_the_verdict_comes_last() -> None:
    text = _printed(_results())
    assert "\nFailures\nreactivation/push[docs]: jobs.main.turns: expected 2, got 3\n" in text
    assert "\n  What it shows.\n" in text
    assert text.splitlines()[-3:] == [
        "15 passed, 1 failed in 5.25s",
        "profiles docs, 1.4; preset default; seeds as written",
        f"digest {_report(_results()).digest}",
    ]


def test_a_failures_lines_are_neither_wrapped_nor_obeyed() -> None:
    results = [result("a/x", mismatches=[WRONG])]
    failure = Failure("a/x[docs]", f"it\n  [bold]{'long ' * 40}\x1b[2J\ud800 :smile:", ("a/x[docs]",))
    text = _printed(results, report=replace(_report(results), failures=(failure,)))
    assert f"\n  [bold]{'long ' * 40}\\x1b[2J\\ud800 :smile:\n" in text


def test_what_the_output_cannot_encode_is_escaped() -> None:
    results = [result("a/x", mismatches=[WRONG])]
    report = replace(_report(results), failures=(Failure("a/x[docs]", "zażółć 好", ("a/x[docs]",)),))
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, encoding="ascii"), width=80, _environ={})
    TerminalReporter(console, verbose=False).finish(report)
    console.file.flush()
    assert b"a/x[docs]: za\\u017c\\xf3\\u0142\\u0107 \\u597d\n" in raw.getvalue()


def test_without_a_preset_for_the_whole_run_the_presets_are_as_written() -> None:
    report = build_report([result("a/x")], preset=None, seed=3, statements=None)
    assert "\nprofile docs; presets as written; seed 3\n" in _printed([], report=report)


def test_statements_without_a_scenario_are_named_before_the_verdict() -> None:
    results = [result("a/x")]
    coverage = Coverage(proven={"H-01": ("x",)}, missing=("H-02",), unknown=())
    text = _printed(results, report=_report(results, coverage))
    assert "1 of 2 statements proven\nno scenario proves H-02\n1 passed in 0.25s\n" in text


def test_scenarios_that_expect_nothing_are_named() -> None:
    nothing = Expect()
    one = _printed(
        [result("a/x"), result("a/y", expects=nothing), result("a/y", profile="1.4", expects=nothing)]
    )
    assert "1 scenario expects nothing and passes whatever happens: a/y; `statek-sim run" in one
    partly = result("a/z", expects=nothing)
    said_elsewhere = partly.scenario.model_copy(update={"expect_in": {"1.4": ONE_CALL}})
    runs = [replace(partly, scenario=said_elsewhere, profile=profile) for profile in ("docs", "1.4")]
    assert build_report(runs, preset=None, seed=None, statements=None).unchecked == ("a/z[docs]",)
    many = [result(f"a/s-{number:02}", expects=nothing) for number in range(12)]
    assert "a/s-09 and 2 more; " in unchecked(_report(many))
    assert unchecked(_report([result("a/x")])) == ""


def test_an_empty_run_says_so() -> None:
    assert _printed([]).startswith("no scenarios ran\nprofiles none; preset default;")


def test_a_terminal_shows_progress_and_takes_it_away() -> None:
    text = _printed(_results(), terminal=True)
    assert "16/16" in text
    assert "1 failed  usage/s-9[docs]" in text
    assert "16/16" not in text[text.index("suite") :]
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def _break_off(reporter: TerminalReporter) -> None:
    with reporter:
        reporter.start(3)
        reporter.result(result("a/x"))
        raise KeyboardInterrupt("stop")


def test_progress_is_taken_away_when_a_run_breaks_off() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True, legacy_windows=False, _environ={})
    with pytest.raises(KeyboardInterrupt, match="stop"):
        _break_off(TerminalReporter(console, verbose=False))
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().rindex("\x1b[?25h") > console.file.getvalue().rindex("\x1b[?25l")


def test_only_real_time_differs_between_equal_runs() -> None:
    slow = [replace(one, seconds=one.seconds * 1.01) for one in _results()]
    assert _printed(_results()) == _printed(_results())
    pairs = zip(_printed(_results()).splitlines(), _printed(slow).splitlines(), strict=True)
    assert all("s" in first for first, second in pairs if first != second)
