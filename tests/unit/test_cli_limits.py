"""`statek-sim limits`: what its questions print, what they write, how they exit."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from statek_sim.cli import main
from statek_sim.reporting.artifact import schema_named

TRAFFIC = """\
scenarios:
  - id: a-rather-long-name-of-a-scenario-that-loops-in-chinese
    title: Loops in Chinese.
    agents: {clerk: {}}
    limits: {max_turns: null}
    script:
      clerk:
        - {code: "print('请您核对一下款项是否到账并告诉我们这个月是否还有其他应付款项。' * 20)", repeat: 6}
        - code: exit(1)
  - id: short
    title: Ends at once.
    agents: {clerk: {}}
    script: {clerk: [{code: exit(1)}]}
"""
COMMANDS = (
    ["limits", "--stops", "traffic", "--preset", "default", "--preset", "batch"],
    ["limits", "--budget-tokens", "4000", "traffic"],
    ["limits", "traffic", "--preset", "batch"],
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traffic").mkdir()
    (tmp_path / "traffic" / "a.yaml").write_text(TRAFFIC, encoding="utf-8")
    return tmp_path


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    captured = capsys.readouterr()
    return exit_.value.code or 0, captured.out, captured.err


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("arguments", COMMANDS)
def test_no_line_is_wider_than_the_terminal(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    width: int,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, _ = _run(capsys, *arguments)
    assert code == 0
    assert max(map(len, out.splitlines())) <= width


@pytest.mark.parametrize(
    ("arguments", "schema", "key", "entries"),
    [
        (COMMANDS[0], "stops", "jobs", 4),
        (COMMANDS[1], "calibration", "scenarios", 2),
        (COMMANDS[2], "sensitivity", "scenarios", 2),
    ],
)
def test_results_are_written_as_json_that_keeps_to_its_schema(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    schema: str,
    key: str,
    entries: int,
) -> None:
    _run(capsys, *arguments, "--json", "out.json")
    written = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    assert written["schema"] == f"statek-sim/{schema}@1"
    assert len(written[key]) == entries
    jsonschema.Draft202012Validator.check_schema(schema_named(schema))
    check = jsonschema.Draft202012Validator(schema_named(schema))
    check.validate(written)
    assert not check.is_valid({**written, "more": 1})
    assert not check.is_valid({**written, key: [{**written[key][0], "more": 1}]})


def test_stops_count_false_stops_by_preset(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = _run(capsys, *COMMANDS[0])
    rows = [line.split() for line in out.splitlines()]
    assert ["default", "measured", "2", "1", "1", "0", "0"] in rows
    assert ["default", "reported", "2", "0", "0", "0", "2"] in rows


def test_a_budget_says_the_variable_to_set(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = _run(capsys, *COMMANDS[1], "--json", "out.json")
    written = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    assert out.splitlines()[0] == f"STATEK_MAX_TOKEN_USAGE={written['limit']}"


def test_another_tokenizer_measures_other_tokens(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usages = []
    for more in ([], ["--tokenizer", "gpt-4o=tekken"]):
        _run(capsys, *COMMANDS[1], *more, "--json", "out.json")
        written = json.loads((folder / "out.json").read_text(encoding="utf-8"))
        usages.append([one["usage"] for one in written["scenarios"]])
    own, tekken = usages
    assert own != tekken


def test_room_says_what_binds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = _run(capsys, "limits", "traffic", "--preset", "default")
    assert len([line for line in out.splitlines() if line.startswith("traffic/")]) == 2
    assert "stop: tokens" in out
    assert "turns 20%" in out


def test_a_card_says_how_many_tokens_fit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "limits", "--card", "Llama-3-8B", "--free", "1024")
    assert code == 0
    assert "Llama-3-8B: 32 layers, 125.0 MiB per 1,000 tokens of f16" in out
    assert "tokens fit, limited by" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["limits", "--stops", "traffic", "--preset", "bath"], "preset 'bath': no such file"),
        (["limits", "traffic", "--keep", "0.5"], "--keep requires --budget-tokens"),
        (["limits", "traffic", "--free", "9"], "--free requires --card"),
        (["limits", "--stops", "--budget-tokens", "9"], "--stops and --budget-tokens: "),
        (
            ["limits", "--preset", "batch", "--preset", "local"],
            "--preset: expected one preset; only --stops compares",
        ),
        (["limits", "--card", "Llama-3-8B", "traffic"], "--card: remove PATH"),
        (["limits", "--card", "Llama-3-8"], "Did you mean 'Llama-3-8B'?"),
        (["limits", "--budget-tokens", "0"], "Invalid value for '--budget-tokens'"),
        (["limits", "--budget-tokens", "3", "traffic"], "no limit keeps any of the 2 scenarios"),
        (["limits", "--budget-tokens", "3", "--keep", "2"], "--keep 2: expected a fraction from 0 to 1"),
        (["limits", "none"], "none: no such file or folder"),
        (["limits", "traffic", "--select", "shrt"], "Did you mean 'short'?"),
    ],
)
def test_bad_input_exits_2(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code, _, err = _run(capsys, *arguments)
    assert code == 2
    assert message in err
