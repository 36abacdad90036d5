"""What `make conformance` does with the runs of `statek-sim compare`."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.semantics import RELEASES
from tests.tables import table_test
from tools.conformance import beyond, fewer, main, merged, parted, seeded, words
from tools.environments import CannotMake, Environment, ensure, environments
from tools.interpreters import this_python


def numbers(python: str, differ: int) -> dict[str, object]:
    return {"python": python, "scenarios": 9, "agree": 9 - differ, "differ": differ, "random_differ": 0}


def test_a_release_has_the_numbers_of_the_python_on_which_it_did_worst() -> None:
    report = merged(
        [{"1.4.2": numbers("3.11", 0), "1.2.7": numbers("3.11", 0)}, {"1.4.2": numbers("3.13", 2)}]
    )

    assert report["versions"]["1.4.2"]["differ"] == 2
    assert list(report["versions"]["1.4.2"]["pythons"]) == ["3.11", "3.13"]
    assert report["versions"]["1.2.7"]["agree"] == 9


@table_test(
    ("given", "fewer_of_them"),
    [
        (["--random", "2000", "--random-seed", "3"], ["--random", "200", "--random-seed", "3"]),
        (["--random", "3"], ["--random", "1"]),
        (["--random", "0"], ["--random", "0"]),
        ([], []),
    ],
)
def test_another_python_gets_a_tenth_of_the_random_examples(
    given: list[str], fewer_of_them: list[str]
) -> None:
    assert fewer(given) == fewer_of_them


@pytest.mark.parametrize(
    ("available", "said"),
    [
        (["1.4.2", "1.4.1"], "PyPI has no release of STATEK above 1.4.2, the newest that is listed"),
        (["1.5.0rc1", "1.4.2"], "PyPI has no release of STATEK above 1.4.2, the newest that is listed"),
        (
            ["1.10.0", "1.4.3", "1.4.2"],
            "PyPI has releases of STATEK above 1.4.2, the newest that is listed in "
            "statek_sim/semantics.py: 1.10.0, 1.4.3. Try: statek-sim compare reference with one of them",
        ),
    ],
)
def test_final_releases_above_the_newest_listed_one_are_told(available: list[str], said: str) -> None:
    assert beyond("1.4.2", available) == said


def test_random_examples_differ_from_run_to_run_unless_in_ci_or_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert seeded(["--random", "10"], ci=True) == ["--random", "10", "--random-seed", "0"]
    assert seeded(["--random", "10", "--random-seed", "7"], ci=False) == [
        "--random",
        "10",
        "--random-seed",
        "7",
    ]
    assert seeded(["--json", "x"], ci=False) == ["--json", "x"]
    capsys.readouterr()
    *_, seed = seeded(["--random", "10"], ci=False)
    said = f"random examples with seed {seed}; to repeat: --random-seed {seed}\n"
    assert capsys.readouterr().out == said


def test_ci_has_the_newest_release_on_this_python_alone() -> None:
    (made,) = environments(ci=True)
    assert (made.release, made.python) == (RELEASES[-1].version, this_python())


def test_every_listed_release_has_an_environment_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    made = list(environments())
    assert {one.release for one in made} == {release.version for release in RELEASES}
    assert len({one.folder for one in made}) == len(made)


def test_an_environment_is_ready_only_for_what_it_was_made_for(tmp_path: Path) -> None:
    (tmp_path / ".ready").write_text("statek[dbzero]==1.4.2 on Python 3.11\n")
    assert Environment("1.4.2", "3.11", tmp_path).ready
    assert not Environment("1.4.3", "3.11", tmp_path).ready
    assert not Environment("1.4.2", "3.12", tmp_path).ready


def test_a_python_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(CannotMake, match=r"^env: Python 2\.1 is not installed$"):
        ensure([Environment("1.4.2", "2.1", tmp_path / "env")])


def test_help_says_what_it_takes_and_compares_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert "usage: python -m tools.conformance [-h] [--ci] [ARGUMENT...]" in capsys.readouterr().out


def test_what_it_does_not_know_is_passed_on() -> None:
    asked, further = words().parse_known_args(["--ci", "scenarios/claims", "--random", "5", "--c"])
    assert asked.ci
    assert further == ["scenarios/claims", "--random", "5", "--c"]


def test_what_is_about_random_examples_goes_to_their_own_tool() -> None:
    assert parted(["scenarios/claims", "--random", "5", "--random-seed", "3"]) == (
        ["scenarios/claims"],
        ["--random", "5", "--random-seed", "3"],
    )
    assert parted(["--random", "0", "--random-seed", "3"]) == ([], [])
    assert parted(["scenarios"]) == (["scenarios"], [])
