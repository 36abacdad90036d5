"""Declares and reads the plugin's command-line options and configuration file keys.

This module is loaded in every pytest run, so it imports only pytest. It contains the options for all parts of the
plugin, because pytest takes half a millisecond per plugin module.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import pytest

if TYPE_CHECKING:
    from statek_sim.cassettes.session import CassetteSession

BUILT_IN: Final = "built-in"
"""The name for the built-in suites: the default value of `--statek-scenarios`, and a valid value for the ini key."""

SCENARIO_SUFFIXES: Final = (".yaml", ".yml")

REFERENCE: Final = "reference"
INSTALLED: Final = "installed"
BACKENDS: Final = (REFERENCE, INSTALLED)
"""The runtimes for scenarios and applications: the reference runtime or the installed `statek` package."""

STRICT: Final = "strict"
STORAGE_MODES: Final = (STRICT, "warn")
"""What happens if the store loses a value: the test fails, or pytest shows a warning."""

MARKER: Final = (
    'statek(profile="docs", preset="default", limits={"max_turns": 5}, seed=0, items=["item-1"], '
    'wall_clock="virtual", allow_network=False, storage="warn"): configure the statek_ fixtures for this test; '
    "all arguments are optional. Scenario items also have this marker."
)
"""The marker's description in `pytest --markers`."""


CASSETTE: Final = "statek_cassette"
"""The name of the marker for tests with a cassette, and of the fixture."""
SESSION: Final[pytest.StashKey[CassetteSession]] = pytest.StashKey()
"""The key in a test's stash for the open cassette."""
CASSETTE_MARKER: Final = (
    f'{CASSETTE}(name="…", ignore=["body.metadata.run"], mode="none", allow_unplayed=False): answer this test\'s '
    "HTTP requests from cassettes/<module>/<test>.yaml; all arguments are optional."
)
"""The marker's description in `pytest --markers`."""

REPEAT: Final = "statek_repeat"
"""The name of the marker for tests that run several times."""
RUN_NUMBER: Final[pytest.StashKey[int]] = pytest.StashKey()
"""The key in a repeated test's stash for the zero-based run number."""
REPEAT_MARKER: Final = (
    f"{REPEAT}(runs, pass_at_least=1.0): run this test `runs` times, each time with new fixtures and the next "
    "`statek_seed`; the test passes if at least the fraction `pass_at_least` of the runs pass."
)
"""The marker's description in `pytest --markers`."""

MODES: Final = ("none", "once", "new_episodes", "all", "rewrite")


Kind = Literal["string", "linelist", "bool"]
"""A configuration key's type, as named by pytest."""

INI_KEYS: Final[Mapping[str, tuple[Kind, str]]] = {
    "statek_explore": ("bool", "same as --statek-explore"),
    "statek_invariants": (
        "linelist",
        "your own invariants for --statek-explore, one module:attribute per line",
    ),
    "statek_scenarios": (
        "linelist",
        f"scenario files and folders, one per line, or {BUILT_IN!r}; like testpaths, used if no path is given",
    ),
    "statek_backend": ("string", "same as --statek-backend"),
    "statek_preset": ("string", "same as --statek-preset"),
    "statek_profile": ("linelist", "same as --statek-profile, one per line"),
    "statek_seed": ("string", "same as --statek-seed"),
    "statek_watchdog": (
        "string",
        (
            "kill and fail a scenario that exceeds these limits: CPU time in seconds, wall time in seconds, memory in "
            "bytes; default: cpu=20,wall=60,memory=1024m; use off for no limits"
        ),
    ),
    "statek_storage": (
        "string",
        (
            "when STATEK's store loses or changes a value, fail the test (strict) or warn (warn); default: strict for "
            "statek_app, warn for the other statek_ fixtures; strict also applies to scenarios"
        ),
    ),
    "statek_report": ("string", "same as --statek-report"),
    "statek_allow_network": (
        "bool",
        "allow real network connections in tests that use statek_ fixtures",
    ),
    "statek_cassette_ignore": (
        "linelist",
        (
            "request parts to ignore when matching requests with recordings, one per line: "
            "body.metadata.run, query.trace"
        ),
    ),
    "statek_cassette_secret_names": (
        "linelist",
        "headers, parameters and body fields that contain your own secrets, one per line: x-acme-pin",
    ),
    "statek_cassette_secret_patterns": (
        "linelist",
        "regular expressions for your own secrets, one per line: acme-[0-9a-f]{32}",
    ),
    "statek_cassette_allow_undecoded": (
        "linelist",
        (
            "media types of binary bodies to record even though secrets in them cannot be detected, one per line: "
            "image/png, audio/*"
        ),
    ),
    "statek_allow_unplayed": (
        "bool",
        "do not fail a test if recordings in its cassette were not played",
    ),
    "statek_gate": ("linelist", "same as --statek-gate, one per line; used if no path is given"),
    "statek_gate_policy": (
        "string",
        "policy file for checking the presets; default: the built-in policy",
    ),
    "statek_gate_baseline": (
        "string",
        (
            "fail if a result is worse than in this baseline: a .json file, or a folder with one file per preset; adds "
            "one item per scenario in the baseline"
        ),
    ),
    "statek_gate_scenarios": (
        "linelist",
        (
            "check presets with the scenarios in these files or folders, one per line, or with the workloads named "
            "`built-in`; default: the paths from --statek-scenarios, or else the built-in workloads"
        ),
    ),
    "statek_evals": ("linelist", "same as --statek-evals, one per line; used if no path is given"),
    "statek_evals_model": (
        "string",
        (
            "run the evals with this simulated model, a built-in profile or a .toml file; adds one item per eval and "
            "arm; requires statek_evals_baseline or statek_evals_policy"
        ),
    ),
    "statek_evals_baseline": (
        "string",
        "fail if fewer runs pass than in this baseline, written by `statek-sim evals run --update-baseline`",
    ),
    "statek_evals_policy": (
        "string",
        "policy file for the model's runs, as for `statek-sim evals run --policy`; adds one item per rule",
    ),
    "statek_evals_seeds": (
        "string",
        (
            "number of seeds, starting at 0; default: 3 for scripts; for a model, the baseline's number of seeds, or "
            "10 without a baseline"
        ),
    ),
    "statek_evals_arm": (
        "linelist",
        (
            "harness arms to run, one per line, as for `statek-sim evals run --arms`; default: all arms named in the "
            "baseline or the policy"
        ),
    ),
}
"""Maps each configuration key to its type and its description in `pytest --help`."""

_EXPECTED: Final[Mapping[Kind, str]] = {
    "string": "a string",
    "linelist": "a list of strings",
    "bool": "true or false",
}


class Requested:
    """A run's options. Each value comes from the command line or, if not given there, from the configuration file.

    `backend` is one of `BACKENDS` or None. `scenarios` are absolute file and folder paths, or `BUILT_IN`. `files` are
    scenario files passed as test paths, as in `pytest suite.yaml::suite/one[docs]`. If `alone` is set, only scenarios
    are collected. `needs_check` tells whether the command line contains values that must be checked. Paths in the
    configuration file are relative to the file's folder.
    """

    def __init__(self, config: pytest.Config) -> None:
        here = config.invocation_params.dir
        there = config.rootpath if config.inipath is None else config.inipath.parent
        # Absent or None, depending on the version, if pytest only prints its help.
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
        self.allow_network: bool = config.getini("statek_allow_network")
        self.explore: bool = config.getoption("--statek-explore") or config.getini("statek_explore")
        self.invariants: tuple[str, ...] = tuple(config.getini("statek_invariants"))
        self.watchdog: str = config.getini("statek_watchdog")
        self.storage: str | None = config.getini("statek_storage") or None

    @property
    def collects(self) -> bool:
        """Whether this run collects scenarios."""
        return bool(self.scenarios or self.files)


REQUESTED: Final = pytest.StashKey[Requested]()
"""The key in `config.stash` for the options."""

STDERR: Final = pytest.StashKey[int]()
"""The key in `config.stash` for a file descriptor for standard error that pytest does not capture."""


def add_options(parser: pytest.Parser) -> None:
    """Declare all options and configuration file keys."""
    group = parser.getgroup("statek", "STATEK agents: scenario suites and fixtures")
    _add_what_runs(group)
    _add_how_it_runs(group)
    _add_cassettes(group)
    _add_gate(group)
    _add_evals(group)
    for name, (kind, meaning) in INI_KEYS.items():
        parser.addini(name, meaning, type=kind)


def _add_what_runs(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--statek-scenarios",
        action="append",
        nargs="?",
        const=BUILT_IN,
        default=[],
        metavar="PATH",
        help="run the built-in scenario suites, or the scenarios in PATH if given; can be repeated. If test paths are "
        "given, their tests also run; otherwise, only scenarios, gates and evals run. Tools named module:attr are "
        "imported from the current folder, the rootdir or Python's path",
    )
    group.addoption(
        "--statek-backend",
        choices=BACKENDS,
        metavar="reference|installed",
        help="run scenarios on the reference runtime, or on the installed statek package (using the profile for its "
        "version)",
    )
    group.addoption(
        "--statek-preset",
        metavar="NAME|FILE",
        help="use this preset instead of the scenarios' own presets: default, local, interactive, batch, or a .env "
        "file",
    )
    group.addoption(
        "--statek-profile",
        action="append",
        default=[],
        metavar="NAME",
        help="use only this behaviour profile: docs, 1.2.5, 1.2 or 1.4; can be repeated. The first profile is the "
        "default for statek_runtime",
    )
    group.addoption(
        "--statek-seed",
        type=int,
        metavar="N",
        help="use this random seed instead of the scenarios' own seeds",
    )


def _add_how_it_runs(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--statek-report",
        metavar="DIR",
        help="write report.json, report.md and report.html for the scenarios to this folder",
    )
    group.addoption(
        "--statek-explore",
        action="store_true",
        default=False,
        help="run one extra test per scenario that explores all crashes, orderings, limits and faults",
    )


def _add_gate(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--statek-gate",
        action="append",
        default=[],
        metavar="PRESET",
        help="check this preset (default, local, interactive, batch, or a .env file) as `statek-sim gate` does, "
        "with one test item per rule and scenario; can be repeated. If test paths are given, their tests also run; "
        "otherwise, only gates, scenarios and evals run",
    )


def _add_evals(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--statek-evals",
        action="append",
        nargs="?",
        const=BUILT_IN,
        default=[],
        metavar="PATH",
        help="check that correct scripts pass and incorrect scripts fail in the built-in evals, or in the evals in "
        "PATH if given; can be repeated. If test paths are given, their tests also run; otherwise, only evals, "
        "scenarios and gates run",
    )


def _add_cassettes(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--statek-record",
        choices=MODES,
        metavar="MODE",
        help=f"when to send requests from tests marked {CASSETTE} to real providers and record them. none (the "
        "default): only play cassettes; once: record missing cassettes; new_episodes: add missing recordings; "
        "all: record every request again and keep the other recordings; rewrite: start each cassette empty",
    )
    group.addoption(
        "--statek-cassette-list",
        metavar="FILE",
        help="write the cassette paths of all collected tests to this file, one per line, for use by `statek-sim "
        "cassette orphans`",
    )


def check_requested(config: pytest.Config) -> None:
    """Raise `pytest.UsageError` if an option or a key in the configuration file has an invalid value."""
    for name, (kind, _) in INI_KEYS.items():
        _check_key(config, name, kind)
    _check_cassette_list(config.getoption("--statek-cassette-list"))


def _check_key(config: pytest.Config, name: str, kind: Kind) -> None:
    try:
        with warnings.catch_warnings():
            # Pytest only warns about a list instead of a string; here it is an error.
            warnings.simplefilter("ignore")
            value: object = config.getini(name)
    except (TypeError, ValueError, pytest.UsageError) as error:
        # Pytest's messages about a `[tool.pytest]` table name the key; its message about an invalid boolean does not.
        reason = str(error)
        raise pytest.UsageError(
            reason if name in reason else f"statek: {name}: expected {_EXPECTED[kind]}: {reason}"
        ) from None
    match kind:
        case "string":
            fits = isinstance(value, str)
        case "linelist":
            fits = isinstance(value, list) and all(isinstance(line, str) for line in value)
        case "bool":
            fits = isinstance(value, bool)
    if not fits:
        where = "" if config.inipath is None else f"{config.inipath}: "
        raise pytest.UsageError(f"statek: {where}{name}: expected {_EXPECTED[kind]}, found {value!r}")


def _check_cassette_list(path: str | None) -> None:
    """Reject a path that cannot be written, before tests are collected."""
    if path and os.path.isdir(path):
        raise pytest.UsageError(
            f"statek: --statek-cassette-list={path}: expected a file to write, found a folder"
        )
    if path and not os.path.isdir(os.path.dirname(path) or "."):
        raise pytest.UsageError(
            f"statek: --statek-cassette-list={path}: no such folder; create it or choose another"
        )


def part_is_wanted(config: pytest.Config, part: str) -> bool:
    """Return whether this run uses the plugin's `gate` or `evals` part."""
    parts: list[str] = config.getoption(f"statek_{part}")
    # The configuration file's list of what to run is ignored if the command line names tests.
    written = not config.getoption("file_or_dir", None) and config.getini(f"statek_{part}")
    return bool(parts or written)


def cassettes_are_wanted(config: pytest.Config, items: list[pytest.Item]) -> bool:
    """Return whether this run uses the plugin's cassette part."""
    return bool(config.getoption("--statek-cassette-list")) or any(
        item.get_closest_marker(CASSETTE) for item in items
    )


def wanted_early(config: pytest.Config) -> str | None:
    """Return the requested backend; called before conftests are loaded and most options are read."""
    option: str | None = getattr(config.known_args_namespace, "statek_backend", None)
    return option or config.getini("statek_backend") or None


def may_use_network(item: pytest.Item) -> bool:
    """Return whether the marker or the configuration file allows a test to use the real network."""
    marker = item.get_closest_marker("statek")
    allowed = marker is not None and marker.kwargs.get("allow_network", False)
    return bool(allowed) or item.config.stash[REQUESTED].allow_network


def joined(here: Path, path: str) -> str:
    """Resolve a path relative to `here` to an absolute path without `..`, as pytest shows paths."""
    return os.path.normpath(here / path)


def _absolute(path: str, here: Path) -> str:
    return path if path == BUILT_IN else joined(here, path)


def _preset(text: str | None, here: Path) -> str | None:
    """Return the path if the preset is a file, or else the text, which is a preset name."""
    if not text:
        return None
    return joined(here, text) if (here / text).is_file() else text


def _folder(text: str | None, here: Path) -> str | None:
    return joined(here, text) if text else None


def _without_names(args: Sequence[str]) -> list[str]:
    """Return the paths in pytest's arguments: `suite.yaml` for `suite.yaml::one`."""
    return [arg.partition("::")[0] for arg in args]
