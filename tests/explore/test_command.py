"""`statek-sim explore`: what it prints, writes and exits with."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from statek_sim.cli import main
from statek_sim.explore import workers as running
from statek_sim.reporting.artifact import schema_named
from tests.explore import samples
from tests.says import says


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exit_:
        main(["explore", *arguments])
    out, err = capsys.readouterr()
    return int(exit_.value.code or 0), out, err


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claim.yaml").write_text(samples.CLAIM)
    (tmp_path / "thinkers.yaml").write_text(samples.THINKERS)
    return tmp_path


def test_nothing_fails_where_jobs_touch_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "thinkers.yaml", "--kind", "crashes", "--kind", "orders", "--watchdog", "off")
    assert code == 0
    assert "samples/thinkers[docs]: 23 of 23 crash points, 9 of 9 orders" in out
    assert "no failures" in out


def test_a_found_case_is_a_file_that_fails_until_it_is_fixed(
    capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    code, out, _ = run(capsys, "claim.yaml", "--kind", "crashes", "--save", "found")
    assert code == 1
    assert "statek-sim explore --replay found/claims-docs-no-claim-leaked.yaml" in out
    case = here / "found" / "claims-docs-no-claim-leaked.yaml"
    code, out, _ = run(capsys, "--replay", str(case))
    assert (code, out) == (
        1,
        "FAILED claims-no-claim-leaked[docs] no-claim-leaked: invoice-1 still claimed after every job has ended\n",
    )
    # What fixes it: nobody dies between the claim and the registration of its handler.
    case.write_text(case.read_text().replace("kill: 9", "kill: 12"))
    code, out, _ = run(capsys, "--replay", str(case))
    assert (code, out) == (0, "FIXED claims-no-claim-leaked[docs] no-claim-leaked\n")


def test_a_case_whose_place_is_gone_says_so(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    run(capsys, "claim.yaml", "--kind", "crashes", "--save", "found")
    case = here / "found" / "claims-docs-no-claim-leaked.yaml"
    case.write_text(case.read_text().replace("kill: 9", "kill: 900"))
    code, out, _ = run(capsys, "--replay", str(case))
    assert code == 0
    assert "(no occasion for: kill after event 900" in out


def test_run_plays_the_deviations_of_a_scenario(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    found = (
        samples.CLAIM
        + "    deviations: [{kill: 9}]\n    expect: {world: {items: {invoice-1: {status: CLAIMED}}}}\n"
    )
    (here / "found.yaml").write_text(found)
    with pytest.raises(SystemExit) as exit_:
        main(["run", "found.yaml", "--profile", "docs", "-q"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == "1 passed\n"


def test_the_json_is_what_its_schema_says(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    code, _, _ = run(
        capsys, "claim.yaml", "--depth", "2", "--json", "found.json", "--markdown", "found.md", "-q"
    )
    assert code == 1
    document = json.loads((here / "found.json").read_text())
    jsonschema.validate(document, schema_named("exploration"))
    (scenario,) = document["scenarios"]
    assert scenario["proven"]["crashes"] == [16, 16]
    assert {failure["invariant"] for failure in scenario["failures"]} >= {"no-claim-leaked"}
    assert len(scenario["map"]) == 16
    assert document["runs"] > 100
    assert "| claims docs | 16 of 16 crash points" in (here / "found.md").read_text()


def test_the_price_of_a_crash_is_a_threshold(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "thinkers.yaml", "--kind", "crashes", "--max-crash-tokens", "1")
    assert code == 1
    assert "FAILED thinkers: one crash adds" in out
    assert run(capsys, "thinkers.yaml", "--kind", "crashes", "--max-crash-tokens", "1000")[0] == 0


def test_the_undisturbed_run_is_played_twice_however_few_there_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    (here / "coin.yaml").write_text(samples.COIN)
    samples.throws(monkeypatch)
    code, out, _ = run(capsys, "coin.yaml", "--kind", "limits", "--executor", "serial")
    assert code == 1
    assert "FAILED samples/coin[docs] the-run-repeats" in out
    assert (
        "  event 9 (ToolReturned) differs in result, after a call to tool 'throw'\n  without deviations\n"
        in out
    )
    assert out.endswith("1 scenario, 6 runs: the-run-repeats in 1\n")


def test_ctrl_c_reports_what_was_covered_so_far(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    explored = running.explore_one

    def interrupted(scenario: object, *given: object, **named: object) -> object:
        if scenario.id == "claims":  # type: ignore[attr-defined]  # a Scenario
            raise KeyboardInterrupt
        return explored(scenario, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(running, "explore_one", interrupted)
    code, out, _ = run(capsys, "thinkers.yaml", "claim.yaml", "--kind", "limits", "--executor", "serial")
    assert code == 130
    assert "stopped early; the verdict covers the runs so far\n1 scenario," in out


def test_a_scenario_that_ends_its_process_fails_and_the_others_are_explored(
    capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    (here / "ends.yaml").write_text(samples.COIN.replace("coins:throw", "tests.explore.samples:end_process"))
    (here / "ends.yaml").write_text((here / "ends.yaml").read_text().replace("throw()", "end_process()"))
    code, out, _ = run(
        capsys, "ends.yaml", "thinkers.yaml", "--kind", "limits", "--executor", "processes:2", "--quiet"
    )
    assert code == 1
    assert (
        "samples/coin[docs]: not explored: killed by the watchdog: its process ended with exit code 3" in out
    )
    assert out.endswith(" runs, 1 not explored: 1 killed\n")


def test_one_process_and_two_give_the_same(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    for processes in ("1", "2"):
        run(
            capsys,
            ".",
            "--kind",
            "crashes",
            "--executor",
            f"processes:{processes}",
            "--json",
            f"{processes}.json",
        )
    one, two = (json.loads((here / f"{name}.json").read_text()) for name in ("1", "2"))
    assert one["scenarios"] == two["scenarios"]


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("--replay",), "--replay: ; files or folders"),
        (("--replay", "claim.yaml"), "missing 'violates'"),
        (("claim.yaml", "--invariant", "nothing"), "--invariant 'nothing': ; 'module:attribute'"),
        (
            ("claim.yaml", "--invariant", "math:pi"),
            "--invariant 'math:pi': ; callable; got 3.141592653589793",
        ),
        (("claim.yaml", "--invariant", "os:getcwd"), "--invariant 'os:getcwd': ; raised TypeError: "),
        (
            ("claim.yaml", "--invariant", "os:getcwd", "--watchdog", "off"),
            "--invariant 'os:getcwd': ; raised TypeError: ",
        ),
        (
            ("claim.yaml", "--invariant", "builtins:id"),
            "--invariant 'builtins:id': ; string or None; got int",
        ),
        (("claim.yaml", "--json", "a", "--markdown", "./a"), "--json and --markdown: ; both write a"),
        (("nowhere.yaml",), "nowhere.yaml: "),
    ],
)
def test_bad_input_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], facts: str
) -> None:
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert says(err, *facts.split("; "))
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("written", "facts"),
    [
        ("{kill: 3, fault: '429'}", "one of kill, lose, fault, move, choose, limit; got kill and fault"),
        ("{fault: '429'}", "fault requires job"),
        ("{lose: 3, to_event: 3}", "to_event; before the event; worker dies"),
        ("{limit: max_turns, value: 1, first: main}", "first is allowed with choose; not with limit; value"),
        ("{move: 3, to: 1}", "move event 3; number of events: 0"),
    ],
)
def test_deviations_that_make_no_sense_are_bad_input(
    capsys: pytest.CaptureFixture[str], here: Path, written: str, facts: str
) -> None:
    text = samples.THINKERS + f"    deviations: [{written}]\n    violates: limits-hold\n"
    (here / "wrong.yaml").write_text(text)
    code, _, err = run(capsys, "--replay", "wrong.yaml")
    assert code == 2
    assert says(err, *facts.split("; "))
