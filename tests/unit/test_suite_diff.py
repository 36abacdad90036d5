"""What is said about a failed scenario."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from statek_sim.suite.diff import describe, failure_text, pytest_command, rerun_command
from statek_sim.suite.result import ABSENT, Mismatch
from statek_sim.suite.run import run_one
from tests.tables import table_test
from tests.unit.suite_samples import claims, load


def test_a_failure_reads_from_title_to_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = failure_text(claims(tmp_path, "{jobs: {main: {console: ['0', '2'], turns: 4}}}"))
    assert text == (
        "1. jobs.main.turns: expected 4, got 5; 2. jobs.main.console: differs\n"
        "\n"
        "  1. jobs.main.turns: expected 4, got 5\n"
        "\n"
        "  2. jobs.main.console: differs\n"
        "    --- expected\n"
        "    +++ actual\n"
        "    @@ -1,2 +1,5 @@\n"
        '     "0"\n'
        '    -"2"\n'
        '    +"1"\n'
        '    +"ValueError: no more"\n'
        "    +\"NameError: name 'undefined' is not defined\"\n"
        '    +"LLM_HarnessError: Maximum consecutive exceptions exceeded: 2/1"\n'
        "\n"
        "  A claimed item goes to ERROR when the job fails\n"
        "  source: 003 Invocation\n"
        "  file.yaml:3\n"
        "\n"
        "  what happened in job main up to the first difference:\n"
        "       0s  job        main: agent worker on gpt-4o\n"
        "           user       go on\n"
        "           system     You work.\n"
        "           assistant  for n in range(2):\n"
        "                          print(n)\n"
        "           console    0\n"
        "           console    1\n"
        "    ... 17 lines after\n"
        "\n"
        "  run just this one:\n"
        "    statek-sim run file.yaml --select claims --profile docs\n"
        "    pytest 'file.yaml::samples/claims[docs]'"
    )


def test_a_run_that_failed_tells_why_and_what_came_before(tmp_path: Path) -> None:
    short = """\
  - id: short
    title: The script is too short
    agents: {worker: {}}
    script: {worker: [{code: print(1)}]}
"""
    text = failure_text(run_one(load(tmp_path, short)[0], "docs"))
    assert text.startswith(
        "the run failed: ScriptExhausted: job 'main' (agent 'worker', turn 2, attempt 1) asked for"
    )
    assert "add a reply to script 'worker'" in text
    assert "what happened in job main:" in text
    assert "console    1" in text
    assert "Traceback" not in text


def test_a_run_with_one_job_is_told_once_up_to_the_first_difference(tmp_path: Path) -> None:
    expect = "{llm_calls: 2, claims_leaked: 1, usage: {bytes_sent: 0}, jobs: {main: {turns: 4}}}"
    text = failure_text(claims(tmp_path, expect))
    assert text.startswith("1. llm_calls: expected 2, got 5; 2. jobs.main.turns: ")
    assert text.count("what happened in") == 1
    assert "  what happened in job main up to the first difference:\n" in text
    assert text.count("print(n)") == 1
    assert "undefined" not in text


def test_a_long_difference_that_comes_first_follows_its_line(tmp_path: Path) -> None:
    text = failure_text(claims(tmp_path, "{jobs: {main: {console: ['0']}}}"))
    assert text.startswith("jobs.main.console: differs\n  --- expected\n  +++ actual\n")


TWO_JOBS = """\
  - id: two
    title: Two jobs
    agents: {worker: {}}
    jobs: {a: {message: go on}, b: {message: and you}}
    script: {worker: [{code: exit(1), repeat: forever}]}
"""


def transcripts_of(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if "what happened in" in line]


def test_each_of_several_jobs_is_told_by_itself(tmp_path: Path) -> None:
    (scenario,) = load(tmp_path, TWO_JOBS + "    expect: {jobs: {a: {exit: 2}, b: {exit: 3, turns: 0}}}\n")
    assert transcripts_of(failure_text(run_one(scenario, "docs"))) == [
        "what happened in job a:",
        "what happened in job b up to the first difference:",
    ]


def test_a_mismatch_of_a_run_with_several_jobs_shows_all_of_them_once(tmp_path: Path) -> None:
    (scenario,) = load(tmp_path, TWO_JOBS + "    expect: {claims_leaked: 1, jobs: {a: {exit: 2}}}\n")
    text = failure_text(run_one(scenario, "docs"))
    assert transcripts_of(text) == ["what happened in the run:"]
    assert text.count("go on") == text.count("and you") == 1


def test_a_job_that_never_was_shows_what_was_instead(tmp_path: Path) -> None:
    text = failure_text(claims(tmp_path, "{jobs: {job-7: {turns: 1}}}"))
    assert transcripts_of(text) == ["what happened in job main:"]


def test_a_long_transcript_keeps_what_is_nearest_to_the_difference(tmp_path: Path) -> None:
    chatty = """\
  - id: chatty
    title: Prints a lot
    agents: {worker: {}}
    script:
      worker:
        - code: |
            for n in range(100):
                print(n)
        - code: exit(2)
    expect: {jobs: {main: {exit: 1}}}
"""
    lines = failure_text(run_one(load(tmp_path, chatty)[0], "docs")).splitlines()
    assert "    ... 67 lines before" in lines
    assert sum("console    " in line for line in lines) == 37
    assert "           console    99" in lines


def test_the_commands_repeat_preset_and_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (scenario,) = load(tmp_path / "my suites", "  - {id: one, title: One, agents: {worker: {}}}\n")
    result = run_one(scenario, "1.4", preset="local", seed=7)
    assert rerun_command(result) == (
        "statek-sim run 'my suites/file.yaml' --select one --profile 1.4 --preset=local --seed=7"
    )
    assert pytest_command(result) == (
        "pytest 'my suites/file.yaml::samples/one[1.4]' --statek-preset=local --statek-seed=7"
    )


@table_test(
    ("mismatch", "lines"),
    [
        (Mismatch(("jobs", "main", "exit"), None, "ok"), ["jobs.main.exit: expected null, got ok"]),
        (Mismatch(("jobs", "main", "locals", "n"), 1, "1"), ['jobs.main.locals.n: expected 1, got "1"']),
        (
            Mismatch(("jobs", "main", "locals", "n"), 1, ABSENT),
            ["jobs.main.locals.n: expected 1, got (absent)"],
        ),
        (Mismatch(("jobs", "b"), {}, ABSENT), ["jobs.b: no such job; jobs: main"]),
        (
            Mismatch(("world", "items", "x"), {}, ABSENT),
            ["world.items.x: no such item; items: invoice-1, invoice-2"],
        ),
        (Mismatch(("claims_leaked",), 1, 0), ["claims_leaked: expected 1, got 0 (none)"]),
        (
            Mismatch(("jobs", "main", "absent_locals", 0), "n", 1),
            ["jobs.main.absent_locals[0]: expected no local variable 'n', but it is 1"],
        ),
        (
            Mismatch(("jobs", "main", "console", "contains", 1), "a", ["b", "c"]),
            ["jobs.main.console.contains[1]: nothing matches a", "  | b", "  | c"],
        ),
        (
            Mismatch(("jobs", "main", "console", "contains", 0), "a", []),
            ["jobs.main.console.contains[0]: nothing matches a", "  got nothing"],
        ),
        (
            Mismatch(("events", "excludes", 0), {"event": "X"}, "unknown event 'X'"),
            ["events.excludes[0]: expected nothing to match {event: X}", "  unknown event 'X'"],
        ),
        (
            Mismatch(("jobs", "main", "error"), "a\nb", "a\nc"),
            [
                "jobs.main.error: differs",
                "  --- expected",
                "  +++ actual",
                "  @@ -1,2 +1,2 @@",
                "   a",
                "  -b",
                "  +c",
            ],
        ),
        (
            Mismatch(("jobs", "main", "exit"), {"a": 1}, None),
            [
                "jobs.main.exit: differs",
                "  --- expected",
                "  +++ actual",
                "  @@ -1 +1 @@",
                "  -a: 1",
                "  +null",
            ],
        ),
    ],
)
def test_each_kind_of_mismatch_has_its_words(tmp_path: Path, mismatch: Mismatch, lines: list[str]) -> None:
    assert describe(claims(tmp_path), mismatch) == lines


def test_a_leaked_claim_is_named(tmp_path: Path) -> None:
    result = claims(tmp_path)
    record = dataclasses.replace(result.record, leaked_claims=("invoice-1",))
    leaky = dataclasses.replace(result, record=record)
    said = describe(leaky, Mismatch(("claims_leaked",), 0, 1))
    assert said == ["claims_leaked: expected 0, got 1 (invoice-1)"]
