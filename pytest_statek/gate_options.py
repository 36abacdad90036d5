"""Options of the gate. Loaded in every pytest run, so it imports nothing but pytest and what is loaded already."""

from __future__ import annotations

from typing import Final

import pytest

from pytest_statek.said import Said

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

    `alone`: nothing but what this plugin collects is to run.
    """

    # A plain class, as `Requested` is.
    __slots__ = ("alone", "baseline", "policy", "presets", "scenarios", "wanted")

    def __init__(self, config: pytest.Config) -> None:
        options = Said(config, "gate")
        self.wanted = options.wanted("policy", "baseline", "scenarios")
        self.alone = options.alone
        self.presets = options.names
        self.policy = options.path("policy")
        self.baseline = options.path("baseline")
        self.scenarios = options.named("scenarios")
