"""The shipped evals: done well they pass, done wrong they fail, whatever the seed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from statek_sim.agent.effects import Question
from statek_sim.agent.harness import AgentHarness
from statek_sim.evals.experiment import context_settings
from statek_sim.evals.players import MODEL, planned, played
from statek_sim.evals.scenario import EvalScenario
from statek_sim.evals.suite import load_suite
from statek_sim.evals.verdict import judge
from statek_sim.trace import Compacted
from tests.evals.check_ablation import check_ablations, relaxations, wrong_runs

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
    assert len(scenario.wrong) >= 2
    for seed in SEEDS:
        for wrong in scenario.wrong:
            instance = scenario.instance(seed)
            verdict = judge(instance, played(instance, instance.plan_of(wrong.id)))
            assert not verdict.passed, wrong.id
            assert verdict.problems, wrong.id


@each_eval
def test_no_forged_record_passes(scenario: EvalScenario) -> None:
    runs = [run for run in wrong_runs(scenario, 0) if run.forged]
    passed = [run.name for run in runs if judge(run.instance, run.record).passed]
    # What may be made in any order, or oftener than it has to be, is no forgery.
    assert [
        name for name in passed if not name.startswith(("the calls in the opposite order", "once less"))
    ] == []
    assert len(runs) > len(scenario.check.cites)


@pytest.mark.slow
@each_eval
def test_every_demand_is_broken_by_something(scenario: EvalScenario) -> None:
    idle = [worth.demand for worth in check_ablations(scenario, SEEDS) if not worth.broken]
    assert idle == []


def test_nearly_every_demand_is_needed_by_itself() -> None:
    found = [worth for one in SUITE[::6] for worth in check_ablations(one, [0])]
    assert len([worth for worth in found if worth.needed]) >= 0.9 * len(found)


def test_a_check_is_taken_apart_into_its_demands() -> None:
    weather = next(one for one in SUITE if one.id == "weather-now")
    assert [one.demand for one in relaxations(weather)] == [
        "calls[0]",
        "calls[0].with.city",
        "cites[0]",
        "cites[1]",
        "cites[2]",
        "avoids[0]",
        "cites[0]: was shown",
        "cites[1]: was shown",
        "cites[2]: was shown",
    ]


def test_the_suite_has_what_it_is_meant_to_have() -> None:
    assert len(SUITE) >= 30
    assert {one.tier for one in SUITE} == {"easy", "medium", "hard"}
    assert {
        "single-call", "data-flow", "order", "recovery", "long-context", "distractors", "parallel-calls", "refusal",
        "approval", "poisoned-result",
    } <= {one.capability for one in SUITE}  # fmt: skip
    assert [one.id for one in SUITE if one.source is not None and "document 004" in one.source] == [
        "weather-now",
        "recover-from-api-error",
        "search-then-summarise",
    ]


@each_eval
def test_worlds_differ_by_seed_and_are_the_same_for_one(scenario: EvalScenario) -> None:
    shown = [_shown(scenario, seed) for seed in range(6)]
    assert len(set(shown)) >= 2
    assert _shown(scenario, 3) == shown[3]


def _shown(scenario: EvalScenario, seed: int) -> str:
    instance = scenario.instance(seed)
    return repr((instance.task, instance.world.before, instance.demands))


@each_eval
def test_a_memorised_answer_passes_no_other_seed(scenario: EvalScenario) -> None:
    memorised = [played(scenario.instance(seed)) for seed in (0, 1)]
    for seed in (2, 3):
        instance = scenario.instance(seed)
        verdict = judge(instance, instance.world.record(memorised[seed % 2].answer, "final"))
        assert not verdict.passed


@pytest.mark.parametrize(
    "scenario", [pytest.param(one, id=one.id) for one in SUITE if one.context is not None]
)
def test_an_ideal_model_passes_within_the_context_that_the_eval_gives(scenario: EvalScenario) -> None:
    """It is too little for everything that is read, and enough for what has to be known."""
    assert scenario.context is not None
    instance = scenario.instance(0)
    provider = planned(instance.plan)
    harness = AgentHarness(
        provider,
        tools=instance.tools,
        model=MODEL,
        max_iterations=scenario.max_iterations,
        context=context_settings(scenario.context),
    )
    run = harness.run(instance.task)
    assert judge(instance, instance.world.record(run.answer, str(run.stop))).problems == ()
    assert any(isinstance(event, Compacted) for event in harness.trace.events)


@pytest.mark.slow
def test_worlds_are_the_same_whatever_the_hash_seed() -> None:
    code = (
        "from statek_sim.evals.suite import load_suite\n"
        f"for one in load_suite([{str(FOLDER)!r}]):\n"
        "    i = one.instance(7)\n"
        "    print(i.task, i.world.before, i.demands)\n"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1


def test_a_person_answers_only_the_questions_of_approvals() -> None:
    (scenario, *_) = (one for one in SUITE if one.capability == "approval")
    person = scenario.instance(0).approving()
    assert person is not None
    message = r"^no entry in `approvals` asks 'Why\?'; in an eval, the person answers only those questions$"
    with pytest.raises(LookupError, match=message):
        person.person(Question(token="q-1", job="main", tool="ask_person", text="Why?"))
