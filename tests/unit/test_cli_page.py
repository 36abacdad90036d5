"""`statek-sim run --html`: which page it writes, and how it exits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from statek_sim.cli import main
from statek_sim.reporting.artifact import schema_named
from tests.unit.page_samples import Elements, check_details, check_index

SUITE = """\
defaults: {agents: {clerk: {}}, script: {clerk: [{code: exit("done")}]}, profiles: [docs, "1.4"]}
scenarios:
  - {id: fine, title: Fine., tags: [small]}
  - {id: wrong, title: Wrong., expect: {jobs: {main: {exit: "</script>"}}}}
"""


WORKLOADS = """\
suite: own
defaults: {agents: {clerk: {}}}
scenarios:
  - {id: useful, title: Useful., tags: [healthy], script: {clerk: [{code: "print(1)", repeat: 3}, {code: exit()}]}}
  - id: looping
    title: Looping.
    tags: [runaway]
    goes_bad: {main: 1}
    script: {clerk: [{code: "print(2)", repeat: forever}]}
"""

PAGE = ("run", "suite", "--select", "fine", "--html", "report.html")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "a.yaml").write_text(SUITE, encoding="utf-8")
    return tmp_path


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    captured = capsys.readouterr()
    return exit_.value.code or 0, captured.out, captured.err


def _index(page: Path) -> dict[str, Any]:
    data = Elements(page.read_text("utf-8")).data
    found: dict[str, Any] = json.loads(data["index"])
    check_index(found)
    check_details(*(json.loads(text) for name, text in data.items() if name.isdecimal()))
    return found


def test_a_page_is_written_and_a_failing_scenario_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = _run(capsys, "run", "suite", "--html", "report.html")
    assert (code, "\n2 passed, 2 failed (2 scenarios x 2 profiles) in " in out) == (1, True)
    index = _index(folder / "report.html")
    assert [run["outcome"] for run in index["runs"]] == ["passed", "passed", "failed", "failed"]
    assert "</script>" in index["failures"][0]["text"]


def test_only_what_was_chosen_is_on_the_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (
        "--tag",
        "small",
        "--profile",
        "docs",
        "--preset",
        "batch",
        "--seed",
        "7",
        "--html",
        "out/page.html",
    )
    code, _, _ = _run(capsys, "run", "suite", *arguments)
    assert code == 0
    index = _index(folder / "out" / "page.html")
    assert [run["name"] for run in index["runs"]] == ["suite/fine[docs]"]
    assert (index["preset"], index["seed"]) == ("batch", 7)


def test_the_folder_of_reports_has_the_same_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(capsys, "run", "suite", "-q", "--html", "one.html", "--report", "out")[0] == 1
    assert (folder / "one.html").read_bytes() == (folder / "out" / "report.html").read_bytes()
    assert (folder / "out" / "report.json").exists()


def test_the_verdicts_of_the_gate_are_on_the_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "suite" / "a.yaml").write_text(WORKLOADS, encoding="utf-8")
    code, out, _ = _run(capsys, "run", "suite", "--html", "report.html", "--gate", "batch", "--gate", "local")
    assert out.endswith("\nwrote report.html\n")
    index = _index(folder / "report.html")
    jsonschema.validate(index["gate"], schema_named("gate"))
    assert [preset["name"] for preset in index["gate"]["presets"]] == ["batch", "local"]
    assert code == int(not index["gate"]["passed"])


def test_the_gate_judges_presets_on_the_workloads_that_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "own.yaml").write_text(WORKLOADS, encoding="utf-8")
    _run(capsys, "run", "own.yaml", "--html", "report.html", "--gate", "batch")
    judged = {verdict["scenario"] for verdict in _index(folder / "report.html")["gate"]["verdicts"]}
    assert judged == {f"own/{name}[docs]" for name in ("useful", "looping")}


def test_what_a_kill_does_is_on_the_page_on_request(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(capsys, *PAGE, "--profile", "docs", "--explore")
    assert _index(folder / "report.html")["crashes"] is not None


def test_a_preset_that_fails_the_gate_is_told_by_the_exit_code(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "strict.env").write_text("STATEK_MAX_TURNS=1\n", encoding="utf-8")
    (folder / "suite" / "a.yaml").write_text(WORKLOADS, encoding="utf-8")
    assert (
        _run(capsys, "run", "suite", "--select", "useful", "--html", "report.html", "--gate", "strict.env")[0]
        == 1
    )
    assert not _index(folder / "report.html")["gate"]["passed"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "suite", "--html", "suite"], "suite: cannot write the report: Is a directory"),
        (
            ["run", "suite", "--html", "suite/a.yaml/x"],
            "suite/a.yaml/x: cannot write the report: Not a directory",
        ),
        ([*PAGE, "--policy", "p.toml"], "--policy requires --gate PRESET"),
        ([*PAGE, "--gate", "batsch"], "preset 'batsch': no such file"),
        (["run", "suite", "--explore"], "--explore requires --html FILE"),
    ],
)
def test_bad_input_is_told_before_anything_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    code, out, err = _run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert [path.name for path in folder.iterdir()] == ["suite"]
