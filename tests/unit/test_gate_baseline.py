"""Baselines: what counts as worse, what their files look like, and what --baseline and --update-baseline do."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from statek_sim.cli import main
from statek_sim.errors import BadInput
from statek_sim.gate.baseline import (
    Baseline,
    Figures,
    Need,
    baseline_diff,
    baseline_paths,
    baseline_schema,
    baseline_text,
    read_baseline,
    worse,
)
from statek_sim.harness.limits import LimitName
from statek_sim.harness.preset import BUILT_IN
from tests.says import line_with, says
from tests.tables import table_test

ROOT = Path(__file__).parents[2]
TURNS, TOKENS = LimitName.MAX_TURNS, LimitName.MAX_TOKEN_USAGE
SCENARIOS = """\
suite: traffic
defaults: {agents: {clerk: {}}}
scenarios:
  - {id: good, title: Ends., tags: [healthy], script: {clerk: [{code: print(1)}, {code: exit(1)}]}}
  - id: bad
    title: Loops.
    tags: [runaway]
    goes_bad: {main: 2}
    script: {clerk: [{code: print(1), latency: 60, repeat: forever}]}
"""


def healthy(needed: int, value: int | None, *, limit: LimitName = TURNS) -> Figures:
    return Figures(stopped_by=None, needs={limit: Need(needed, value)})


def runaway(
    turns: int, tokens: int, cost: str | None = None, *, stopped: LimitName | None = TURNS
) -> Figures:
    return Figures(stopped_by=stopped, bad_turns=turns, bad_tokens=tokens, bad_cost=cost)


@table_test(
    ("before", "now", "percent"),
    [
        (healthy(3, 5), healthy(3, 5), 0),
        (healthy(3, 5), healthy(3, 9), 0),
        (healthy(100, 1_000), healthy(110, 1_000), 10),
        (healthy(3, None), healthy(300, None), 0),
        (runaway(5, 1_000), runaway(5, 1_100), 10),
        (runaway(5, 1_000), runaway(2, 50), 0),
        (runaway(5, 1_000), runaway(5, 1_000, "0.5"), 0),
        (Figures(stopped_by=TURNS, needs={}), healthy(3, 5), 0),
        (Figures(stopped_by=None, needs={}), healthy(3, 5), 0),
    ],
)
def test_what_is_as_good_or_a_little_worse_passes(before: Figures, now: Figures, percent: int) -> None:
    assert list(worse(before, now, percent)) == []


@table_test(
    ("before", "now", "limit", "facts"),
    [
        (healthy(3, 5), healthy(4, 5), TURNS, ("4 of 5 max_turns", "3 of 5 in the baseline")),
        (healthy(3, 5), healthy(3, 4), TURNS, ("3 of 4 max_turns", "3 of 5 in the baseline")),
        (healthy(3, None), healthy(3, 9), TURNS, ("3 of 9 max_turns", "3 of unlimited in the baseline")),
        (healthy(1_000, 9_000), healthy(1_101, 9_000), TURNS, ("1,101 of 9,000 max_turns",)),
        (healthy(3, 5), Figures(stopped_by=TOKENS, needs={}), TOKENS, ("now stopped",)),
        (runaway(5, 1_000), runaway(6, 1_000), TURNS, ("6 turns", "5 in the baseline")),
        (runaway(5, 1_000), runaway(5, 1_101), TURNS, ("1,101 measured tokens", "1,000 in the baseline")),
        (runaway(5, 10, "0.10"), runaway(5, 10, "0.12"), TURNS, ("cost", "0.12", "0.10 in the baseline")),
        (runaway(5, 10), runaway(5, 10, stopped=None), TURNS, ("max_turns before", "not stopped now")),
        (
            runaway(5, 10),
            Figures(stopped_by=TURNS, needs={}, leaked=1),
            None,
            ("1 leaked", "0 in the baseline"),
        ),
    ],
)
def test_what_is_worse_is_told_with_its_limit(
    before: Figures, now: Figures, limit: LimitName | None, facts: tuple[str, ...]
) -> None:
    ((found, said),) = worse(before, now, 10)
    assert found == limit
    assert says(said, *facts)


def sample() -> Baseline:
    scenarios = {
        "s/bad": Figures(stopped_by=TOKENS, bad_turns=3, bad_tokens=4_000, bad_cost="0.0120", leaked=2),
        "s/good": Figures(stopped_by=None, needs={TURNS: Need(3, 5), TOKENS: Need(793, None)}),
        "s/other": Figures(stopped_by=None, needs={}),
    }
    return Baseline(preset="interactive", profile="docs", scenarios=scenarios)


def test_a_baseline_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "interactive.json"
    path.write_text(baseline_text(sample()), encoding="utf-8")
    assert read_baseline(path, profile="docs") == sample()
    jsonschema.validate(json.loads(baseline_text(sample())), baseline_schema())


def test_a_baseline_has_one_line_per_scenario() -> None:
    lines = baseline_text(sample()).splitlines()
    assert lines[5] == (
        '    "s/bad": {"stopped_by": "max_token_usage", "bad_turns": 3, "bad_tokens": 4000, "bad_cost": "0.0120", '
        '"leaked": 2},'
    )
    assert lines[6] == '    "s/good": {"needs": {"max_turns": [3, 5], "max_token_usage": [793, null]}},'


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ((" [3, 5]", " [3]"), "b.json:7: ; scenarios.s/good.needs.max_turns.1: field required"),
        (('"leaked": 2', '"leaks": 2'), "b.json:6: ; scenarios.s/bad.leaks: extra"),
        (('"bad_turns": 3', '"bad_turns": -3'), "b.json:6: ; scenarios.s/bad.bad_turns"),
        (("baseline@1", "baseline@2"), "b.json:2: format: ; 'statek-sim/baseline@1'"),
        (("docs", "1.4"), "b.json:4: ; for profile 1.4; expected docs"),
        (('"scenarios": {', '"scenarios": '), "b.json:6: ; JSON"),
    ],
)
def test_a_damaged_baseline_is_refused_with_its_line(
    change: tuple[str, str], facts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("b.json").write_text(baseline_text(sample()).replace(*change), encoding="utf-8")
    with pytest.raises(BadInput, match=line_with(*facts.split("; "))):
        read_baseline(Path("b.json"), profile="docs")


def test_a_missing_baseline_says_how_to_write_it(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=line_with("none.json: ", "file", "--update-baseline")):
        read_baseline(tmp_path / "none.json", profile="docs")


def test_each_preset_has_a_file_of_its_own() -> None:
    folder = Path("reports/baselines")
    assert baseline_paths(folder, ["batch", "config/own.env"]) == {
        "batch": folder / "batch.json",
        "config/own.env": folder / "own.json",
    }
    assert baseline_paths(Path("b.json"), ["batch"]) == {"batch": Path("b.json")}
    with pytest.raises(BadInput, match=line_with("--baseline b.json", "2 presets", "folder")):
        baseline_paths(Path("b.json"), ["batch", "local"])
    with pytest.raises(BadInput, match=line_with("--baseline b: ", "two presets", "same")):
        baseline_paths(Path("b"), ["a/own.env", "b/own.env"])


def test_the_diff_of_one_change_is_small(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_text(baseline_text(sample()), encoding="utf-8")
    assert baseline_diff(path, baseline_text(sample())) == []
    diff = baseline_diff(path, baseline_text(sample()).replace("4000", "4100"))
    assert [line[:12] for line in diff if line[0] in "+-"] == [
        f"--- {path}"[:12],
        f"+++ {path}"[:12],
        '-    "s/bad"',
        '+    "s/bad"',
    ]


# -- the command ---------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(SCENARIOS, encoding="utf-8")
    (tmp_path / "own.env").write_text("STATEK_MAX_TURNS=5\n", encoding="utf-8")
    return tmp_path


def gate(*words: str) -> object:
    with pytest.raises(SystemExit) as ended:
        main(["gate", "own.env", "s.yaml", "--baseline", "b", *words])
    return ended.value.code


def test_a_baseline_is_written_compared_with_and_updated(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate() == 2
    assert says(capsys.readouterr().err, "b/own.json: ", "file or folder")
    assert gate("--update-baseline") == 0
    assert '+    "traffic/bad": {"stopped_by": "max_turns", "bad_turns": 5,' in capsys.readouterr().out
    assert gate() == 0
    (folder / "own.env").write_text("# Room.\nSTATEK_MAX_TURNS=9\n", encoding="utf-8")
    assert gate() == 1
    said = " ".join(capsys.readouterr().out.split())
    assert says(said, "own.env:2", "`bad`", "9 turns", "5 in the baseline")
    assert gate("--update-baseline") == 0
    assert '-    "traffic/bad": {"stopped_by": "max_turns", "bad_turns": 5,' in capsys.readouterr().out
    assert gate() == 0


def test_new_scenarios_pass_and_vanished_ones_do_not(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate("--update-baseline") == 0
    (folder / "s.yaml").write_text(SCENARIOS.replace("id: good", "id: better"), encoding="utf-8")
    assert gate() == 1
    good, better = re.split(r"\n(?=.*`better`)", capsys.readouterr().out.replace("\n  ", " "), maxsplit=1)
    assert says(good, "`good`", "in the baseline", "remove", "--update-baseline")
    assert says(better, "`better`", "not in the baseline", "add", "--update-baseline")


def test_an_unchanged_baseline_is_not_written_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gate("--update-baseline")
    before = (folder / "b" / "own.json").stat().st_mtime_ns
    capsys.readouterr()
    assert gate("--update-baseline") == 0
    assert "b/own.json: unchanged" in capsys.readouterr().out
    assert (folder / "b" / "own.json").stat().st_mtime_ns == before


def test_the_schema_of_baselines_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["list", "schema", "--baseline"])
    assert json.loads(capsys.readouterr().out) == baseline_schema()
    with pytest.raises(SystemExit, match=r"^2$"):
        main(["list", "schema", "--baseline", "--policy"])
    assert capsys.readouterr().err.startswith("--policy and --baseline: ")


def test_update_needs_a_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^2$"):
        main(["gate", "own.env", "--update-baseline"])
    assert says(capsys.readouterr().err, "--update-baseline requires --baseline")


def test_the_committed_baselines_are_up_to_date(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = ROOT / "reports" / "baselines"
    before = {path.name: path.read_text("utf-8") for path in sorted(folder.glob("*.json"))}
    assert list(before) == sorted(f"{preset}.json" for preset in BUILT_IN)
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["gate", *BUILT_IN, "--baseline", "now", "--update-baseline"])
    assert {path.name: path.read_text("utf-8") for path in sorted(Path("now").glob("*.json"))} == before
