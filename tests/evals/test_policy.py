"""A team's demands on a harness: rules in a file, each kept or broken, and none that could not fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from statek_sim.cli.app import app, load_commands
from statek_sim.errors import BadInput, BadPolicy
from statek_sim.evals.arms import parse_arms
from statek_sim.evals.experiment import Experiment, run_experiment
from statek_sim.evals.outcome import FailureClass
from statek_sim.executors.executor import SerialExecutor
from statek_sim.gate.evals_policy import EvalsVerdict, judge_evals, read_evals_policy
from tests.evals.weak_models import SUITE, eval_named, failing, flawless
from tests.says import line_with, says

load_commands()

EVALS = (
    "weather-now",
    "convert-money",
    "price-of-one-part",
    "two-of-one-name",
    "file-a-ticket",
    "move-one-file",
)
"""As many as an interval over scenarios takes."""


def policy(folder: Path, *rules: str) -> Path:
    path = folder / "policy.toml"
    path.write_text("version = 1\n" + "".join(f"\n[[rule]]\n{rule}\n" for rule in rules))
    return path


def judged(path: Path, *, rate: float = 1.0) -> tuple[EvalsVerdict, ...]:
    """Judge a model that answers too early so often; bare, nothing corrects it."""
    model = failing(FailureClass.EARLY_ANSWER, rate=rate) if rate else flawless()
    suite = tuple(map(eval_named, EVALS))
    experiment = Experiment(suite=suite, model=model, arms=parse_arms(["bare"]), seeds=2)
    return judge_evals(read_evals_policy(path), experiment, run_experiment(experiment, SerialExecutor()))


@pytest.mark.parametrize(
    ("demand", "facts"),
    [
        ("right_percent = 1", ("0.0 %", "12 runs", "1 % or more")),
        ("right_surely_percent = 1", ("0.0 %", "lower bound", "12 runs", "1 % or more")),
        ("each_right_percent = 1", ("0.0 %", "weather-now", "2 runs", "1 % or more")),
        ("measured_tokens = 1", ("measured tokens per run", "1 or fewer")),
    ],
)
def test_a_demand_that_is_not_met_names_its_rule_and_what_was_found(
    tmp_path: Path, demand: str, facts: tuple[str, ...]
) -> None:
    path = policy(tmp_path, f'name = "work is done"\narm = "bare"\n{demand}')
    (verdict,) = judged(path)
    assert not verdict.passed
    assert says(verdict.lines[0], f"{path}:3", "'work is done'", "[bare]", *facts)


def test_a_model_that_never_fails_keeps_every_demand(tmp_path: Path) -> None:
    demands = (
        "right_percent = 100\nright_surely_percent = 100\neach_right_percent = 100\ncompleted_percent = 100"
    )
    path = policy(
        tmp_path, f'name = "all"\narm = "bare"\n{demands}\nwasted_calls = 0\nmeasured_tokens = 5000'
    )
    assert [(one.passed, one.lines) for one in judged(path, rate=0)] == [(True, ())]


def test_a_rule_judges_what_it_selects_alone(tmp_path: Path) -> None:
    one = 'name = "one"\narm = "bare"\nselect = {evals = ["convert-money"]}\neach_right_percent = 1'
    (verdict,) = judged(policy(tmp_path, one))
    assert len(verdict.lines) == 1
    assert "of convert-money right" in verdict.lines[0]


@pytest.mark.parametrize(
    ("rule", "facts"),
    [
        ('name = "a"\narm = "bare"', ":3:; 'a'; no; requirement; right_percent"),
        ('name = "a"\nright_percnt = 3', "key 'right_percnt' in rule[0]; 'right_percent'?"),
        ('name = "a"\nright_percent = 101', "at most 100; got 101"),
        ('name = "a"\nright_percent = 1', "arm 'full' is not run; expected one of bare; --arms"),
        ('name = "a"\narm = "bare"\nselect = {tiers = ["hrad"]}\nright_percent = 1', "none of the 6 evals"),
        (
            'name = "a"\narm = "bare"\nselect = {evals = ["weather-now"]}\nright_surely_percent = 1',
            ":3: ; 'a'; right_surely_percent; 6 or more evals; found 1",
        ),
    ],
)
def test_a_rule_that_could_not_fail_or_cannot_be_read_is_refused(
    tmp_path: Path, rule: str, facts: str
) -> None:
    with pytest.raises(BadPolicy, match=line_with(*facts.split("; "))):
        judged(policy(tmp_path, rule))


def test_two_rules_of_one_name_are_refused(tmp_path: Path) -> None:
    rule = 'name = "a"\narm = "bare"\nright_percent = 1'
    with pytest.raises(BadPolicy, match=r":9: rule 'a': duplicate name$"):
        judged(policy(tmp_path, rule, rule))


def test_the_command_exits_with_1_when_a_rule_is_broken(tmp_path: Path) -> None:
    words = ["evals", "run", str(SUITE / "easy.yaml"), "--eval", "weather-now", "--seeds", "1"]
    words += ["--arms", "full", "--executor", "serial", "--policy"]
    kept = CliRunner().invoke(app, [*words, str(policy(tmp_path, 'name = "a"\nright_percent = 0'))])
    assert (kept.exit_code, kept.output.splitlines()[-1].endswith("1 of 1 rules met")) == (0, True)
    broken = CliRunner().invoke(app, [*words, str(policy(tmp_path, 'name = "a"\nmeasured_tokens = 1'))])
    assert broken.exit_code == 1
    assert "expected 1 or fewer" in broken.output
    refused = CliRunner().invoke(app, [*words, str(tmp_path / "nothing.toml")])
    assert isinstance(refused.exception, BadInput)
