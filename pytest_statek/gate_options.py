"""Options of the gate. Loaded in every pytest run, so it imports nothing but pytest and what is loaded already."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

PLUGIN: Final = "pytest_statek.gate"
"""The module that does the work, for runs that judge presets."""


def add_gate_options(parser: pytest.Parser) -> None:
    """Declare the options and ini keys of the gate."""
    group = parser.getgroup("statek", "STATEK agents: scenario suites and fixtures")
    group.addoption(
        "--statek-gate",
        action="append",
        default=[],
        metavar="PRESET",
        help="judge this preset as `statek-sim gate` does, an item per rule and scenario: default, local, interactive, "
        "batch, or a .env file (repeatable). Added to the tests whose paths are given; without any path, only these "
        "items and scenarios run",
    )
    group.addoption(
        "--statek-gate-policy",
        metavar="FILE",
        help="what is demanded of the presets; none: the shipped policy",
    )
    group.addoption(
        "--statek-gate-scenarios",
        action="append",
        default=[],
        metavar="PATH",
        help="judge on the scenarios in this file or folder (repeatable); none, or `built-in`: the shipped workloads",
    )
    group.addoption(
        "--statek-gate-baseline",
        metavar="PATH",
        help="nothing may be worse than in this baseline: a .json file, or a folder with one per preset; an item per "
        "scenario in it",
    )
    parser.addini(
        "statek_gate", "as --statek-gate, one per line: judged when no path is given", type="linelist"
    )
    parser.addini("statek_gate_policy", "as --statek-gate-policy")
    parser.addini("statek_gate_baseline", "as --statek-gate-baseline")
    parser.addini("statek_gate_scenarios", "as --statek-gate-scenarios, one per line", type="linelist")


def gate_is_wanted(config: pytest.Config) -> bool:
    """Whether a run judges presets, or says how without saying which."""
    return GateRequested(config).wanted


class GateRequested:
    """What was asked for: key by key the command line's, or else the configuration file's. Read, not yet checked.

    Paths start where pytest was called, those of the configuration file at its folder. `alone`: nothing but what this
    plugin collects is to run.
    """

    # A plain class, as `Requested` is.
    __slots__ = ("alone", "baseline", "policy", "presets", "scenarios", "wanted")

    def __init__(self, config: pytest.Config) -> None:
        here = config.invocation_params.dir
        there = config.rootpath if config.inipath is None else config.inipath.parent
        # Absent or None, by version, when pytest only prints its help.
        paths: list[str] = config.getoption("file_or_dir", None) or []
        options: list[str] = config.getoption("--statek-gate")
        written: list[str] = [] if paths else config.getini("statek_gate")
        policy: str | None = config.getoption("--statek-gate-policy")
        baseline: str | None = config.getoption("--statek-gate-baseline")
        scenarios: list[str] = config.getoption("--statek-gate-scenarios")

        self.wanted = bool(options or written or policy or baseline or scenarios)
        self.alone = bool(options) and not paths
        self.presets = tuple(found(path, here, here) for path in options) or tuple(
            found(path, there, here) for path in written
        )
        self.policy = path_from(policy, here, here) or path_from(
            config.getini("statek_gate_policy"), there, here
        )
        self.baseline = path_from(baseline, here, here) or path_from(
            config.getini("statek_gate_baseline"), there, here
        )
        self.scenarios = tuple(found(path, here, here) for path in scenarios) or tuple(
            found(path, there, here) for path in config.getini("statek_gate_scenarios")
        )


def found(text: str, base: Path, here: Path) -> str:
    """Return a path as people read it from `here` where there is something at it, else the text: a built-in name."""
    return (path_from(text, base, here) or text) if os.path.exists(base / text) else text


def path_from(text: str | None, base: Path, here: Path) -> str | None:
    """Return a path that starts at `base` as people read it from `here`; None for no text."""
    if not text:
        return None
    path = Path(os.path.normpath(base / text))
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
