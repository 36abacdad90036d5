"""`statek-sim fuzz`: the same finds whoever plays, searches that go on, and finds that are small and play again."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from rich.console import Console

from statek_sim.cli import main
from statek_sim.cli.fuzz_progress import FuzzProgress
from statek_sim.conformance.compare import Difference
from statek_sim.conformance.examples.scenarios import scenario
from statek_sim.errors import BadInput, Untimely
from statek_sim.explore import state
from statek_sim.explore.asked import StatekAsked
from statek_sim.explore.invariants import Violation
from statek_sim.fuzz import player, search
from statek_sim.fuzz.corpus import Corpus
from statek_sim.fuzz.numbers import Numbers, changed
from statek_sim.fuzz.player import Example, Player, as_dict, from_dict
from statek_sim.fuzz.shape import shape_of, steps_of
from statek_sim.reporting.published import schema_named
from statek_sim.trace import StatusChanged
from tests.explore import samples


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claim.yaml").write_text(samples.CLAIM)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exit_:
        main([*arguments])
    out, err = capsys.readouterr()
    return int(exit_.value.code or 0), out, err


def found(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text())
    jsonschema.Draft202012Validator(schema_named("fuzz_report")).validate(document)
    document.pop("seconds")
    return document


def test_what_is_found_does_not_depend_on_who_plays(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    for name in ("serial", "processes:2"):
        code, out, _ = run(
            capsys,
            "fuzz",
            "claim.yaml",
            "--runs",
            "40",
            "--executor",
            name,
            "--json",
            f"{name}.json",
            "--save",
            "f",
        )
        assert code == 1
        assert "FOUND no-claim-leaked: invoice-1 still claimed" in out
    assert found(here / "serial.json") == found(here / "processes:2.json")
    assert found(here / "serial.json")["examples"] == 40


def test_a_find_is_small_and_plays_again(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "fuzz", "claim.yaml", "--runs", "60", "--executor", "serial")
    assert code == 1
    lines = out.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("FOUND no-claim-leaked"))
    assert lines[at + 1].startswith("  kill after event ")
    command = lines[at + 2].split()
    assert len([line for line in lines if line.startswith("FOUND no-claim-leaked")]) == 1
    assert command[:3] == ["statek-sim", "explore", "--replay"]
    code, out, _ = run(capsys, *command[1:])
    assert code == 1
    assert "FAILED claims-no-claim-leaked[docs] no-claim-leaked: invoice-1 still claimed" in out


def test_what_nobody_asks_for_is_not_found(capsys: pytest.CaptureFixture[str]) -> None:
    ignored = [word for name in sorted(player.STATEKS) for word in ("--ignore", name)]
    code, out, _ = run(capsys, "fuzz", "claim.yaml", "--runs", "30", "--executor", "serial", *ignored)
    assert code == 0
    assert out.startswith("30 examples, ")
    assert out.endswith(" 0 finds\n")


def test_a_run_that_does_not_repeat_is_found_without_what_does_not_matter(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    (here / "coin.yaml").write_text(samples.COIN)
    samples.throws(monkeypatch)
    code, out, _ = run(
        capsys, "fuzz", "coin.yaml", "--runs", "10", "--executor", "serial", "--json", "f.json"
    )
    assert code == 1
    (find,) = found(here / "f.json")["finds"]
    assert (find["invariant"], find["deviations"]) == ("the-run-repeats", [])
    assert find["message"] == "event 9 (ToolReturned) differs in result, after a call of tool 'throw'"
    code, out, _ = run(capsys, "explore", "--replay", find["file"])
    assert (code, out.partition(" ")[0]) == (1, "FAILED")


def as_it_was(lines: list[str]) -> object:
    """How a durable state was told, until this search found that a model may note a number."""
    return (len(lines), "\n".join(lines))


def test_drawn_examples_found_a_bug_of_ours(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    monkeypatch.setattr(state, "_text", as_it_was)
    code, out, _ = run(capsys, "fuzz", "--runs", "16", "--seed", "5", "--executor", "serial")
    assert code == 1
    assert "FOUND the-runtime-survives: TypeError: sequence item" in out
    (file,) = (here / "found").iterdir()
    assert len(file.read_text().splitlines()) < 60
    replay = ("explore", "--replay", str(file))
    code, out, _ = run(capsys, *replay)
    assert (code, out.partition(" ")[0]) == (1, "FAILED")
    monkeypatch.undo()
    monkeypatch.chdir(here)
    code, out, _ = run(capsys, *replay)
    assert (code, out.partition(" ")[0]) == (0, "FIXED")


def test_a_difference_from_the_real_package_is_found_made_small_and_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    def differ(self: Player, written: dict[str, Any], name: str) -> tuple[Violation, ...]:
        wrong = Difference("jobs.main.turns", 2, 3)
        told = f"{wrong.field}: {wrong.reference} here, {wrong.installed} on STATEK 9"
        return (Violation(player.DIFFERS, told),) if "events" in written else ()

    monkeypatch.setattr(Player, "differences", differ)
    code, out, _ = run(capsys, "fuzz", "--runs", "24", "--executor", "serial", "--json", "f.json")
    assert code == 1
    (find,) = found(here / "f.json")["finds"]
    assert (find["invariant"], find["deviations"]) == ("differs-from-statek", [])
    assert find["command"].startswith("statek-sim conformance --python ")
    assert "jobs.main.turns: 2 here, 3 on STATEK 9" in out
    assert "events:" in Path(find["file"]).read_text()


def test_a_search_goes_on_where_it_was(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    words = ("fuzz", "--runs", "16", "--executor", "serial", "--corpus", "kept")
    for times in (1, 2):
        code, _, err = run(capsys, *words)
        assert (code, err) == (0, "")
        kept = json.loads((here / "kept" / "fuzz.json").read_text())
        assert (kept["rounds"], kept["place"], kept["played"]) == (0, 16 * times, 16 * times)
    assert len((here / "kept" / "shapes.txt").read_text().split()) > 16


def test_a_search_in_parts_is_the_search_at_once_wherever_its_scenarios_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    monkeypatch.setattr(search, "ROUND", 16)
    (here / "elsewhere").mkdir()
    (here / "elsewhere" / "same.yaml").write_text(f"# Moved.\n{samples.CLAIM}")
    parts = (("claim.yaml", "10"), (str(here / "claim.yaml"), "20"), ("elsewhere/same.yaml", "10"))
    for corpus, played in (("parts", parts), ("once", (("claim.yaml", "40"),))):
        for path, runs in played:
            words = ("--runs", runs, "--executor", "serial", "--corpus", corpus)
            assert run(capsys, "fuzz", path, *words)[0] == 1
    one, other = (json.loads((here / name / "fuzz.json").read_text()) for name in ("parts", "once"))
    assert {**one, "seconds": 0} == {**other, "seconds": 0}
    assert (one["rounds"], one["place"]) == (2, 8)


@pytest.mark.parametrize(
    ("name", "written", "message"),
    [
        (
            "kept",
            [{"scenario": 99, "numbers": [], "dice": []}],
            "kept[0]: scenario 99 is none of this search",
        ),
        ("kept", [{"scenario": None, "numbers": [], "dice": []}], "kept[0]: scenario None is none of this"),
        ("rounds", "two", "rounds: expected a whole number from 0, got 'two'"),
        ("began", 1000, "began: expected at most "),
        ("schema", "statek-sim/fuzz@1", "expected schema statek-sim/fuzz@2, got statek-sim/fuzz@1"),
    ],
)
def test_a_damaged_search_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str], here: Path, name: str, written: object, message: str
) -> None:
    words = ("fuzz", "claim.yaml", "--runs", "1", "--executor", "serial", "--corpus", "kept")
    run(capsys, *words)
    state = here / "kept" / "fuzz.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), name: written}))
    code, _, err = run(capsys, *words)
    assert code == 2
    assert message in err
    assert "Traceback" not in err


def test_a_search_that_is_stopped_says_what_was_covered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    play, played = Player.play, 0

    def stopped(self: Player, given: Example) -> player.Outcome:
        nonlocal played
        played += 1
        if played > 20:
            raise KeyboardInterrupt
        return play(self, given)

    monkeypatch.setattr(Player, "play", stopped)
    code, out, _ = run(capsys, "fuzz", "--runs", "40", "--executor", "serial")
    assert code == 130
    assert "stopped: what follows is what was covered so far\n16 examples, " in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--hours", "1", "--seconds", "2"), "--hours and --seconds: expected one of them"),
        (("--ignore", "no-such"), "--ignore 'no-such': expected one of no-claim-leaked, "),
        (("--select", "x"), "--select and --tag choose among scenarios: name files or folders"),
        (("claim.yaml", "--statek", "python"), "--statek: only drawn examples are compared"),
        (
            ("--corpus", "damaged"),
            "damaged/fuzz.json: not a search that can be gone on with: it has no 'schema'",
        ),
        (
            ("--corpus", "other"),
            "other/fuzz.json: it is a search of other examples, or with another seed than 0",
        ),
        (("--executor", "many"), "--executor many: expected serial, "),
        (("nowhere.yaml",), "nowhere.yaml"),
    ],
)
def test_bad_input_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str], here: Path, words: tuple[str, ...], message: str
) -> None:
    for name in ("damaged", "other"):
        (here / name).mkdir()
        (here / name / "shapes.txt").write_text("")
    (here / "damaged" / "fuzz.json").write_text("{}")
    state = {"schema": "statek-sim/fuzz@2", "seed": 7, "about": "", "rounds": 0, "runs": 0, "played": 0}
    rest = {"place": 0, "began": 0, "seconds": 0, "kept": [], "steps": []}
    (here / "other" / "fuzz.json").write_text(json.dumps({**state, **rest}))
    code, _, err = run(capsys, "fuzz", *words)
    assert code == 2
    assert message in err
    assert "Traceback" not in err


def test_numbers_lead_to_the_same_example_again() -> None:
    drawn = Numbers((), random.Random(4))
    first = scenario(drawn)
    assert scenario(Numbers(drawn.taken)) == first
    assert scenario(Numbers(())) == scenario(Numbers((0,) * 50))


def test_examples_are_kept_as_plain_numbers() -> None:
    one = Example(numbers=(1, 2), dice=(3,))
    assert from_dict(as_dict(one)) == one
    with pytest.raises(ValueError, match=r"^expected whole numbers from 0$"):
        from_dict({"scenario": None, "numbers": [-1], "dice": []})


def test_changed_numbers_differ_mostly() -> None:
    chance = random.Random(1)
    before = tuple(range(20))
    made = [changed(before, (7,) * 9, chance) for _ in range(50)]
    assert sum(one != before for one in made) > 45


def test_a_shape_knows_no_names_and_no_times() -> None:
    one = shape_of(
        [StatusChanged(1.0, "main", "READY", "STARTED"), StatusChanged(2.0, "x", "READY", "STARTED")]
    )
    assert one == ("StatusChanged STARTED",)
    assert len(set(steps_of(one))) == 2


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_shows_how_far_a_search_is_and_has_nothing_of_it_afterwards(*, terminal: bool) -> None:
    file = io.StringIO()
    console = Console(file=file, width=160, force_terminal=terminal, legacy_windows=False, _environ={})
    shown = FuzzProgress(None, 10, console)
    report = search.Report(Corpus(seed=1, about="drawn"))
    report.played, report.runs = 4, 30
    shown.update(report, 2.0)
    shown.close()
    written = file.getvalue()
    assert ("4 examples, 30 runs (15 per second), 0 shapes of traces" in written) is terminal
    assert written.endswith("\x1b[2K") is terminal


def test_bad_input_in_the_middle_of_a_run_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StatekAsked, "played", _raising(Untimely("the job is not there")))
    assert Player().play(Example(numbers=(1, 2, 3), tail=4)).shape == "refused"
    monkeypatch.setattr(StatekAsked, "played", _raising(BadInput("a tool's file is none")))
    assert Player().play(Example(numbers=(1, 2, 3), tail=4)).shape != "refused"


def _raising(error: Exception) -> Any:
    def played(*_: object, **__: object) -> Any:
        raise error

    return played
