"""The plugin's evals part, registered only in runs that check evals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from pytest_statek.chosen_options import ChosenOptions
from pytest_statek.evals_collect import EvalsNode, evals_node, evals_nodes
from pytest_statek.evals_items import RUNS, ModelRuns, ScriptRuns
from pytest_statek.nodes import AddedNodes
from pytest_statek.options import BUILT_IN, SCENARIO_SUFFIXES
from statek_sim.errors import BadInput
from statek_sim.evals.arms import Arm, parse_arms
from statek_sim.evals.baseline import Baseline, read_baseline, refuse_another
from statek_sim.evals.profile import Profile, load_profile
from statek_sim.evals.suite import EVALS, load_paths
from statek_sim.gate.evals_policy import EvalsPolicy, read_evals_policy
from statek_sim.scenario.files import find_files, is_eval_file
from statek_sim.suite.run import builtin_suites

SEEDS: Final = 3
"""The default number of seeds per script, as in `statek-sim evals check`."""
MOST: Final = 1000
"""The maximum number of seeds."""
_YOUR_OWN: Final = "for your own evals, use --statek-evals=PATH with a .yaml file or a folder"


def pytest_configure(config: pytest.Config) -> None:
    """Check the options and register the evals collector."""
    options = ChosenOptions(config, "evals")
    try:
        files = _files(options.names)
        runs = config.stash[RUNS] = _runs(options)
    except BadInput as error:
        raise pytest.UsageError(f"statek: {error}") from None
    nodes = partial(evals_nodes, files=files, runs=runs)
    config.pluginmanager.register(AddedNodes(nodes, alone=options.alone), "statek-evals-collection")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Return a header line with the evals' model, and the baseline or policy."""
    runs = config.stash[RUNS]
    if isinstance(runs, ScriptRuns):
        return []
    arms = ", ".join(dict.fromkeys(arm.name for arm in (*runs.arms, *runs.rule_arms)))
    seeds = "" if runs.seeds is None else f" on seeds below {runs.seeds}"
    held = [] if runs.baseline is None else [f"compared with {runs.baseline_file}"]
    judged = [] if runs.policy is None else [f"checked against {runs.policy.path}"]
    return [f"statek evals: {runs.profile.name} in arms {arms}{seeds}, {' and '.join([*held, *judged])}"]


def _runs_of(config: pytest.Config) -> ScriptRuns | ModelRuns:
    """Return this run's evals settings; raises `CollectError` for invalid keys in the configuration file."""
    if RUNS not in config.stash:
        try:
            config.stash[RUNS] = _runs(ChosenOptions(config, "evals"))
        except BadInput as error:
            raise pytest.Collector.CollectError(f"statek: {error}") from None
    return config.stash[RUNS]


def named_evals(parent: pytest.Collector, path: Path, file: Path) -> EvalsNode:
    """Return the node for an eval file passed as a pytest argument, such as a node id."""
    return evals_node(parent, path, file, load_paths([file]), _runs_of(parent.config))


def _runs(options: ChosenOptions) -> ScriptRuns | ModelRuns:
    seeds, model = _seeds(options.text("seeds")), options.name("model")
    baseline, policy, arms = options.path("baseline"), options.path("policy"), options.texts("arm")
    if model is None:
        for option, value in {"baseline": baseline, "policy": policy, "arm": arms}.items():
            if value:
                raise BadInput(f"statek_evals_{option} requires statek_evals_model")
        return ScriptRuns(seeds=seeds or SEEDS)
    profile = load_profile(model)
    if baseline is None and policy is None:
        raise BadInput(
            f"statek_evals_model = {model}: requires statek_evals_policy or statek_evals_baseline, because a weak "
            "model sometimes fails; write a baseline with "
            f"`statek-sim evals run --model {model} --arms full --update-baseline FILE`"
        )
    before, known_arms = (None, ()) if baseline is None else _baseline(baseline, arms, profile)
    rules = None if policy is None else read_evals_policy(Path(policy))
    return ModelRuns(
        model=model,
        profile=profile,
        arms=known_arms,
        seeds=seeds,
        baseline=before,
        baseline_file=baseline or "",
        policy=rules,
        rule_arms=() if rules is None else _rule_arms(rules, arms),
    )


def _baseline(name: str, wanted: Sequence[str], profile: Profile) -> tuple[Baseline, tuple[Arm, ...]]:
    """Return a baseline and the arms to compare with it: the `wanted` arms, or else all arms in the baseline."""
    before = read_baseline(Path(name))
    if not before.arms:
        raise BadInput(f"{name}: the baseline contains no arms; rewrite it with --update-baseline")
    arms = parse_arms(wanted or before.arms, said_by="statek_evals_arm")
    refuse_another(before, profile, arms, name=name)
    missing = [arm.name for arm in arms if arm.name not in before.arms]
    if missing:
        known = ", ".join(before.arms) or "none"
        raise BadInput(f"statek_evals_arm = {missing[0]}: {name} has no such arm; expected one of {known}")
    return before, arms


def _rule_arms(policy: EvalsPolicy, wanted: Sequence[str]) -> tuple[Arm, ...]:
    """Return the arms for a policy's rules: the requested arms, or else the arms named in the rules."""
    if wanted:
        return parse_arms(wanted, said_by="statek_evals_arm")
    named = dict.fromkeys(rule.arm for rule, _ in policy.rules)
    return parse_arms(list(named), said_by=f"{policy.path}: arm")


def _seeds(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or not 1 <= int(text) <= MOST:
        raise BadInput(f"statek_evals_seeds = {text}: expected a whole number from 1 to {MOST}")
    return int(text)


def _files(names: Sequence[str]) -> tuple[Path, ...]:
    """Return the eval files at these paths; raises `BadInput` for a path without evals, such as a test file."""
    files: dict[Path, None] = {}
    for text in names:
        path = builtin_suites() / EVALS if text == BUILT_IN else Path(text)
        file, colons, name = text.partition("::")
        if colons and file.endswith(SCENARIO_SUFFIXES):
            raise BadInput(
                f"--statek-evals={text}: expected a file or a folder; to run one eval: `pytest {file}::{name}`"
            )
        own, problems = find_files([path])
        evals = [file for file in own if is_eval_file(file)]
        if not evals:
            reason = "; ".join(problem.message for problem in problems) or "no evals"
            raise BadInput(
                f"--statek-evals={text}: {reason}; {_YOUR_OWN}; to check the built-in evals with these tests, "
                f"write `pytest {text} --statek-evals`"
            )
        files |= dict.fromkeys(evals)
    return tuple(files)
