"""Options and ini keys that change how scenarios run, and what is reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Write = Callable[[str, str], Path]

SIX_TURNS = """\
suite: presets
scenarios:
  - id: six-turns
    title: the default preset stops a job before its seventh request
    profiles: [docs]
    agents: {worker: {}}
    script: {worker: [{code: "x = 1", repeat: forever}]}
    expect: {jobs: {main: {llm_calls: 6, stop: max_turns}}}
"""

ONE = "limits/one-turn[docs]"


def report(pytester: pytest.Pytester, folder: str = "out") -> Any:
    """Return the `report.json` in `folder`."""
    return json.loads((pytester.path / folder / "report.json").read_text("utf-8"))


def test_the_preset_replaces_the_scenarios_own(pytester: pytest.Pytester, write: Write) -> None:
    write("six.yaml", SIX_TURNS)
    preset = write("strict.env", "STATEK_MAX_TURNS=2\n")
    pytester.runpytest("--statek-scenarios=six.yaml").assert_outcomes(passed=1)
    result = pytester.runpytest("--statek-scenarios=six.yaml", f"--statek-preset={preset.name}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*llm_calls: expected 6, got 3", "*--statek-preset=*strict.env*"])


@pytest.mark.usefixtures("suite")
def test_the_report_is_written_as_json_markdown_and_html(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--statek-scenarios=scenarios", "--statek-report=out", "--statek-seed=7")
    found = report(pytester)
    assert found["summary"] == {"total": 4, "passed": 3, "failed": 1}
    assert found["seed"] == 7
    assert "one-turn-more" in (pytester.path / "out" / "report.md").read_text("utf-8")
    assert "limits/one-turn-more[docs]" in (pytester.path / "out" / "report.html").read_text("utf-8")
    result.stdout.fnmatch_lines(["wrote *report.json, *report.md, *report.html"])


@pytest.mark.usefixtures("suite")
def test_a_run_on_two_workers_makes_the_same_report(pytester: pytest.Pytester) -> None:
    pytester.runpytest("--statek-scenarios=scenarios", "--statek-report=one")
    pytester.runpytest("--statek-scenarios=scenarios", "--statek-report=two", "-n", "2")
    assert report(pytester, "one") == report(pytester, "two")
    pages = [(pytester.path / folder / "report.html").read_bytes() for folder in ("one", "two")]
    assert pages[0] == pages[1]


@pytest.mark.usefixtures("suite")
def test_a_report_that_cannot_be_written_fails_the_run(pytester: pytest.Pytester) -> None:
    (pytester.path / "out" / "report.json").mkdir(parents=True)
    result = pytester.runpytest("--statek-scenarios=scenarios", "--statek-report=out", "-k", ONE)
    result.assert_outcomes(passed=1, deselected=3)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["statek: *report.json: cannot write the report*"])


def test_a_report_folder_that_is_a_file_is_refused(pytester: pytest.Pytester, suite: Path) -> None:
    result = pytester.runpytest("--statek-scenarios=scenarios", f"--statek-report={suite}")
    result.stderr.fnmatch_lines(["*--statek-report=*turns.yaml: expected a folder*"])


@pytest.mark.usefixtures("suite")
def test_the_summary_counts_suites(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--statek-scenarios=scenarios")
    result.stdout.fnmatch_lines(
        [
            "*= STATEK scenarios =*",
            "suite *pass *fail *time",
            "limits *",
            "3 passed, 1 failed*",
            "digest *",
        ]
    )


@pytest.mark.usefixtures("suite")
def test_there_is_no_summary_when_nothing_ran(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--statek-scenarios=scenarios", "--collect-only")
    result.stdout.no_fnmatch_line("*STATEK scenarios*")


@pytest.mark.usefixtures("suite")
def test_ini_scenarios_join_the_tests_of_a_run_without_paths(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nstatek_scenarios = scenarios")
    pytester.makepyfile(test_own="def test_own(): pass")
    pytester.runpytest().assert_outcomes(passed=4, failed=1)


@pytest.mark.usefixtures("suite")
def test_ini_scenarios_stay_out_of_a_run_with_paths(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nstatek_scenarios = scenarios")
    pytester.makepyfile(test_own="def test_own(): pass")
    pytester.runpytest("test_own.py").assert_outcomes(passed=1)


@pytest.mark.usefixtures("suite")
def test_ini_keys_mean_what_the_options_mean(pytester: pytest.Pytester) -> None:
    pytester.makeini(
        "[pytest]\nstatek_scenarios = scenarios\nstatek_profile =\n  1.2\n  1.4\n"
        "statek_seed = 3\nstatek_report = out\nstatek_preset = local"
    )
    pytester.runpytest().assert_outcomes(passed=2)
    assert report(pytester)["profile"] == "1.2,1.4"
    assert report(pytester)["seed"] == 3


@pytest.mark.usefixtures("suite")
def test_the_command_line_wins_over_the_configuration_file(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nstatek_profile = 1.2\nstatek_seed = 3")
    args = ("--statek-profile=docs", "--statek-seed=4", "--statek-report=out")
    pytester.runpytest("--statek-scenarios=scenarios", *args)
    assert report(pytester)["profile"] == "docs"
    assert report(pytester)["seed"] == 4


def test_ini_paths_start_at_the_configuration_file(pytester: pytest.Pytester, suite: Path) -> None:
    pytester.makeini("[pytest]\nstatek_scenarios = scenarios\nstatek_report = out")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(suite.parent)
        pytester.runpytest().assert_outcomes(passed=3, failed=1)
    assert report(pytester)["summary"]["total"] == 4


@pytest.mark.usefixtures("suite")
def test_a_hook_hears_of_every_result(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        "def pytest_statek_scenario_result(result):\n    print('heard:', result.id, result.outcome)"
    )
    result = pytester.runpytest("--statek-scenarios=scenarios", "-s", "-k", "docs")
    result.stdout.fnmatch_lines(
        ["*heard: limits/one-turn[[]docs] passed*", "*heard: limits/one-turn-more[[]docs] failed*"]
    )


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('statek_preset = ["default"]', "statek_preset: expected a string, found ['default']"),
        ('statek_report = ["out"]', "statek_report: expected a string, found ['out']"),
        ("statek_gate = [1]", "statek_gate: expected a list of strings, found [1]"),
        (
            "statek_cassette_allow_undecoded = [1]",
            "statek_cassette_allow_undecoded: expected a list of strings, found [1]",
        ),
    ],
)
def test_a_key_of_the_wrong_kind_in_the_configuration_file_is_refused(
    pytester: pytest.Pytester, write: Write, line: str, problem: str
) -> None:
    file = write("pyproject.toml", f"[tool.pytest.ini_options]\n{line}\n")
    result = pytester.runpytest("-c", str(file))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: statek: {file}: {problem}" in result.stderr.lines


def test_a_key_that_is_true_or_false_is_named_when_it_is_neither(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("-ostatek_explore=perhaps")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: statek: statek_explore: expected true or false: invalid truth value 'perhaps'" in (
        result.stderr.lines
    )
