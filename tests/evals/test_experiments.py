"""Experiments: the same bytes whoever runs them, answers that know what they cannot know, baselines that hold."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import jsonschema
import pytest
from junitparser import JUnitXml
from typer.testing import CliRunner

from statek_sim.agent.budget import Prices
from statek_sim.cli.app import app, load_commands
from statek_sim.errors import BadInput
from statek_sim.evals.arms import PARTS, Arm, named_after
from statek_sim.evals.baseline import SCHEMA, Held, baseline_text, held_against, read_baseline
from statek_sim.evals.experiment import Experiment, batches, run_experiment
from statek_sim.evals.outcome import FailureClass, Outcome
from statek_sim.evals.profile import load_profile
from statek_sim.evals.summary import Summary, compared, holm, summarised
from statek_sim.executors.executor import ProcessExecutor, SerialExecutor
from statek_sim.intervals import wilson
from statek_sim.reporting.artifact import json_text, schema_named
from statek_sim.reporting.evals import (
    evals_json,
    evals_tables,
    rates_json,
    rates_table,
    table_lines,
    table_markdown,
)
from statek_sim.reporting.junit import evals_junit
from tests.evals.test_writing import GOOD
from tests.evals.weak_models import SUITE, eval_named, failing
from tests.says import line_with, says
from tests.tables import table_test

load_commands()

NAMES = ("convert-money", "refund-the-late-order", "recover-from-api-error")
FULL, BARE = named_after(PARTS), named_after(())


def experiment(*arms: Arm, seeds: int = 3, model: str = "lfm2.5-8b-a1b") -> Experiment:
    return Experiment(
        suite=tuple(map(eval_named, NAMES)),
        model=load_profile(model),
        arms=arms or (FULL, BARE),
        seeds=seeds,
    )


def outcomes_of(one: Experiment) -> list[Outcome]:
    return run_experiment(one, SerialExecutor())


def summary_of(one: Experiment) -> Summary:
    return summarised(one, outcomes_of(one))


def test_all_executors_give_the_same_bytes() -> None:
    one = experiment(seeds=5)
    assert len(list(batches(one))) == 3
    with ProcessExecutor(2) as processes:
        parallel = run_experiment(one, processes)
    assert json_text(evals_json(summarised(one, parallel))) == json_text(evals_json(summary_of(one)))
    assert parallel == outcomes_of(one)


@pytest.mark.slow
def test_the_command_writes_the_same_bytes_under_any_hash_seed_and_executor(tmp_path: Path) -> None:
    written = []
    file = tmp_path / "evals.json"
    for number, executor in ((0, "serial"), (1, "processes:2"), (4242, "serial")):
        command = [
            "evals",
            "run",
            str(SUITE / "easy.yaml"),
            "--seeds",
            "2",
            "--arms",
            "full",
            "--arms",
            "bare",
        ]
        done = subprocess.run(
            [sys.executable, "-m", "statek_sim", *command, "--json", str(file), "--executor", executor],
            env={**os.environ, "PYTHONHASHSEED": str(number)},
            capture_output=True,
            text=True,
            check=True,
        )
        written.append((file.read_bytes(), done.stdout))
    assert written[0] == written[1] == written[2]


def test_the_json_is_what_its_schema_says_and_nothing_else() -> None:
    found = evals_json(summary_of(experiment()))
    jsonschema.Draft202012Validator.check_schema(schema_named("evals"))
    jsonschema.validate(found, schema_named("evals"))
    assert list(found) == ["schema", "model", "rates", "arms", "scenarios", "tests"]
    assert set(found["rates"][0]) == {"class", "rate"}
    assert set(found["arms"][0]) == set(schema_named("evals")["properties"]["arms"]["items"]["required"])
    assert set(found["tests"][0]) == {"arms", "p", "enough_runs"}


def test_two_equal_arms_never_differ_and_are_called_not_exercised() -> None:
    twin = Arm("twin", FULL.parts)
    summary = summary_of(experiment(FULL, twin))
    (comparison,) = summary.comparisons
    assert (comparison.seen.first, comparison.p, comparison.answer) == (0, 1.0, "not exercised")
    assert not comparison.enough
    (found,) = compared({("a", "b"): [[(True, True)] * 500] * 100}, same=[("a", "b")])
    assert found.answer == "not exercised"


@pytest.mark.slow
def test_two_halves_of_the_same_runs_are_called_different_no_more_often_than_chance_would() -> None:
    """A null experiment of the whole engine: one arm, its seeds dealt into two arms at random, again and again."""
    suite = tuple(map(eval_named, (*NAMES, "weather-now", "a-slot-for-two", "who-leads-the-team")))
    runs = outcomes_of(replace(experiment(FULL, seeds=40), suite=suite))
    passed = [[one.passed for one in runs if one.scenario == scenario.id] for scenario in suite]
    assert 0.1 < sum(map(sum, passed)) / len(runs) < 0.9
    chance = random.Random(18)
    values = []
    for _ in range(400):
        pairs = []
        for group in passed:
            dealt = chance.sample(group, len(group))
            pairs.append(list(zip(dealt[::2], dealt[1::2], strict=True)))
        (found,) = compared({("a", "b"): pairs})
        values.append(found.p)
    low, _ = wilson(sum(value <= 0.05 for value in values), len(values)) or (0.0, 1.0)
    assert low <= 0.05
    assert len(set(values)) > 5, "p takes many values, as it does where nothing is wrong"
    assert sum(value <= 0.5 for value in values) / len(values) > 0.2


def test_runs_of_one_scenario_alone_do_not_make_a_difference_real_for_others() -> None:
    one_scenario = [[(True, False)] * 30, *[[(True, True)] * 30] * 11]
    (found,) = compared({("a", "b"): one_scenario})
    assert found.p < 0.0001
    assert found.answer == "different here"
    everywhere = [[(True, False), (True, True), (True, True)]] * 12
    (found,) = compared({("a", "b"): everywhere})
    assert found.answer == "different"


def test_many_runs_that_hardly_differ_do_not_tell() -> None:
    runs = [[(True, True)] * 20 for _ in range(100)]
    runs[3] = [(True, False), *[(True, True)] * 19]
    (found,) = compared({("a", "b"): runs})
    assert (found.answer, found.enough) == ("cannot tell", False)


def test_holm_makes_the_smallest_of_many_p_values_the_most_doubtful() -> None:
    values = {("a", "b"): 0.01, ("a", "c"): 0.04, ("a", "d"): 0.03}
    assert holm(values) == pytest.approx({("a", "b"): 0.03, ("a", "d"): 0.06, ("a", "c"): 0.06})


def test_reports_say_the_same_in_the_terminal_and_in_markdown() -> None:
    summary = summary_of(experiment())
    prices = Prices(prompt=Decimal("0.15"), completion=Decimal("0.6"))
    tables = list(evals_tables(summary, prices))
    terminal = "\n".join(line for table in tables for line in table_lines(table))
    markdown = "\n".join(line for table in tables for line in table_markdown(table))
    for table in tables:
        for row in table.rows:
            assert all(cell in terminal and cell.replace("|", "\\|") in markdown for cell in row)
    assert "all rates are assumed: " in terminal
    assert "cost measured" in terminal


def test_every_number_that_a_profile_has_is_among_the_printed_rates() -> None:
    profile = load_profile("ministral-3-8b-instruct")
    rates = {rate["class"]: rate for rate in rates_json(profile)}
    damage = [rates[f"damage: {kind}"] for kind in profile.damage]
    assert sum(rate["rate"] for rate in damage) == pytest.approx(1, abs=1e-5)
    assert len(rates) == len(profile.classes) + len(profile.rates) + len(profile.damage)
    assert [row[0] for row in rates_table(profile).rows] == list(rates)


def test_junit_has_a_case_per_scenario_and_arm_and_fails_those_with_wrong_runs() -> None:
    summary = summary_of(experiment())
    document = JUnitXml.fromstring(evals_junit(summary).encode())
    cases = {(case.classname, case.name): bool(case.result) for suite in document for case in suite}
    assert set(cases) == {(f"evals.{arm}", name) for arm in ("full", "bare") for name in NAMES}
    for (arm, name), failed in cases.items():
        cell = summary.cells[name][arm.removeprefix("evals.")]
        assert failed == (cell.passed < cell.runs)


def test_failures_flow_from_class_to_stage_to_correction_to_the_end_of_the_run() -> None:
    one = replace(
        experiment(FULL), model=failing(FailureClass.EARLY_ANSWER, FailureClass.MALFORMED, rate=0.5)
    )
    outcomes = outcomes_of(one)
    rows = {row.failure: row for row in summarised(one, outcomes).arms[0].flow}
    early = [turn for out in outcomes for turn in out.turns if turn.failure == "early_answer"]
    assert rows["early_answer"].turns == len(early)
    assert sum(count for _, count in rows["early_answer"].nudged) == sum(
        turn.nudged is not None for turn in early
    )
    assert sum(count for _, count in rows["malformed"].rescued) > 0


# -- baselines --------------------------------------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    one = experiment(FULL, model="ministral-3-8b-instruct")
    file = tmp_path / "baseline.json"
    file.write_text(baseline_text(one, outcomes_of(one)))
    return file


def test_a_baseline_holds_where_nothing_changed(kept: Path) -> None:
    one = experiment(FULL, model="ministral-3-8b-instruct")
    held = held_against(read_baseline(kept), one, outcomes_of(one), name="b")
    assert not held.failed
    assert held.lines[-1].endswith("0 of 3 evals pass less often")


def test_a_harness_that_lost_its_nudges_breaks_the_baseline_with_a_seed_and_its_problem(kept: Path) -> None:
    one = experiment(FULL, model="ministral-3-8b-instruct")
    worse = Arm(FULL.name, FULL.parts - {"nudges"})
    held = held_against(read_baseline(kept), one, outcomes_of(replace(one, arms=(worse,))), name="b")
    assert held.failed
    told = "\n".join(held.lines)
    assert " passed before, 0 now; failed now: seeds " in told
    assert re.search(r"^  seed \d: .*did not succeed", told, re.MULTILINE)
    assert "failed that passed before" in held.lines[-1]


def changed(outcomes: Sequence[Outcome], **passed: Collection[int]) -> list[Outcome]:
    """Return runs of which the first eval is right on these seeds of each arm; other evals are as they were."""
    return [
        one._replace(passed=one.seed in passed.get(one.arm, ()) if one.scenario == NAMES[0] else one.passed)
        for one in outcomes
    ]


def held_after(before: list[Outcome], now: list[Outcome], one: Experiment, tmp_path: Path) -> Held:
    file = tmp_path / "baseline.json"
    file.write_text(baseline_text(one, before))
    return held_against(read_baseline(file), one, now, name="b")


def test_what_one_arm_wins_does_not_make_up_for_what_another_loses(tmp_path: Path) -> None:
    one = experiment(FULL, BARE)
    runs = outcomes_of(one)
    before = changed(runs, full=(0, 1, 2))
    held = held_after(before, changed(runs, bare=(0, 1, 2)), one, tmp_path)
    assert held.failed
    assert says(held.lines[0], f"{NAMES[0]} [full]", "3 of 3", "before", "0 now", "seeds 0, 1, 2")
    full, bare = held.lines[-2:]
    assert says(full, "b [full]", "9 runs", "3 failed", "0 passed", "p 0.2500", "1 of 3 evals")
    assert says(bare, "b [bare]", "9 runs", "0 failed", "3 passed", "p 0.2500", "0 of 3 evals")


def test_every_eval_that_is_worse_is_named(tmp_path: Path) -> None:
    twins = tuple(Arm(f"twin{number}", FULL.parts) for number in range(4))
    one = experiment(*twins, seeds=1)
    runs = [run._replace(passed=True) for run in outcomes_of(one)]
    held = held_after(runs, [run._replace(passed=False) for run in runs], one, tmp_path)
    named = "\n".join(held.lines)
    assert all(f"{eval_id} [{arm.name}]" in named for eval_id in NAMES for arm in twins)


def test_what_one_eval_wins_does_not_make_up_for_what_another_loses(tmp_path: Path) -> None:
    one = experiment(FULL)
    right = [run._replace(passed=run.scenario == NAMES[0]) for run in outcomes_of(one)]
    wrong = [run._replace(passed=not run.passed) for run in right]
    held = held_after(right, wrong, one, tmp_path)
    assert held.failed
    assert [line.split(":")[0] for line in held.lines if "failed now" in line] == [f"{NAMES[0]} [full]"]
    assert says(held.lines[-1], "1 of 3 evals", "less often")


def test_an_eval_that_is_right_as_often_on_other_seeds_is_counted_and_passes(tmp_path: Path) -> None:
    one = experiment(FULL)
    runs = outcomes_of(one)
    held = held_after(changed(runs, full=(0, 1)), changed(runs, full=(1, 2)), one, tmp_path)
    assert not held.failed
    [line] = held.lines
    assert says(line, "b [full]", "9 runs", "1 failed", "1 passed", "p 1.0000", "0 of 3 evals")


def test_what_the_baseline_has_and_nobody_ran_is_named_and_fails(tmp_path: Path) -> None:
    one = experiment(FULL, BARE)
    runs = outcomes_of(one)
    less = replace(one, suite=one.suite[1:], arms=(FULL,), seeds=2)
    now = [run for run in runs if run.scenario != NAMES[0] and run.arm == "full" and run.seed < 2]
    file = tmp_path / "baseline.json"
    file.write_text(baseline_text(one, runs))
    before = read_baseline(file)
    held = held_against(before, less, now, name="b")
    assert held.failed
    rows = [f"{name} [{arm}]" for arm in ("full", "bare") for name in NAMES]
    for line, row, made in zip(held.lines[-6:], rows, (0, 2, 2, 0, 0, 0), strict=True):
        assert says(line, "b: ", row, "3 seeds", f"{made} were run", "--eval", "--arms", "--update-baseline")
    part = before.only(arms=["full"], evals=NAMES[1:], seeds=2)
    assert not held_against(part, less, now, name="b").failed
    assert (part.size, before.size) == (4, 18)


def test_a_baseline_of_another_model_or_another_arm_is_refused(kept: Path) -> None:
    before = read_baseline(kept)
    other = experiment(FULL)
    with pytest.raises(BadInput, match=line_with("baseline", "model 'ministral-3-8b-instruct'")):
        held_against(before, other, [], name="b")
    one = experiment(Arm("full", frozenset(["rescue"])), model="ministral-3-8b-instruct")
    with pytest.raises(
        BadInput, match=line_with("'full'", "rescue, nudges", "in the baseline", "expected rescue")
    ):
        held_against(before, one, outcomes_of(one), name="b")


HEAD = f'"schema": "{SCHEMA}", "model": "m", "profile": "p"'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file: Invalid JSON: EOF while parsing a value"),
        ("[]", "the file: Input should be an object"),
        pytest.param("[" * 100_000, "the file: Invalid JSON: recursion limit exceeded", id="deep"),
        pytest.param("9" * 5000, "the file: ", id="long"),
        ("{}", "schema: Field required"),
        ('{"schema": "other"}', f"schema: Input should be '{SCHEMA}'"),
        (f'{{"schema": "{SCHEMA}"}}', "model: Field required"),
        (f'{{{HEAD}, "arms": [], "runs": {{}}}}', "arms: Input should be an object"),
        (
            f'{{{HEAD}, "arms": {{}}, "runs": {{"a": {{"b": 1}}}}}}',
            "runs.a.b: Input should be a valid string",
        ),
        (
            f'{{{HEAD}, "arms": {{}}, "runs": {{"a": {{"b": "12"}}}}}}',
            "runs.a.b: String should match pattern",
        ),
    ],
)
def test_a_file_that_is_no_baseline_is_said_to_be_none_and_what_was_expected(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "b.json"
    file.write_text(text)
    with pytest.raises(BadInput) as refused:
        read_baseline(file)
    assert says(str(refused.value), f"{file}: ", "not a baseline", said, "--update-baseline")


def test_a_baseline_that_cannot_be_read_is_told_in_the_words_of_every_command(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=line_with("none.json: ", "file or folder", "--update-baseline")):
        read_baseline(tmp_path / "none.json")
    (tmp_path / "b.json").write_bytes(b"\xff")
    with pytest.raises(BadInput, match=line_with("b.json:1", "UTF-8", "0xff", "--update-baseline")):
        read_baseline(tmp_path / "b.json")


# -- the command ------------------------------------------------------------------------------------------------


def command(*words: str) -> tuple[int, str, BaseException | None]:
    done = CliRunner().invoke(app, ["evals", *words])
    return done.exit_code, done.output, done.exception


def test_the_command_exits_with_1_when_a_baseline_is_not_held(tmp_path: Path) -> None:
    words = ("run", str(SUITE / "easy.yaml"), "--seeds", "2", "--eval", "weather-now", "--executor", "serial")
    file = tmp_path / "b.json"
    assert command(*words, "--arms", "full", "--update-baseline", str(file))[0] == 0
    assert command(*words, "--arms", "full", "--baseline", str(file))[0] == 0
    told = json.loads(file.read_text())
    told["runs"]["full"] = dict.fromkeys(told["runs"]["full"], "11")
    told["arms"]["no-nudges"], told["runs"]["no-nudges"] = (
        [p for p in PARTS if p != "nudges"],
        told["runs"]["full"],
    )
    file.write_text(json.dumps(told))
    code, said, _ = command(*words, "--arms", "no-nudges", "--baseline", str(file))
    assert code == 1
    assert says(said, "2 of 2", "before", "0 now", "seeds 0, 1")


def test_evals_that_are_gone_fail_the_command_and_those_that_were_not_asked_for_do_not(
    tmp_path: Path,
) -> None:
    file, evals = tmp_path / "b.json", tmp_path / "evals.yaml"
    two = GOOD + GOOD.removeprefix("evals:\n").replace("id: one", "id: two")
    evals.write_text(two)
    words = ("run", str(evals), "--arms", "bare", "--executor", "serial")
    assert command(*words, "--seeds", "2", "--update-baseline", str(file))[0] == 0
    code, said, _ = command(*words, "--seeds", "2", "--eval", "two", "--baseline", str(file))
    assert code == 0
    assert says(said.splitlines()[-1], f"{file}: ", "2 of its 4 runs")
    code, said, _ = command(*words, "--seeds", "1", "--baseline", str(file))
    assert code == 1
    assert says(said, f"{file}: ", "one [bare]", "2 seeds", "1 were run")
    evals.write_text(GOOD)
    code, said, _ = command(*words, "--seeds", "2", "--baseline", str(file))
    assert code == 1
    assert says(said, f"{file}: ", "two [bare]", "2 seeds", "0 were run")


@table_test(
    ("words", "said"),
    [
        (["--arms", "resque"], "'resque' is not a part"),
        (["--model", "gpt-9"], "unknown profile 'gpt-9'"),
        (["--seeds", "0"], "expected 1 or more"),
        (["--price", "cheap"], "expected two amounts in US dollars"),
        (["--price", "nan:1"], "expected two amounts in US dollars"),
        (["--price", "0.15"], "expected two amounts in US dollars"),
        (["--baseline", "/nowhere/b.json"], "no such file or folder"),
        (["--executor", "abacus"], "expected serial"),
    ],
)
def test_what_a_person_wrote_wrong_is_said_before_anything_runs(words: list[str], said: str) -> None:
    code, _, error = command("run", str(SUITE / "easy.yaml"), "--seeds", "1", *words)
    assert code != 0
    assert isinstance(error, BadInput)
    assert said in str(error)


def test_the_schema_is_published_by_a_command() -> None:
    code, said, _ = command("schema")
    assert code == 0
    assert json.loads(said) == schema_named("evals")
