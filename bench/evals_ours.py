"""Our side of `bench.evals`: the same work in our loop with a harness, with a simulated model that never fails.

`python -m bench.evals_ours WHAT RUNS` prints seconds: CPU time for `shape`, or wall time for `suite`, which runs the
built-in evals in eight arms with this many seeds on two processes.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter, process_time
from typing import Final

from statek_sim.agent.effects import Parts
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.reliability import rescued
from statek_sim.agent.replies.nudges import LIMIT
from statek_sim.agent.step_enforcement import Step, StepPlan
from statek_sim.agent.tools.tool import Tool
from statek_sim.evals.arms import ablation, parse_arms
from statek_sim.evals.experiment import Experiment, run_experiment
from statek_sim.evals.ideal_plan import PlannedCall
from statek_sim.evals.model_simulator import SimulatedModel
from statek_sim.evals.outcome import Called
from statek_sim.evals.profile import Profile, load_profile
from statek_sim.evals.suite import load_suite
from statek_sim.executors.executor import ProcessExecutor
from statek_sim.suite.run import builtin_suites
from statek_sim.values import JSON

SHAPE: Final = "steps"
REQUESTS: Final = 5
SCHEMA: Final[dict[str, JSON]] = {
    "type": "object",
    "properties": {"value": {"type": "string", "description": "What the call before gave."}},
    "required": ["value"],
    "additionalProperties": False,
}
EVALS = 30
ARMS = 8


class StepsTask:
    """A run's work, as in `bench.evals_forge`: each step takes the previous result, and the answer is the last one."""

    eval_id = SHAPE

    def __init__(self, word: str) -> None:
        self.word = word
        self.steps = tuple(f"step_{number}" for number in range(1, REQUESTS))
        self.tools: Sequence[Tool] = [
            Tool(name=name, description=f"Do {name}.", parameters=SCHEMA, run=partial(after, name))
            for name in self.steps
        ]

    def right(self, seen: Sequence[Called]) -> Sequence[PlannedCall] | str:
        """Return the next unanswered call whose value is known, or the answer after the last call."""
        value = self.word
        given = {
            (call.name, str(call.arguments.get("value"))): call.result for call in seen if call.error is None
        }
        for name in self.steps:
            result = given.get((name, value))
            if result is None:
                return [PlannedCall(name, {"value": value})]
            value = result
        return value

    def steps_after(self, tool: str) -> Sequence[str]:
        """Return the steps after a tool."""
        at = self.steps.index(tool) if tool in self.steps else len(self.steps)
        return self.steps[at + 1 :]


def after(name: str, value: str) -> str:
    """Return a step's result for a value."""
    return (
        f"value {int(hashlib.blake2b(f'{name}/{value}'.encode(), digest_size=4).hexdigest(), 16) % 10**8:08d}"
    )


def _one_run(seed: int, profile: Profile) -> None:
    task = StepsTask(f"word-{seed}")
    agent = AgentHarness(
        SimulatedModel(profile, seed, task, tier="medium"),
        tools=task.tools,
        steps=StepPlan(steps=tuple(Step(tool=name) for name in task.steps)),
        max_iterations=15,
        nudges=LIMIT,
        parts=Parts(reader=rescued),
    )
    run = agent.run(f"Begin with {task.word!r} and tell the last value.")
    if run.stop != "final":
        raise SystemExit(f"run {seed} ended by {run.stop}, expected an answer")


def _shape(runs: int) -> float:
    profile = replace(load_profile("gemma-4-31b-it"), scenarios={SHAPE: {}})
    started = process_time()
    for seed in range(runs):
        _one_run(seed, profile)
    return process_time() - started


def _suite(seeds: int) -> float:
    arms = (*ablation(), *parse_arms(["rescue+nudges"]))
    suite = load_suite([builtin_suites() / "evals"])[:EVALS]
    experiment = Experiment(
        suite=suite, model=load_profile("ministral-3-8b-instruct"), arms=arms, seeds=seeds
    )
    if (len(suite), len(arms)) != (EVALS, ARMS):
        raise SystemExit(f"{len(suite)} evals in {len(arms)} arms, expected {EVALS} in {ARMS}")
    started = perf_counter()
    with ProcessExecutor(2) as executor:
        done = len(run_experiment(experiment, executor))
    if done != experiment.runs:
        raise SystemExit(f"{done} runs came back, expected {experiment.runs}")
    return perf_counter() - started


if __name__ == "__main__":
    what, count = sys.argv[1], int(sys.argv[2])
    if what == "shape":
        _shape(5)
        print(_shape(count))
    else:
        print(_suite(count))
