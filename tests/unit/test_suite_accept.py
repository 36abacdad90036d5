"""Taking what happened as what is expected."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from statek_sim.errors import BadInput
from statek_sim.scenario.load import load_or_fail
from statek_sim.suite.accept import Change, accept, changes
from statek_sim.suite.result import ABSENT, Mismatch, ScenarioResult
from statek_sim.suite.run import run_one, run_suite
from tests.tables import table_test
from tests.unit.suite_samples import load

TEXT = """\
  # What a job leaves behind.
  - id: one
    title: Exits
    agents: {worker: {}}
    script: {worker: [{code: "print('x')"}, {code: exit(1)}]}
    expect:
      llm_calls: 7  # not so many
      jobs: {main: {exit: 2, console: [y], status: DONE}}
"""


def results(folder: Path, text: str = TEXT) -> list[ScenarioResult]:
    return list(run_suite(load(folder, text)))


def hand_made(folder: Path, wrong: dict[str, list[Mismatch]], expect: str) -> list[ScenarioResult]:
    """Return results of a scenario for all profiles in `wrong`, with these mismatches."""
    text = f"  - {{id: one, title: One, agents: {{worker: {{}}}}, script: {{worker: [{{code: exit(1)}}]}}, {expect}}}\n"
    (scenario,) = load(folder, text)
    run = run_one(scenario, "docs")
    return [
        ScenarioResult(
            scenario=scenario, profile=profile, record=run.record, mismatches=tuple(found), seconds=0.0
        )
        for profile, found in wrong.items()
    ]


def test_accepted_expectations_hold_the_next_time(tmp_path: Path) -> None:
    accepted = accept(results(tmp_path))
    assert accepted.left == ()
    assert [change.keypath for change in accepted.changes] == [
        ("expect", "llm_calls"),
        ("expect", "jobs", "main", "exit"),
        ("expect", "jobs", "main", "console"),
    ]
    text = (tmp_path / "file.yaml").read_text()
    assert "      llm_calls: 2  # not so many\n" in text
    assert "jobs: {main: {exit: 1, console: [x, None], status: DONE}}" in text
    assert "-      llm_calls: 7  # not so many\n" in accepted.diff
    assert "+      llm_calls: 2  # not so many\n" in accepted.diff
    assert all(not result.mismatches for result in run_suite(load_or_fail([tmp_path])))


BARE = """\
  - id: bare
    title: Nothing is expected yet
    agents: {worker: {}}
    world: {queue: {items: [a]}}
    script: {worker: [{code: print(1)}, {code: exit('sent')}]}
  # A remark about the next one.
  - {id: other, title: Other, agents: {worker: {}}, script: {worker: [{code: exit(1)}]}, expect: {llm_calls: 2}}
"""


def test_a_scenario_without_expectations_gets_its_first_ones(tmp_path: Path) -> None:
    accepted = accept(results(tmp_path, BARE))
    written = (tmp_path / "file.yaml").read_text("utf-8")
    assert (
        "    script: {worker: [{code: print(1)}, {code: exit('sent')}]}\n"
        "    expect:\n"
        "      llm_calls: 2\n"
        "      jobs: {main: {status: DONE, stop: exit, exit: sent}}\n"
        "      world: {items: {a: {status: READY}}}\n"
        "      claims_leaked: 0\n"
        "  # A remark about the next one.\n"
    ) in written
    assert "expect: {llm_calls: 1}" in written
    assert accept(results(tmp_path, written.partition("scenarios:\n")[2])).changes == ()
    assert accepted.left == ()


def test_a_run_that_failed_is_no_first_expectation(tmp_path: Path) -> None:
    accepted = accept(results(tmp_path, BARE.partition("  #")[0].replace("print(1)", "exit(1)")))
    assert accepted.changes == ()
    assert [mismatch.keypath for _, mismatch in accepted.left] == [("error",)] * 3


def test_nothing_to_accept_changes_nothing(tmp_path: Path) -> None:
    passing = BARE.partition("next one.\n")[2].replace("llm_calls: 2", "llm_calls: 1")
    before = results(tmp_path, passing)
    accepted = accept(before)
    assert (accepted.changes, accepted.diff, accepted.left) == ((), "", ())


def turns(profile_value: object) -> list[Mismatch]:
    return [Mismatch(("jobs", "main", "turns"), 9, profile_value)]


AT = ("jobs", "main", "turns")


@table_test(
    ("wrong", "expect", "expected"),
    [
        (
            {"docs": turns(1), "1.2": turns(1), "1.4": turns(1)},
            "expect: {jobs: {main: {turns: 9}}}",
            [Change("one", ("expect", *AT), 1)],
        ),
        (
            {"docs": [], "1.2": turns(1), "1.4": []},
            "expect: {jobs: {main: {turns: 9}}}",
            [Change("one", ("expect_in", "1.2", *AT), 1)],
        ),
        (
            {"docs": turns(1), "1.2": turns(2), "1.4": turns(1)},
            "expect: {jobs: {main: {turns: 9}}}",
            [Change("one", ("expect", *AT), 1), Change("one", ("expect_in", "1.2", *AT), 2)],
        ),
        (
            {"docs": [], "1.2": [], "1.4": turns(1)},
            'expect: {jobs: {main: {turns: 5}}}, expect_in: {"1.4": {jobs: {main: {turns: 9}}}}',
            [Change("one", ("expect_in", "1.4", *AT), 1)],
        ),
        (
            {"docs": turns(1), "1.2": turns(1), "1.4": []},
            'expect: {jobs: {main: {turns: 9}}}, expect_in: {"1.4": {jobs: {main: {turns: 5}}}}',
            [Change("one", ("expect", *AT), 1)],
        ),
        (
            {"docs": turns(1)},
            "expect: {jobs: {main: {turns: 9}}}",
            [Change("one", ("expect_in", "docs", *AT), 1)],
        ),
        (
            {"docs": turns(1)},
            "profiles: [docs], expect: {jobs: {main: {turns: 9}}}",
            [Change("one", ("expect", *AT), 1)],
        ),
    ],
    ids=[
        "all profiles agree",
        "one profile differs",
        "profiles disagree",
        "a profile has its own",
        "those that share agree",
        "profiles that did not run keep theirs",
        "the only profile",
    ],
)
def test_a_value_is_written_where_it_belongs(
    tmp_path: Path, wrong: dict[str, list[Mismatch]], expect: str, expected: list[Change]
) -> None:
    assert list(changes(hand_made(tmp_path, wrong, expect))) == expected


@table_test(
    "mismatch",
    [
        Mismatch(("error",), None, "ScriptExhausted: more"),
        Mismatch(("jobs", "main", "console", "contains", 0), "a", ["b"]),
        Mismatch(("jobs", "main", "absent_locals", 0), "n", 1),
        Mismatch(("jobs", "main", "locals", "m"), 1, ABSENT),
        Mismatch(("jobs", "main", "stop"), "exit", "a reason the format does not know"),
        Mismatch(("jobs", "main", "locals", "m"), 1.0, float("nan")),
        Mismatch(("jobs", "main", "console"), [], ["half a \ud83d"]),
    ],
)
def test_what_has_no_value_to_take_over_is_left(tmp_path: Path, mismatch: Mismatch) -> None:
    given = hand_made(tmp_path, {"docs": [mismatch]}, "expect: {llm_calls: 1}")
    before = (tmp_path / "file.yaml").read_text()
    accepted = accept(given)
    assert (accepted.changes, accepted.left) == ((), ((given[0], mismatch),))
    assert (tmp_path / "file.yaml").read_text() == before


def test_a_file_that_changed_since_is_not_rewritten(tmp_path: Path) -> None:
    found = results(tmp_path)
    path = tmp_path / "file.yaml"
    path.write_text(path.read_text() + "# later\n")
    with pytest.raises(BadInput, match=r"file\.yaml: changed since it was loaded; run again$"):
        accept(found)


def test_several_scenarios_of_a_file_are_rewritten_together(tmp_path: Path) -> None:
    both = TEXT + TEXT.replace("id: one", "id: two")
    accepted = accept(results(tmp_path, both))
    assert len(accepted.changes) == 6
    assert all(not result.mismatches for result in run_suite(load_or_fail([tmp_path])))


def calls_to_accept(folder: Path, count: int) -> int:
    """Return how many functions are called, in Python and in C, to accept changes in so many scenarios of a file."""
    folder.mkdir()
    many = "".join(
        TEXT.replace("id: one", f"id: s-{n}").replace("print('x')", f"print({n})") for n in range(count)
    )
    before = list(run_suite(load(folder, many), profiles=["docs"]))
    calls = 0

    def count_calls(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count_calls)
    try:
        accepted = accept(before)
    finally:
        sys.setprofile(None)
    assert len(accepted.changes) == 3 * count
    return calls


def test_four_times_as_many_scenarios_take_four_times_as_many_steps_to_accept(tmp_path: Path) -> None:
    few, many = calls_to_accept(tmp_path / "few", 25), calls_to_accept(tmp_path / "many", 100)
    assert many < 4 * few * 1.15
