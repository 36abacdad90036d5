"""The shipped evals: done well they pass, done wrong they fail, whatever the seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.evals.ideal import played
from statek_sim.evals.judge import judge
from statek_sim.evals.scenario import EvalScenario
from statek_sim.evals.suite import load_suite

FOLDER = Path(__file__).parents[2] / "scenarios" / "evals"
SUITE = load_suite([FOLDER])
SEEDS = (0, 1, 2)

each_eval = pytest.mark.parametrize("scenario", [pytest.param(one, id=one.id) for one in SUITE])


@each_eval
def test_an_ideal_model_passes_on_every_seed(scenario: EvalScenario) -> None:
    for seed in SEEDS:
        instance = scenario.instance(seed)
        verdict = judge(instance, played(instance))
        assert verdict.problems == ()
        assert (verdict.completed, verdict.score, verdict.passed) == (True, 1.0, True)


@each_eval
def test_every_wrong_script_fails_on_every_seed(scenario: EvalScenario) -> None:
    assert len(scenario.text.wrong) >= 2
    for seed in SEEDS:
        for wrong in scenario.text.wrong:
            instance = scenario.instance(seed)
            verdict = judge(instance, played(instance, instance.plan_of(wrong.id)))
            assert not verdict.passed, wrong.id
            assert verdict.problems, wrong.id
