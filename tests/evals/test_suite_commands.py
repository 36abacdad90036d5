"""`statek-sim evals list` and `check`: what they print, and how they end."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from statek_sim.cli.app import main
from statek_sim.evals.suite import load_suite
from statek_sim.reporting.artifact import schema_named
from tests.evals.test_writing import GOOD
from tests.says import says

FOLDER = Path(__file__).parents[2] / "scenarios" / "evals"


def ran(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["evals", *map(str, arguments)])
    told = capsys.readouterr()
    return int(ended.value.code or 0), told.out, told.err


def test_the_list_is_of_the_built_in_evals(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ran(capsys, "list", "--json", "-")
    told = json.loads(out)
    jsonschema.Draft202012Validator(schema_named("evals_list")).validate(told)
    assert (code, told["schema"]) == (0, "statek-sim/evals-list@1")
    assert [one["id"] for one in told["evals"]] == [one.id for one in load_suite([FOLDER])]
    assert all(len(one["wrong"]) >= 2 and one["tools"] for one in told["evals"])


def test_a_check_that_lets_something_wrong_pass_is_told_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yaml"
    looks = 'plan: [{call: look, with: {name: "{name}"}}, {answer: X-1}]'
    path.write_text(GOOD.replace("plan: [{answer: X-1}]", looks))
    code, out, err = ran(capsys, "check", path, "--seeds", "2")
    assert (code, says(out, "0 of 1 evals", "6 runs", "2 per script")) == (1, True)
    for seed, line in zip((0, 1), err.splitlines(), strict=True):
        assert says(line, f"{path}:2", "'one'", "script 'none'", f"seed {seed}", "passes", "should fail")


def test_an_ideal_plan_that_fails_is_told_with_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD.replace("value: X-1", "value: X-2"))
    code, _, err = ran(capsys, "check", path, "--seeds", "1")
    assert (code, err.count("\n")) == (1, 1)
    assert says(err, f"{path}:2", "'one'", "script 'ideal'", "seed 0", "not cite 'X-2'")


def test_a_plan_that_cannot_be_played_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD.replace("It is {code}.", "It is {code.value}."))
    code, _, err = ran(capsys, "check", path, "--seeds", "1")
    assert code == 2
    assert says(err, f"{path}:2", "'one'", "script 'ideal'", "seed 0", "'X-1'", "no key 'value'")


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("check", "--eval", "move-mony"), "--eval move-mony: unknown 'move-money'?"),
        (("check", "nowhere.yaml"), "nowhere.yaml: no file folder"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    facts: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = ran(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says(err, *facts.split())
