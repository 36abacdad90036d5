"""Options of evals. Loaded in every pytest run, so it imports nothing but pytest and what is loaded already."""

from __future__ import annotations

from typing import Final

import pytest

from pytest_statek.gate_options import found, path_from
from pytest_statek.options import BUILT_IN, SCENARIO_SUFFIXES

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
        "file; needs --statek-evals-baseline",
    )
    group.addoption(
        "--statek-evals-baseline",
        metavar="FILE",
        help="fail where fewer runs are right than in this baseline of `statek-sim evals run --update-baseline`",
    )
    group.addoption(
        "--statek-evals-seeds",
        metavar="N",
        help="how many seeds, from 0: of scripts 3 where nothing is said, of a model all that the baseline has",
    )
    group.addoption(
        "--statek-evals-arm",
        action="append",
        default=[],
        metavar="NAME",
        help="parts of the harness that the model works under, as `statek-sim evals run --arms` has them "
        "(repeatable); none: all arms of the baseline",
    )
    parser.addini("statek_evals", "as --statek-evals, one per line: when no path is given", type="linelist")
    parser.addini("statek_evals_model", "as --statek-evals-model")
    parser.addini("statek_evals_baseline", "as --statek-evals-baseline")
    parser.addini("statek_evals_seeds", "as --statek-evals-seeds")
    parser.addini("statek_evals_arm", "as --statek-evals-arm, one per line", type="linelist")


def evals_are_wanted(config: pytest.Config) -> bool:
    """Whether a run has evals, or says how without saying which."""
    return EvalsRequested(config).wanted


class EvalsRequested:
    """What was asked for: key by key the command line's, or else the configuration file's. Read, not yet checked.

    Paths start where pytest was called, those of the configuration file at its folder. `alone`: nothing but what this
    plugin collects is to run. `named`: there are arguments that may be files of evals.
    """

    # A plain class, as `Requested` is.
    __slots__ = ("alone", "arms", "baseline", "model", "named", "paths", "seeds", "wanted")

    def __init__(self, config: pytest.Config) -> None:
        here = config.invocation_params.dir
        there = config.rootpath if config.inipath is None else config.inipath.parent
        # Absent or None, by version, when pytest only prints its help.
        given: list[str] = config.getoption("file_or_dir", None) or []
        options: list[str] = config.getoption("--statek-evals")
        written: list[str] = [] if given else config.getini("statek_evals")
        model: str | None = config.getoption("--statek-evals-model")
        baseline: str | None = config.getoption("--statek-evals-baseline")
        seeds: str | None = config.getoption("--statek-evals-seeds")
        arms: list[str] = config.getoption("--statek-evals-arm")

        self.wanted = bool(options or written or model or baseline or seeds or arms)
        self.alone = bool(options) and not given
        self.named = any(path.partition("::")[0].endswith(SCENARIO_SUFFIXES) for path in given)
        self.paths: tuple[str, ...] = tuple(
            dict.fromkeys([found(path, here, here) for path in options])
            or dict.fromkeys([found(path, there, here) for path in written])
        )
        model_written = config.getini("statek_evals_model")
        self.model: str | None = (
            found(model, here, here)
            if model
            else found(model_written, there, here)
            if model_written
            else None
        )
        self.baseline = path_from(baseline, here, here) or path_from(
            config.getini("statek_evals_baseline"), there, here
        )
        self.seeds: str | None = seeds or config.getini("statek_evals_seeds") or None
        self.arms: tuple[str, ...] = tuple(arms or config.getini("statek_evals_arm"))
