"""What the user asked for, on the command line or in the configuration file. Read, not yet checked.

This module is loaded in every pytest run, so it imports nothing but pytest.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

BUILT_IN: Final = "built-in"
"""What `--statek-scenarios` without a value means, and what the ini key calls the built-in suites."""

SCENARIO_SUFFIXES: Final = (".yaml", ".yml")

REFERENCE: Final = "reference"
INSTALLED: Final = "installed"
BACKENDS: Final = (REFERENCE, INSTALLED)
"""Who runs scenarios and applications: our runtime, or the `statek` package of this environment."""

STRICT: Final = "strict"
STORAGE_MODES: Final = (STRICT, "warn")
"""What a value that the store loses does to a test: it fails it, or is told as a warning."""

MARKER: Final = (
    'statek(profile="docs", preset="default", limits={"max_turns": 5}, seed=0, items=["item-1"], '
    'wall_clock="virtual", allow_network=False, storage="warn"): how the statek_ fixtures of this test are set up; '
    "every argument may be left out. Scenario items carry the marker too."
)
"""The marker as `pytest --markers` shows it."""


class Requested:
    """The options of one run: key by key the command line's, or else the configuration file's.

    `backend`: one of `BACKENDS`, or None when nobody said. `scenarios`: files and folders as absolute paths, or
    `BUILT_IN`. `files`: scenario files named like test files, as in `pytest suite.yaml::suite/one[docs]`. `alone`:
    nothing but scenarios is to be collected. `needs_check`: the command line says something that may be wrong. Paths
    in the configuration file start at its folder.
    """

    # A plain class: making a dataclass takes longer than all else in this module, which every run pays for.
    __slots__ = (
        "allow_network",
        "alone",
        "backend",
        "explore",
        "files",
        "invariants",
        "needs_check",
        "preset",
        "profiles",
        "report",
        "scenarios",
        "seed",
        "storage",
        "watchdog",
    )

    def __init__(self, config: pytest.Config) -> None:
        here = config.invocation_params.dir
        there = config.rootpath if config.inipath is None else config.inipath.parent
        # Absent or None, by version, when pytest only prints its help.
        paths: list[str] = config.getoption("file_or_dir", None) or []
        given = [_absolute(path, here) for path in config.getoption("--statek-scenarios")]
        written = [] if paths else [_absolute(path, there) for path in config.getini("statek_scenarios")]
        preset = _preset(config.getoption("--statek-preset"), here)
        profiles: list[str] = config.getoption("--statek-profile")
        seed: int | None = config.getoption("--statek-seed")
        report = _folder(config.getoption("--statek-report"), here)
        backend: str | None = config.getoption("--statek-backend")

        self.scenarios: tuple[str, ...] = tuple(dict.fromkeys(given or written))
        self.files = tuple(path for path in _without_names(paths) if path.endswith(SCENARIO_SUFFIXES))
        self.alone = bool(given) and not paths
        self.backend: str | None = backend or config.getini("statek_backend") or None
        self.needs_check = bool(preset or profiles or report)
        self.preset = preset or _preset(config.getini("statek_preset"), there)
        self.profiles: tuple[str, ...] = tuple(profiles or config.getini("statek_profile"))
        self.seed: str | int | None = (config.getini("statek_seed") or None) if seed is None else seed
        self.report = report or _folder(config.getini("statek_report"), there)
        self.allow_network: bool = config.getoption("--statek-allow-network") or config.getini(
            "statek_allow_network"
        )

        self.explore: bool = config.getoption("--statek-explore") or config.getini("statek_explore")
        self.invariants: tuple[str, ...] = tuple(config.getini("statek_invariants"))
        said_limits: str | None = config.getoption("--statek-watchdog")
        self.watchdog: str = said_limits or config.getini("statek_watchdog") or ""
        self.storage: str | None = (
            config.getoption("--statek-storage") or config.getini("statek_storage") or None
        )

    @property
    def collects(self) -> bool:
        """Whether this run has scenario items."""
        return bool(self.scenarios or self.files)


REQUESTED: Final = pytest.StashKey[Requested]()
"""Where `config.stash` keeps them."""


def add_options(parser: pytest.Parser) -> None:
    """Declare every option and its ini key."""
    group = parser.getgroup("statek", "STATEK agents: scenario suites and fixtures")
    _add_what_runs(group)
    _add_how_it_runs(group)
    _add_ini_keys(parser)


def _add_what_runs(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--statek-scenarios",
        action="append",
        nargs="?",
        const=BUILT_IN,
        default=[],
        metavar="PATH",
        help="run the built-in scenario suites, or with =PATH the scenarios in that file or folder (repeatable). "
        "Added to the tests whose paths are given; without any path, only scenarios run. Tools named module:attr are "
        "found in the folder where pytest was called and in the rootdir, as well as where Python looks",
    )
    group.addoption(
        "--statek-backend",
        choices=BACKENDS,
        metavar="reference|installed",
        help="who runs scenarios: the reference runtime, or the statek package of this environment, whose version "
        "says which profile it follows",
    )
    group.addoption(
        "--statek-preset",
        metavar="NAME|FILE",
        help="run under this preset instead of the scenarios' own: default, local, interactive, batch, or a .env file",
    )
    group.addoption(
        "--statek-profile",
        action="append",
        default=[],
        metavar="NAME",
        help="only this behaviour profile: docs, 1.2.5, 1.2 or 1.4 (repeatable); the first one is what statek_runtime "
        "follows in tests that do not say their own",
    )
    group.addoption(
        "--statek-seed",
        type=int,
        metavar="N",
        help="seed of everything random, instead of the scenarios' own",
    )


def _add_how_it_runs(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--statek-report",
        metavar="DIR",
        help="write report.json, report.md and report.html about the scenarios into this folder",
    )
    group.addoption(
        "--statek-watchdog",
        metavar="LIMITS|off",
        help="what one scenario may use of this machine: seconds of processor time, seconds that pass, bytes of "
        "memory; cpu=20,wall=60,memory=1024m by default. One that uses more is killed and fails",
    )
    group.addoption(
        "--statek-allow-network",
        action="store_true",
        default=False,
        help="do not forbid real network connections in tests that use statek_ fixtures",
    )
    group.addoption(
        "--statek-storage",
        choices=STORAGE_MODES,
        metavar="strict|warn",
        help="whether a value that STATEK's store loses or changes fails a test (what statek_app does), or is a "
        "warning (what the other statek_ fixtures do); strict fails scenarios, too",
    )
    group.addoption(
        "--statek-explore",
        action="store_true",
        default=False,
        help="explore every scenario too: one more test for each, with every crash, order, limit and fault of it",
    )


def _add_ini_keys(parser: pytest.Parser) -> None:
    parser.addini("statek_explore", "as --statek-explore", type="bool", default=False)
    parser.addini(
        "statek_invariants",
        "invariants of your own for --statek-explore, module:attribute, one per line",
        type="linelist",
    )
    parser.addini(
        "statek_scenarios",
        f"scenario files and folders, one per line, or {BUILT_IN!r}: collected like testpaths, when no path is given",
        type="linelist",
    )
    parser.addini("statek_backend", "as --statek-backend")
    parser.addini("statek_preset", "as --statek-preset")
    parser.addini("statek_profile", "as --statek-profile, one per line", type="linelist")
    parser.addini("statek_seed", "as --statek-seed")
    parser.addini("statek_watchdog", "as --statek-watchdog")
    parser.addini("statek_storage", "as --statek-storage")
    parser.addini("statek_report", "as --statek-report")
    parser.addini("statek_allow_network", "as --statek-allow-network", type="bool", default=False)


def wanted_early(config: pytest.Config) -> str | None:
    """Return the backend that was asked for while conftests are yet to be loaded and most options to be read."""
    option: str | None = getattr(config.known_args_namespace, "statek_backend", None)
    return option or config.getini("statek_backend") or None


def joined(here: Path, path: str) -> str:
    """Return a path that starts `here` unless it is absolute, without `..`: as pytest shows paths, and people read."""
    return os.path.normpath(here / path)


def _absolute(path: str, here: Path) -> str:
    return path if path == BUILT_IN else joined(here, path)


def _preset(text: str | None, here: Path) -> str | None:
    """Return the name of a preset, or the path of its file where there is one."""
    if not text:
        return None
    return joined(here, text) if (here / text).is_file() else text


def _folder(text: str | None, here: Path) -> str | None:
    return joined(here, text) if text else None


def _without_names(args: Sequence[str]) -> list[str]:
    """Return arguments as paths: `suite.yaml::one` is `suite.yaml`."""
    return [arg.partition("::")[0] for arg in args]
