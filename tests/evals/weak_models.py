"""Profiles for tests: a model that never fails, and one that fails in one way."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from statek_sim.evals.ideal_plan import Plan, PlannedCall
from statek_sim.evals.outcome import Called, FailureClass
from statek_sim.evals.players import Agent, Assignment
from statek_sim.evals.profile import HEEDS, Profile, load_profile
from statek_sim.evals.scenario import EvalScenario
from statek_sim.evals.suite import load_suite
from statek_sim.evals.world import ToolError

SUITE = Path(__file__).parents[2] / "scenarios" / "evals"


@cache
def suite() -> tuple[EvalScenario, ...]:
    """Return the built-in evals."""
    return load_suite([SUITE])


def eval_named(name: str) -> EvalScenario:
    """Return one of them."""
    return next(one for one in suite() if one.id == name)


def failing(*names: FailureClass, rate: float = 1.0, heeds: float = 1.0, damage: str = "fence") -> Profile:
    """Return a model that fails in these ways with this propensity everywhere, and in no other."""
    base = load_profile("gemma-4-31b-it")
    shares = dict.fromkeys(names, rate)
    return base.model_copy(
        update={
            "name": f"failing {', '.join(names)}",
            "rates": {**base.rates, HEEDS: heeds},
            "damage": {damage: 1.0},
            "scenarios": {one.id: shares for one in suite()},
        }
    )


def flawless() -> Profile:
    """Return a model that never fails."""
    return failing()


def follower(plan: Plan) -> Agent:
    """Return an agent that does what a plan says by calling the tools it is given, without any harness."""

    def work(job: Assignment) -> str:
        seen: list[Called] = []
        while not isinstance(step := plan.next(seen), str):
            seen += [_called(job, call) for call in step]
        return step

    return work


def _called(job: Assignment, call: PlannedCall) -> Called:
    try:
        result = job.tools[call.name](**call.arguments)
    except ToolError as error:
        return Called(name=call.name, arguments=call.arguments, error=str(error))
    return Called(name=call.name, arguments=call.arguments, result=result)
