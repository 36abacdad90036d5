"""Options of evals. Loaded in every pytest run, so it imports nothing but pytest and what is loaded already."""

from __future__ import annotations

from typing import Final

import pytest

from pytest_statek.options import BUILT_IN, SCENARIO_SUFFIXES
from pytest_statek.said import Said

PLUGIN: Final = "pytest_statek.evals"
"""The module that does the work, for runs with evals."""


def add_evals_options(parser: pytest.Parser) -> None:
    """Declare the options and ini keys of evals."""
    group = parser.getgroup("statek", "STATEK agents: scenario suites and fixtures")
    group.addoption(
        "--statek-evals",
        action="append",
        nargs="?",
        const=BUILT_IN,
        default=[],
        metavar="PATH",
        help="check the built-in evals, or with =PATH those in that file or folder (repeatable), an item each: the "
        "ideal script has to pass, the wrong ones have to fail. Added to the tests whose paths are given; without any "
        "path, only evals, scenarios and gates run",
    )
    group.addoption(
        "--statek-evals-model",
        metavar="PROFILE",
        help="let this simulated model work on them instead, an item per eval and arm: a shipped profile or a .toml "
        "file; needs --statek-evals-baseline or --statek-evals-policy",
    )
    group.addoption(
        "--statek-evals-baseline",
        metavar="FILE",
        help="fail where fewer runs are right than in this baseline of `statek-sim evals run --update-baseline`",
    )
    group.addoption(
        "--statek-evals-policy",
        metavar="FILE",
        help="what is demanded of the model's runs, as `statek-sim evals run --policy` has it: an item per rule",
    )
    group.addoption(
        "--statek-evals-seeds",
        metavar="N",
        help="how many seeds, from 0: of scripts 3 where nothing is said, of a model all that the baseline has, "
        "or 10 without one",
    )
    group.addoption(
        "--statek-evals-arm",
        action="append",
        default=[],
        metavar="NAME",
        help="parts of the harness that the model works under, as `statek-sim evals run --arms` has them "
        "(repeatable); none: all arms of the baseline, and of each rule its own",
    )
    parser.addini("statek_evals", "as --statek-evals, one per line: when no path is given", type="linelist")
    parser.addini("statek_evals_model", "as --statek-evals-model")
    parser.addini("statek_evals_baseline", "as --statek-evals-baseline")
    parser.addini("statek_evals_policy", "as --statek-evals-policy")
    parser.addini("statek_evals_seeds", "as --statek-evals-seeds")
    parser.addini("statek_evals_arm", "as --statek-evals-arm, one per line", type="linelist")


def evals_are_wanted(config: pytest.Config) -> bool:
    """Whether a run has evals, or says how without saying which."""
    return EvalsRequested(config).wanted


class EvalsRequested:
    """What was asked for: key by key the command line's, or else the configuration file's. Read, not yet checked.

    `alone`: nothing but what this plugin collects is to run. `named`: there are arguments that may be files of evals.
    """

    # A plain class, as `Requested` is.
    __slots__ = ("alone", "arms", "baseline", "model", "named", "paths", "policy", "seeds", "wanted")

    def __init__(self, config: pytest.Config) -> None:
        options = Said(config, "evals")
        self.wanted = options.wanted("model", "baseline", "policy", "seeds", "arm")
        self.alone = options.alone
        self.named = any(path.partition("::")[0].endswith(SCENARIO_SUFFIXES) for path in options.given)
        self.paths = options.names
        self.model = options.name("model")
        self.baseline = options.path("baseline")
        self.policy = options.path("policy")
        self.seeds = options.text("seeds")
        self.arms = options.texts("arm")
