"""Rewriting expectations in place: only the changed value's characters change."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from statek_sim.errors import BadInput
from statek_sim.scenario.edit import CannotEdit, edited
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.problem import Keypath
from statek_sim.suite.accept import Change, rewrite_expectations
from statek_sim.values import JSON
from tests.tables import table_test

FILE = """\
# Written by a person, with care.
scenarios:
  - id: one   # the first
    title: 'Quoted'
    agents: {worker: {}}
    expect:
      # why three: the fourth is refused
      llm_calls: 3    # calls
      jobs:
        main: {status: DONE, exit: "ok",  stop: exit}
        job-1:
          console:   # all of it
            - "first"   # said first
            - 'second'
          exit: |
            a long
            text
    expect_in:
      "1.4": {llm_calls: 4}

  # between the two
  - id: two
    title: Zażółć 😀
    agents: {worker: {}}
    expect: {jobs: {main: {console: [a, b], exit: null}}}
# the end
"""


def changed(text: str, keypath: Keypath, value: JSON, *, scenario: int = 0) -> list[str]:
    """Return the lines that differ: `-` old, `+` new."""
    new = edited(text, [(("scenarios", scenario, *keypath), value)]).splitlines()
    old = text.splitlines()
    return [f"-{line.strip()}" for line in old if line not in new] + [
        f"+{line.strip()}" for line in new if line not in old
    ]


def test_a_number_changes_and_its_comment_stays() -> None:
    assert changed(FILE, ("expect", "llm_calls"), 5) == [
        "-llm_calls: 3    # calls",
        "+llm_calls: 5    # calls",
    ]


def test_inside_braces_only_the_value_changes() -> None:
    assert changed(FILE, ("expect", "jobs", "main", "status"), "SUSPENDED") == [
        '-main: {status: DONE, exit: "ok",  stop: exit}',
        '+main: {status: SUSPENDED, exit: "ok",  stop: exit}',
    ]


@table_test(
    ("value", "written"),
    [
        ('say "no"', r'exit: "say \"no\""'),
        (None, "exit: null"),
        (False, "exit: false"),
        (-1.5, "exit: -1.5"),
        ([1, "x"], 'exit: [1, "x"]'),
        ({"a": "1.2"}, 'exit: {a: "1.2"}'),
    ],
)
def test_a_quoted_text_stays_quoted(value: JSON, written: str) -> None:
    _, new = changed(FILE, ("expect", "jobs", "main", "exit"), value)
    assert new == f"+main: {{status: DONE, {written},  stop: exit}}"


@table_test("text", ["yes", "null", "1.2", "a: b", "# a", "- a", "", " a", "a\tb", "\x07", "é", "{", "*a"])
def test_any_text_reads_back_as_written(text: str) -> None:
    made = edited(FILE, [(("scenarios", 1, "expect", "jobs", "main", "exit"), text)])
    assert edited(made, [(("scenarios", 1, "expect", "jobs", "main", "exit"), None)]) == FILE


def test_of_a_list_of_equal_length_only_the_changed_entry_changes() -> None:
    assert changed(FILE, ("expect", "jobs", "job-1", "console"), ["first", "it's"]) == [
        "-- 'second'",
        "+- 'it''s'",
    ]


def test_a_list_of_another_length_is_written_anew_below_its_key_and_comment() -> None:
    console = ("expect", "jobs", "job-1", "console")
    assert changed(FILE, console, ["second"]) == ['-- "first"   # said first', "-- 'second'", "+- second"]


def test_a_list_on_one_line_grows_there() -> None:
    assert changed(FILE, ("expect", "jobs", "main", "console"), ["a", "b", {"c": 1}], scenario=1) == [
        "-expect: {jobs: {main: {console: [a, b], exit: null}}}",
        "+expect: {jobs: {main: {console: [a, b, {c: 1}], exit: null}}}",
    ]


def test_a_list_that_outgrows_its_line_gets_a_line_per_entry() -> None:
    text = "scenarios:\n  - id: one\n    expect:\n      handlers: [a]  # why\n"
    entries: list[JSON] = ["a", *(f"a rather long entry number {n}" for n in range(4))]
    made = edited(text, [(("scenarios", 0, "expect", "handlers"), entries)])
    assert made.splitlines()[3:] == [
        "      handlers:",
        *(f"        - {entry}" for entry in entries[:-1]),
        f"        - {entries[-1]}  # why",
    ]


def test_a_list_may_become_a_mapping_or_a_scalar() -> None:
    console = ("expect", "jobs", "job-1", "console")
    assert "+lines: 2" in changed(FILE, console, {"lines": 2})
    assert "+null" in changed(FILE, console, None)


def test_a_literal_text_stays_literal() -> None:
    assert changed(FILE, ("expect", "jobs", "job-1", "exit"), "a short\ntext\n") == ["-a long", "+a short"]


def test_a_literal_text_may_become_plain() -> None:
    assert "+exit: ok" in changed(FILE, ("expect", "jobs", "job-1", "exit"), "ok")


def test_a_long_list_gets_a_line_per_entry() -> None:
    console: list[JSON] = [f"line {n} of the console" for n in range(10)]
    assert changed(FILE, ("expect", "jobs", "job-1", "tool_log"), [console])[:2] == [
        "+tool_log:",
        "+- - line 0 of the console",
    ]


def test_a_missing_key_is_added_to_a_block() -> None:
    assert changed(FILE, ("expect", "claims_leaked"), 0) == ["+claims_leaked: 0"]


def test_a_missing_key_is_added_inside_braces() -> None:
    assert changed(FILE, ("expect_in", "1.4", "jobs", "main", "turns"), 2) == [
        '-"1.4": {llm_calls: 4}',
        '+"1.4": {llm_calls: 4, jobs: {main: {turns: 2}}}',
    ]


def test_missing_mappings_on_the_way_are_added() -> None:
    assert changed(FILE, ("expect_in", "1.2", "llm_calls"), 1, scenario=1) == [
        '+expect_in: {"1.2": {llm_calls: 1}}'
    ]


def test_an_empty_value_is_filled() -> None:
    text = "scenarios:\n  - id: one\n    expect:\n    title: x\n"
    assert changed(text, ("expect", "llm_calls"), 1) == ["-expect:", "+expect: {llm_calls: 1}"]


@pytest.mark.parametrize("ending", ["\n", "\r\n", ""])
def test_line_endings_stay_as_they_are(ending: str) -> None:
    text = "scenarios:\n  - id: one\n    expect:\n      llm_calls: 1\n".replace("\n", ending or "\n")
    text = text if ending else text.rstrip("\n")
    made = edited(text, [(("scenarios", 0, "expect", "jobs"), {"main": {"exit": "a\nb"}})])
    assert made.count("\r\n") == (made.count("\n") if ending == "\r\n" else 0)


def test_a_path_through_a_text_cannot_be_set() -> None:
    with pytest.raises(CannotEdit, match=r"^scenarios\[0\].title.a: no mapping to hold 'a'$"):
        edited(FILE, [(("scenarios", 0, "title", "a"), 1)])


def test_true_and_one_are_different_values() -> None:
    assert changed(FILE, ("expect", "llm_calls"), True)[1] == "+llm_calls: true    # calls"


def test_several_changes_are_written_at_once_and_returned_as_a_diff(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(FILE)
    path.chmod(0o640)
    scenarios = load_or_fail([path])
    diff = rewrite_expectations(
        path,
        [
            Change("one", ("expect", "llm_calls"), 7),
            Change("two", ("expect", "jobs", "main", "console"), ["a", "b", "żółć"]),
        ],
        file_digest=scenarios[0].file_digest,
    )
    assert [line for line in diff.splitlines() if line[0] in "+-" and line[1] == " "] == [
        "-      llm_calls: 3    # calls",
        "+      llm_calls: 7    # calls",
        "-    expect: {jobs: {main: {console: [a, b], exit: null}}}",
        '+    expect: {jobs: {main: {console: [a, b, "żółć"], exit: null}}}',
    ]
    first, second = load_or_fail([path])
    assert (first.expect.llm_calls, second.expect.jobs["main"].console) == (7, ("a", "b", "żółć"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["file.yaml"]


def test_nothing_is_written_when_nothing_changes(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(FILE)
    before = path.stat()
    assert rewrite_expectations(path, [Change("one", ("expect", "llm_calls"), 3)]) == ""
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_a_link_to_the_file_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_text(FILE)
    link = tmp_path / "link.yaml"
    link.symlink_to("real.yaml")
    rewrite_expectations(link, [Change("one", ("expect", "llm_calls"), 9)])
    assert link.is_symlink()
    assert "llm_calls: 9" in (tmp_path / "real.yaml").read_text()


def test_a_file_that_changed_since_it_was_loaded_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(FILE)
    digest = load_or_fail([path])[0].file_digest
    path.write_text(FILE + "# more\n")
    with pytest.raises(BadInput, match=r"file.yaml: changed since it was loaded; run again$"):
        rewrite_expectations(path, [Change("one", ("expect", "llm_calls"), 9)], file_digest=digest)
    assert path.read_text() == FILE + "# more\n"


def test_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(FILE)
    path.chmod(0o444)
    with pytest.raises(BadInput, match=r"file.yaml: not writable$"):
        rewrite_expectations(path, [Change("one", ("expect", "llm_calls"), 9)])
    assert path.read_text() == FILE


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Change("three", ("expect", "llm_calls"), 1), "no scenario 'three' in this file"),
        (
            Change("one", ("title",), "x"),
            "'title' is not an expectation; only parts of expect or expect_in can be rewritten",
        ),
        (
            Change("one", ("expect", "jobs", "job-1", "console", 7), "x"),
            r"cannot be rewritten: scenarios\[0\].expect.jobs.job-1.console\[7\]: no list entry 7",
        ),
    ],
)
def test_what_is_not_there_cannot_be_rewritten(tmp_path: Path, change: Change, message: str) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(FILE)
    with pytest.raises(BadInput, match=rf"file.yaml: {message}$"):
        rewrite_expectations(path, [change])
    assert path.read_text() == FILE
