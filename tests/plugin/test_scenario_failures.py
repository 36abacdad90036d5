"""What people read when a scenario, its file or an option is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[[str, str], Path]


@pytest.mark.usefixtures("suite")
def test_a_failing_scenario_prints_the_difference_the_transcript_and_how_to_rerun_it(
    pytester: pytest.Pytester,
) -> None:
    result = pytester.runpytest("--statek-scenarios=scenarios")
    result.stdout.fnmatch_lines(
        [
            "jobs.main.llm_calls: expected 2, got 1",
            "  a job that exits at once takes two turns",
            "  scenarios/turns.yaml:12",
            "*what happened in job main:",
            "*exit('ok')",
            "*statek-sim run scenarios/turns.yaml*one-turn-more*",
            "*pytest *one-turn-more[[]docs]*",
            "FAILED scenarios/turns.yaml::limits/one-turn-more[[]docs] - jobs.main.llm_calls*",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*.py:*")


@pytest.mark.usefixtures("suite")
def test_a_hook_that_raises_keeps_its_traceback(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("def pytest_statek_scenario_result(result):\n    raise LookupError(result.id)")
    result = pytester.runpytest("--statek-scenarios=scenarios", "-k", "limits/one-turn[docs]")
    result.assert_outcomes(failed=1, deselected=3)
    result.stdout.fnmatch_lines(
        ["*raise LookupError(result.id)", "E * limits/one-turn[[]docs]", "conftest.py:2:*"]
    )


def test_a_bad_scenario_file_is_a_collection_error_of_plain_lines(
    pytester: pytest.Pytester, suite: Path
) -> None:
    suite.write_text(suite.read_text("utf-8").replace("expect:", "expects:"), "utf-8")
    result = pytester.runpytest("--statek-scenarios=scenarios")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(
        [
            "*ERROR collecting scenarios/turns.yaml*",
            "scenarios/turns.yaml:11: *'expects'*'expect'*",
            "scenarios/turns.yaml:16: *'expects'*'expect'*",
            "*1 error*",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*.py:*")


@pytest.mark.usefixtures("suite")
def test_the_good_files_run_although_one_is_bad_if_asked_to(pytester: pytest.Pytester, write: Write) -> None:
    write("scenarios/bad.yaml", "scenarios: [")
    result = pytester.runpytest("--statek-scenarios=scenarios", "--continue-on-collection-errors")
    result.assert_outcomes(passed=3, failed=1, errors=1)


def test_an_id_that_two_files_share_is_an_error_in_the_second(
    pytester: pytest.Pytester, suite: Path, write: Write
) -> None:
    write("scenarios/twice.yaml", suite.read_text("utf-8"))
    result = pytester.runpytest("--statek-scenarios=scenarios")
    result.stdout.fnmatch_lines(["scenarios/twice.yaml:*duplicate id 'one-turn'*scenarios/turns.yaml:5"])


def test_a_tool_that_cannot_be_imported_is_told_in_one_line(pytester: pytest.Pytester, suite: Path) -> None:
    suite.write_text(
        suite.read_text("utf-8").replace("worker: {}", "worker: {tools: ['nowhere:claim']}"), "utf-8"
    )
    result = pytester.runpytest("--statek-scenarios=scenarios", "-k", "limits/one-turn[docs]")
    result.assert_outcomes(failed=1, deselected=3)
    result.stdout.fnmatch_lines(["scenarios/turns.yaml:5: *'nowhere:claim' cannot be imported*"])
    result.stdout.no_fnmatch_line("*.py:*")


SCENARIOS = {
    "--statek-preset": ("--statek-scenarios",),
    "--statek-report": ("--statek-scenarios",),
}
"""What the option needs beside it."""


def usage_error(pytester: pytest.Pytester, *args: str) -> str:
    """Return what a run that is refused says."""
    result = pytester.runpytest(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "Traceback" not in result.stderr.str()
    return result.stderr.str()


@pytest.mark.parametrize("target", ["test_own.py", "test_own.py::test_own", "tests"])
def test_a_test_that_the_option_swallowed_is_refused_with_the_right_spelling(
    pytester: pytest.Pytester, target: str
) -> None:
    pytester.makepyfile(test_own="def test_own(): pass")
    pytester.mkdir("tests")
    error = usage_error(pytester, "--statek-scenarios", target)
    assert f"--statek-scenarios: no scenarios found in '{target}'" in error
    assert f"put it before the option: `pytest {target} --statek-scenarios`" in error


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ("--statek-scenarios=nowhere", "nowhere: no such file or folder"),
        ("--statek-profile=1.5", "profile '1.5' is unknown; expected one of: docs, 1.2.5, 1.2, 1.4"),
        ("--statek-profile=doc", "Did you mean 'docs'?"),
        ("--statek-preset=intractive", "Did you mean 'interactive'?"),
        ("--statek-seed=many", "argument --statek-seed: invalid int value: 'many'"),
        ("--statek-report=out", "--statek-report: requires --statek-scenarios"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_runs(
    pytester: pytest.Pytester, option: str, error: str
) -> None:
    assert error in usage_error(pytester, option)


@pytest.mark.usefixtures("suite")
def test_a_wrong_seed_in_the_configuration_file_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nstatek_seed = many")
    error = usage_error(pytester, "--statek-scenarios=scenarios")
    assert "statek_seed='many': expected a whole number" in error


@pytest.mark.parametrize("option", ["--statek-scenarios", "--statek-preset", "--statek-report"])
def test_a_wrong_path_is_told_without_detours(pytester: pytest.Pytester, write: Write, option: str) -> None:
    write("bad.env", "STATEK_MAX_TURNS=many")
    folder = pytester.mkdir("inner")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        error = usage_error(pytester, f"{option}=../bad.env", *SCENARIOS.get(option, ()))
    assert str(pytester.path / "bad.env") in error
    assert ".." not in error


def test_a_scenario_that_fails_on_several_workers_is_told_once(
    pytester: pytest.Pytester, write: Write
) -> None:
    write(
        "scenarios/all.yaml",
        "suite: all\nscenarios:\n  - id: one\n    title: One\n    source: mine\n    agents: {worker: {}}\n"
        "    script: {worker: [{code: exit(1)}]}\n    expect: {llm_calls: 2}\n",
    )
    result = pytester.runpytest("--statek-scenarios=scenarios", "-n", "2")
    # On CI pytest's summary has the whole texts again.
    failures = result.stdout.str().partition("short test summary info")[0]
    assert failures.count("what happened in job main:") == 1
    assert failures.count("shown above") == 2


def test_all_failed_expectations_are_numbered_in_the_summary(
    pytester: pytest.Pytester, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    write(
        "scenarios/all.yaml",
        "suite: all\nscenarios:\n  - id: one\n    title: One\n    source: mine\n    agents: {worker: {}}\n"
        "    script: {worker: [{code: exit(1)}]}\n    expect: {llm_calls: 2, jobs: {main: {exit: 2}}}\n",
    )
    result = pytester.runpytest("--statek-scenarios=scenarios", "--statek-profile=docs")
    result.stdout.fnmatch_lines(
        ["  1. llm_calls: expected 2, got 1", "  2. jobs.main.exit: expected 2, got 1"]
    )
    result.stdout.fnmatch_lines(
        ["FAILED *one[[]docs] - 1. llm_calls: expected 2, got 1; 2. jobs.main.exit: expected 2, got 1"]
    )
