"""The evals' part of the plugin; registered only in runs that have some."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from pytest_statek.evals_collect import EvalsCollection, EvalsNode, evals_node
from pytest_statek.evals_items import RUNS, ModelRuns, ScriptRuns
from pytest_statek.evals_options import EvalsRequested
from pytest_statek.options import BUILT_IN, SCENARIO_SUFFIXES
from statek_sim.errors import BadInput
from statek_sim.evals.arms import parse_arms
from statek_sim.evals.baseline import read_baseline, refuse_another
from statek_sim.evals.models.profile_file import load_profile
from statek_sim.evals.suite import EVALS, load_paths
from statek_sim.scenario.files import find_files, is_eval_file
from statek_sim.suite.run import builtin_suites

SEEDS: Final = 3
"""Seeds of scripts where nobody says how many, as `statek-sim evals check` has it."""
MOST: Final = 1000
"""Seeds at most."""
_YOUR_OWN: Final = "evals of your own are --statek-evals=PATH, a .yaml file or a folder with some"


def pytest_configure(config: pytest.Config) -> None:
    """Check the options; register what collects evals."""
    requested = EvalsRequested(config)
    try:
        files = _files(requested)
        runs = config.stash[RUNS] = _runs(requested)
    except BadInput as error:
        raise pytest.UsageError(f"statek: {error}") from None
    config.pluginmanager.register(
        EvalsCollection(files, runs, alone=requested.alone), "statek-evals-collection"
    )


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say which model works on the evals, and what it is held against."""
    runs = config.stash[RUNS]
    if isinstance(runs, ScriptRuns):
        return []
    arms = ", ".join(arm.name for arm in runs.arms)
    seeds = "" if runs.seeds is None else f" on seeds below {runs.seeds}"
    return [f"statek evals: {runs.profile.name} in the arms {arms}{seeds}, held against {runs.baseline_file}"]


def _runs_of(config: pytest.Config) -> ScriptRuns | ModelRuns:
    """Return how evals are run, whether or not any were asked for by an option; `CollectError` for ini keys."""
    if RUNS not in config.stash:
        try:
            config.stash[RUNS] = _runs(EvalsRequested(config))
        except BadInput as error:
            raise pytest.Collector.CollectError(f"statek: {error}") from None
    return config.stash[RUNS]


def named_evals(parent: pytest.Collector, path: Path, file: Path) -> EvalsNode:
    """Return the node of a file of evals that is an argument of pytest's own, as node ids are."""
    return evals_node(parent, path, file, load_paths([file]), _runs_of(parent.config))


def _runs(requested: EvalsRequested) -> ScriptRuns | ModelRuns:
    seeds = _seeds(requested.seeds)
    if requested.model is None:
        for option, value in (("baseline", requested.baseline), ("arm", requested.arms)):
            if value:
                raise BadInput(f"--statek-evals-{option}: whose runs? Say --statek-evals-model=PROFILE too")
        return ScriptRuns(seeds=seeds or SEEDS)
    return _model_runs(requested, requested.model, seeds)


def _model_runs(requested: EvalsRequested, model: str, seeds: int | None) -> ModelRuns:
    profile = load_profile(model)
    if requested.baseline is None:
        raise BadInput(
            f"--statek-evals-model={model}: a weak model is wrong at times, so that its runs fail against a baseline "
            f"only; say --statek-evals-baseline=FILE too, and write it by `statek-sim evals run --model {model} "
            "--arms full --update-baseline FILE`"
        )
    before = read_baseline(Path(requested.baseline))
    if not before.parts:
        raise BadInput(f"{requested.baseline}: it has no arms; write it again with --update-baseline")
    arms = parse_arms(requested.arms or before.parts, said_by="--statek-evals-arm")
    refuse_another(before, profile, arms, name=requested.baseline)
    missing = [arm.name for arm in arms if arm.name not in before.parts]
    if missing:
        known = ", ".join(before.parts) or "none"
        raise BadInput(
            f"--statek-evals-arm={missing[0]}: {requested.baseline} has no such arm; expected one of {known}"
        )
    return ModelRuns(
        model=model,
        profile=profile,
        arms=arms,
        seeds=seeds,
        baseline=before,
        baseline_file=requested.baseline,
    )


def _seeds(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or not 1 <= int(text) <= MOST:
        raise BadInput(f"--statek-evals-seeds={text}: expected a whole number from 1 to {MOST}")
    return int(text)


def _files(requested: EvalsRequested) -> tuple[Path, ...]:
    """Return the files of evals; a path without any is refused, since the option may have taken a test's."""
    if not requested.paths and not requested.named:
        raise BadInput("which evals? Say --statek-evals too, or --statek-evals=PATH")
    files: dict[Path, None] = {}
    for text in requested.paths:
        path = builtin_suites() / EVALS if text == BUILT_IN else Path(text)
        file, names, name = text.partition("::")
        if names and file.endswith(SCENARIO_SUFFIXES):
            raise BadInput(
                f"--statek-evals={text}: expected a file or a folder; one eval: `pytest {file}::{name}`"
            )
        own, problems = find_files([path])
        evals = [file for file in own if is_eval_file(file)]
        if not evals:
            reason = "; ".join(problem.message for problem in problems) or "there are no evals in it"
            raise BadInput(
                f"--statek-evals={text}: {reason}; {_YOUR_OWN}; to check the built-in ones beside the tests there, "
                f"write `pytest {text} --statek-evals`"
            )
        files |= dict.fromkeys(evals)
    return tuple(files)
