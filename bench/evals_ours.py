"""Our side of `bench.evals`: the same shape in our loop with a harness, driven by a simulated model that never fails.

`python -m bench.evals_ours WHAT RUNS` prints seconds: of the process's own time for `shape`, or that pass for `suite`,
which runs the built-in evals in eight arms with so many seeds on two processes.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from time import perf_counter, process_time

from statek_sim.evals.arms import ablation, parse_arms
from statek_sim.evals.experiment import Experiment, run_experiment
from statek_sim.evals.models.profile import Profile
from statek_sim.evals.models.profile_file import load_profile
from statek_sim.evals.published.forge import published
from statek_sim.evals.published.shapes import played
from statek_sim.evals.suite import load_suite
from statek_sim.executors.processes import ProcessExecutor
from statek_sim.suite.run import builtin_suites

SCENARIO = "data_gap_recovery"
EVALS = 30
ARMS = 8


def _flawless() -> Profile:
    return replace(load_profile("gemma-4-31b-it"), scenarios={SCENARIO: {}})


def _shape(runs: int) -> float:
    scenario = next(candidate for candidate in published()[0].scenarios if candidate.name == SCENARIO)
    profile = _flawless()
    started = process_time()
    for seed in range(runs):
        if played(scenario, seed, profile, harness=True) != (True, True):
            raise SystemExit(f"run {seed} did not submit the right value")
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
