"""`statek-sim usage`: what it prints at two widths, what it writes, how it exits."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from statek_sim.cli import main
from statek_sim.reporting.artifact import schema_named

LETTERS = """\
defaults:
  agents: {clerk: {dialog: true, chat_style: DIRECT}}
  script:
    clerk:
      - {text: "ok", usage: {prompt: 1000, completion: 4, cached: 2000}}
scenarios:
  - {id: english, title: English., jobs: {main: {message: "Where is my parcel? It should have come on Monday."}}}
  - {id: russian, title: Russian., jobs: {main: {message: "Где моя посылка? Она должна была прийти в понедельник."}}}
  - {id: silent, title: Silent., script: {clerk: [{body: "no json"}]}, jobs: {main: {message: "Hello"}}}
"""
PRICES = """\
PROVIDER,MODEL,MODEL_FAMILY,INPUT_PRICE_PER_M,INPUT_PRICE_PER_CACHED_M,OUTPUT_PRICE_PER_M
OPENROUTER,gpt-4o,,3,0.3,15
OPENROUTER,gpt-5,,,0.3,15
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "a.yaml").write_text(LETTERS, encoding="utf-8")
    (tmp_path / "prices").mkdir()
    (tmp_path / "prices" / "all.csv").write_text(PRICES, encoding="utf-8")
    return tmp_path


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    captured = capsys.readouterr()
    return exit_.value.code or 0, captured.out, captured.err


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for arguments in (["usage", "letters"], ["usage", "letters", "--turns"], ["usage", "letters", "--all"]):
        code, out, _ = _run(capsys, *arguments)
        assert code == 0
        assert max(map(len, out.splitlines())) <= width


def test_the_report_shows_both_counts_and_where_they_differ(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = _run(capsys, "usage", "letters")
    lines = [line.split() for line in out.splitlines()]
    measured = {line[0]: line[1:] for line in lines if line and line[0].startswith("letters/")}
    assert measured["letters/russian[docs]"][0] == "1"
    steps = {line[1]: int(line[0].replace(",", "")) for line in lines if len(line) > 1 and line[1] in _STEPS}
    equals = {line[2]: int(line[0].replace(",", "")) for line in lines if len(line) > 2 and line[1] == "="}
    assert steps["once"] + steps["history"] == equals["estimate"]
    assert sum(steps.values()) == equals["measured"]
    assert "1 scenario without answered calls" in out


_STEPS = ("once", "history", "escaping", "envelope", "tools", "response", "density")


def test_the_json_file_keeps_to_its_schema_and_adds_up(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, _ = _run(
        capsys, "usage", "letters", "--json", "usage.json", "--prices", "prices", "--preset", "batch"
    )
    written = json.loads((folder / "usage.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema_named("usage")).validate(written)
    assert code == 0
    assert [one["id"] for one in written["scenarios"]] == ["english", "russian"]
    assert written["without_calls"] == ["letters/silent[docs]"]
    assert written["price_problems"] == ["prices/all.csv:3: skipped, no price for input or output"]
    assert written["overall"]["reported_tokens"] == 2008
    for one in written["scenarios"]:
        steps = one["waterfall"]
        assert sum(steps[step] for step in _STEPS) == steps["measured"] == one["measured_tokens"]


def test_impossible_costs_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = _run(capsys, "usage", "letters", "--prices", "prices")
    told = " ".join(out.split())
    assert "letters/english[docs]: negative cost -0.00234" in told
    assert "2,000 cached tokens exceed the 1,000 prompt tokens" in told
    assert "prices/all.csv:3: skipped, no price for input or output" in told


def test_the_markdown_file_has_the_same_figures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(capsys, "usage", "letters", "--json", "usage.json", "--markdown", "usage.md")
    written = json.loads((folder / "usage.json").read_text(encoding="utf-8"))
    text = (folder / "usage.md").read_text(encoding="utf-8")
    (heads,) = (line for line in text.splitlines() if line.startswith("| scenario | calls |"))
    (russian,) = (line for line in text.splitlines() if line.startswith("| `letters/russian[docs]` | 1 "))
    cells = dict(zip(heads.split(" | "), russian.split(" | "), strict=True))
    figures = written["scenarios"][1]
    assert cells["estimate"] == str(figures["approx_tokens"])
    assert cells["measured"] == str(figures["measured_tokens"])
    assert cells["ratio"].endswith("over")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["letters", "--prices", "none"], "none: expected a folder with price files (*.csv, *.txt)"),
        (["letters", "--profile", "1.3"], "profile '1.3' is unknown"),
        (["letters", "--select", "englsh"], "Did you mean 'english'?"),
        (["letters", "--json", "letters"], "letters: cannot write the report"),
        (["none"], "none: no such file or folder"),
    ],
)
def test_bad_input_exits_2(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code, _, err = _run(capsys, "usage", *arguments)
    assert code == 2
    assert message in err


@pytest.mark.slow
def test_the_corpus_is_shown_and_written_with_its_table(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = _run(
        capsys, "usage", "--corpus", "--model", "gpt-4", "--json", "corpus.json", "--markdown", "corpus.md"
    )
    written = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema_named("usage")).validate(written)
    assert code == 0
    assert "measured with cl100k_base" in out
    assert len(written["corpus"]) == len(written["scenarios"]) == 90
    assert (
        (folder / "corpus.md")
        .read_text(encoding="utf-8")
        .startswith("# The same dialogue in many types of text")
    )


def test_the_corpus_takes_no_scenarios(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = _run(capsys, "usage", "letters", "--corpus")
    assert code == 2
    assert err.startswith("--corpus: remove PATH")


def test_usage_says_which_scenario_the_watchdog_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stuck_tools.py").write_text(
        "from statek_sim import tool\n\n@tool\ndef stuck(**kwargs):\n    while True:\n        pass\n"
    )
    (tmp_path / "stuck.yaml").write_text(
        "scenarios:\n  - {id: stuck, title: Stuck, agents: {a: {tools: ['stuck_tools:stuck']}}, "
        "script: {a: [{code: stuck()}]}}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SystemExit, match=r"^1$"):
        main(["usage", str(tmp_path / "stuck.yaml"), "--watchdog", "cpu=0.5"])
    assert "killed by the watchdog: 0.5 s CPU" in capsys.readouterr().err
