"""`statek-sim gate`: what it prints, what it writes, how it exits."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest
from junitparser import JUnitXml

from statek_sim.cli import main
from statek_sim.reporting.artifact import schema_named
from tests.says import says
from tests.unit.gate_samples import POLICY, ROOMY, TIGHT, WORKLOADS, written

ON = ("workloads.yaml", "--policy", "policy.toml")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("workloads.yaml", WORKLOADS),
        ("policy.toml", POLICY),
        ("roomy.env", ROOMY),
        ("tight.env", TIGHT),
    ):
        written(tmp_path, name, text)
    return tmp_path


def gate(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    """Run the command and return how it exits, and what it prints."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as exit_:
        main(["gate", *arguments])
    captured = capsys.readouterr()
    return exit_.value.code or 0, captured.out, captured.err


@pytest.mark.usefixtures("folder")
def test_a_preset_that_passes_exits_0(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = gate(capsys, "roomy.env", *ON)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "all 3 verdicts pass"


@pytest.mark.usefixtures("folder")
def test_a_preset_that_fails_exits_1_with_the_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    code, out, _ = gate(capsys, "tight.env", "roomy.env", *ON)
    assert code == 1
    assert says(out, "tight.env:2", "`useful`", "turn 5", "max_turns", ">= 6", "work finishes")


@pytest.mark.usefixtures("folder")
def test_scenarios_are_positional_as_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(capsys, "roomy.env", "workloads.yaml", "--policy", "policy.toml") == gate(
        capsys, "roomy.env", *ON
    )


def test_a_preset_file_without_a_limit_is_refused_unless_it_is_meant(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "empty.env").write_text("# cut off\n", encoding="utf-8")
    code, out, err = gate(capsys, "empty.env", *ON)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert says(err, "empty.env:1", "no limits", "`default`", "--allow-defaults")
    allowed = gate(capsys, "empty.env", *ON, "--allow-defaults")[1].replace("\n  ", " ")
    assert says(allowed, "empty.env", "no limit", "defaults", "max_turns 5")


def test_where_each_limit_comes_from_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "half.env").write_text("STATEK_MAX_TURNS=9\n", encoding="utf-8")
    _, out, _ = gate(capsys, "half.env", "default", *ON)
    [half] = [line for line in out.replace("\n  ", " ").splitlines() if line.startswith("half.env: sets ")]
    own, _, defaults = half.partition("defaults")
    assert says(own, "max_turns 9")
    assert "max_turns" not in defaults
    assert says(defaults, "max_exceptions 3", "max_consecutive_exceptions 1", "max_token_usage 10000")
    assert "default.env: sets" not in out


def test_every_output_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written_to = ("--json", "out/g.json", "--junit", "out/g.xml", "--markdown", "out/g.md", "--github")
    code, out, _ = gate(capsys, "tight.env", *ON, *written_to)
    assert code == 1
    assert (
        "\n::error file=tight.env,line=2,title=statek-sim gate%3A work finishes::`tight.env`: stopped" in out
    )
    document = json.loads((folder / "out" / "g.json").read_text("utf-8"))
    jsonschema.validate(document, schema_named("gate"))
    assert document["policies"] == {"tight.env": "policy.toml"}
    assert JUnitXml.fromfile(str(folder / "out" / "g.xml")).failures == 1
    assert (folder / "out" / "g.md").read_text("utf-8").startswith("# STATEK presets: 1 of 3 verdicts fail")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("nothing.env",), "preset 'nothing.env'; no such file"),
        (("roomy.env", "--policy", "nothing.toml"), "nothing.toml: ; no such file"),
        (("roomy.env", *ON[:2], "--profile", "9"), "preset '9'"),
        (("roomy.env", "--policy", "policy.toml", "nowhere.yaml"), "nowhere.yaml: "),
        (("roomy.env", *ON, "--json", "policy.toml/x.json"), "policy.toml/x.json: ; write the report"),
        (
            ("roomy.env", *ON, "--profile", "1.2"),
            "policy.toml:1: ; tag 'healthy': ; sample/useful and 1 more",
        ),
    ],
)
def test_bad_input_exits_2_and_says_what(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], facts: str
) -> None:
    code, out, err = gate(capsys, *arguments)
    assert (code, out) == (2, "")
    assert says(err, *facts.split("; "))


def test_a_policy_may_select_what_a_profile_has(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = gate(capsys, "roomy.env", *ON, "--profile", "1.4")
    assert code == 0
    assert "all 3 verdicts pass" in out
    assert folder.is_dir()


@pytest.mark.usefixtures("folder")
def test_a_preset_named_twice_is_judged_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert "all 3 verdicts pass" in gate(capsys, "roomy.env", "roomy.env", *ON)[1]


def test_without_a_policy_the_shipped_one_judges(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = gate(capsys, "roomy.env", "workloads.yaml", "--json", "g.json")
    assert code == 1
    assert "leaks claim invoice-1" in " ".join(out.split())
    policies = json.loads((folder / "g.json").read_text("utf-8"))["policies"]
    assert policies == {"roomy.env": "statek_sim/gate/policies/general.toml"}


def test_a_built_in_preset_has_its_own_policy_for_the_shipped_workloads_only(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gate(capsys, "batch", "workloads.yaml", "--json", "own.json")
    gate(capsys, "batch", "--json", "shipped.json")
    names = [
        json.loads((folder / name).read_text("utf-8"))["policies"]["batch"].rpartition("/")[2]
        for name in ("own.json", "shipped.json")
    ]
    assert names == ["general.toml", "batch.toml"]


def test_the_schema_of_policies_is_published(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["list", "schema", "--policy"])
    jsonschema.validate(tomllib.loads(POLICY), json.loads(capsys.readouterr().out))
