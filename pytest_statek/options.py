"""Declares and reads the command-line options and the keys of the configuration file.

This module is loaded in every pytest run, so it imports only pytest. It has the options of all parts of the plugin,
because pytest takes half a millisecond for each module of a plugin.
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
"""The name of the built-in suites: the default value of `--statek-scenarios`, and a value of the ini key."""

SCENARIO_SUFFIXES: Final = (".yaml", ".yml")

REFERENCE: Final = "reference"
INSTALLED: Final = "installed"
BACKENDS: Final = (REFERENCE, INSTALLED)
"""The runtimes of scenarios and applications: the reference runtime, or the `statek` package of this environment."""

STRICT: Final = "strict"
STORAGE_MODES: Final = (STRICT, "warn")
"""What happens when the store loses a value: the test fails, or pytest shows a warning."""

MARKER: Final = (
    'statek(profile="docs", preset="default", limits={"max_turns": 5}, seed=0, items=["item-1"], '
    'wall_clock="virtual", allow_network=False, storage="warn"): how the statek_ fixtures of this test are set up; '
    "every argument is optional. Scenario items have the marker too."
)
"""The text of the marker in `pytest --markers`."""


CASSETTE: Final = "statek_cassette"
"""The marker of tests with a cassette, and the fixture of that name."""
SESSION: Final[pytest.StashKey[CassetteSession]] = pytest.StashKey()
"""The key for the open cassette in a test's stash."""
CASSETTE_MARKER: Final = (
    f'{CASSETTE}(name="…", ignore=["body.metadata.run"], mode="none", allow_unplayed=False): answer this test\'s '
    "HTTP requests from cassettes/<module>/<test>.yaml; every argument is optional."
)
"""The text of the marker in `pytest --markers`."""

REPEAT: Final = "statek_repeat"
"""The marker of tests that run several times."""
RUN_NUMBER: Final[pytest.StashKey[int]] = pytest.StashKey()
"""The key for the number of the run, from 0, in a repeated test's stash."""
REPEAT_MARKER: Final = (
    f"{REPEAT}(runs, pass_at_least=1.0): run this test `runs` times, each time with new fixtures and the next "
    "`statek_seed`; it passes when at least the share `pass_at_least` of the runs passes."
)
"""The text of the marker in `pytest --markers`."""

MODES: Final = ("none", "once", "new_episodes", "all", "rewrite")


Kind = Literal["string", "linelist", "bool"]
"""The type of a key of the configuration file, by its name in pytest."""

INI_KEYS: Final[Mapping[str, tuple[Kind, str]]] = {
    "statek_explore": ("bool", "as --statek-explore"),
    "statek_invariants": (
        "linelist",
        "your own invariants for --statek-explore, as module:attribute, one per line",
    ),
    "statek_scenarios": (
        "linelist",
        f"scenario files and folders, one per line, or {BUILT_IN!r}; collected when no path is given, like testpaths",
    ),
    "statek_backend": ("string", "as --statek-backend"),
    "statek_preset": ("string", "as --statek-preset"),
    "statek_profile": ("linelist", "as --statek-profile, one per line"),
    "statek_seed": ("string", "as --statek-seed"),
    "statek_watchdog": (
        "string",
        (
            "kill and fail a scenario that exceeds these limits: seconds of CPU time, seconds of wall time, bytes of "
            "memory; default: cpu=20,wall=60,memory=1024m; off: no limit"
        ),
    ),
    "statek_storage": (
        "string",
        (
            "strict or warn: fail a test, or warn, when STATEK's store loses or changes a value; default: strict for "
            "statek_app, warn for the other statek_ fixtures; strict also fails scenarios"
        ),
    ),
    "statek_report": ("string", "as --statek-report"),
    "statek_allow_network": (
        "bool",
        "allow real network connections in tests that use statek_ fixtures",
    ),
    "statek_cassette_ignore": (
        "linelist",
        (
            "parts of requests to ignore when a request is matched with a recording, one per line: "
            "body.metadata.run, query.trace"
        ),
    ),
    "statek_cassette_secret_names": (
        "linelist",
        "headers, parameters and body fields that hold your own secrets, one per line: x-acme-pin",
    ),
    "statek_cassette_secret_patterns": (
        "linelist",
        "regular expressions for your own secrets, one per line: acme-[0-9a-f]{32}",
    ),
    "statek_cassette_allow_undecoded": (
        "linelist",
        (
            "media types of binary bodies to record although secrets in them cannot be detected, one per line: "
            "image/png, audio/*"
        ),
    ),
    "statek_allow_unplayed": (
        "bool",
        "do not fail a test that leaves recordings of its cassette unused",
    ),
    "statek_gate": ("linelist", "as --statek-gate, one per line; used when no path is given"),
    "statek_gate_policy": (
        "string",
        "file with the requirements for the presets; default: the shipped policy",
    ),
    "statek_gate_baseline": (
        "string",
        (
            "fail when a result is worse than in this baseline: a .json file, or a folder with one per preset; one "
            "item per scenario in it"
        ),
    ),
    "statek_gate_scenarios": (
        "linelist",
        (
            "check presets on the scenarios in these files or folders, one per line, or on `built-in`, the shipped "
            "workloads; default: those of --statek-scenarios, or the shipped workloads"
        ),
    ),
    "statek_evals": ("linelist", "as --statek-evals, one per line; used when no path is given"),
    "statek_evals_model": (
        "string",
        (
            "run the evals with this simulated model, one item per eval and arm: a shipped profile or a .toml file; "
            "requires statek_evals_baseline or statek_evals_policy"
        ),
    ),
    "statek_evals_baseline": (
        "string",
        "fail when fewer runs are right than in this baseline of `statek-sim evals run --update-baseline`",
    ),
    "statek_evals_policy": (
        "string",
        "file with the requirements for the model's runs, as for `statek-sim evals run --policy`; one item per rule",
    ),
    "statek_evals_seeds": (
        "string",
        (
            "number of seeds, from 0; default: 3 for scripts; for a model those of the baseline, or 10 without "
            "one"
        ),
    ),
    "statek_evals_arm": (
        "linelist",
        (
            "arms of the harness to run, one per line, as for `statek-sim evals run --arms`; default: all arms of "
            "the baseline, and the arm of each rule"
        ),
    ),
}
"""Keys of the configuration file, each with its type and its text in `pytest --help`."""

_EXPECTED: Final[Mapping[Kind, str]] = {
    "string": "a string",
    "linelist": "a list of strings",
    "bool": "true or false",
}


class Requested:
    """The options of one run; each value is from the command line, or else from the configuration file.

    `backend` is one of `BACKENDS`, or None. `scenarios` are absolute paths of files and folders, or `BUILT_IN`. `files`
    are scenario files given as tests, as in `pytest suite.yaml::suite/one[docs]`. If `alone` is set, only scenarios
    are collected. `needs_check` is whether the command line has values that must be checked. Paths in the configuration
    file are relative to its folder.
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
"""The key for the options in `config.stash`."""

STDERR: Final = pytest.StashKey[int]()
"""The key in `config.stash` for a file descriptor of the standard error that pytest does not capture."""


def add_options(parser: pytest.Parser) -> None:
    """Declare all options and all keys of the configuration file."""
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
        help="run the built-in scenario suites, or with =PATH the scenarios in that file or folder (repeatable). "
        "Scenarios run in addition to the tests in the given paths; without a path, only scenarios, gates and evals "
        "run. Tools named module:attr are imported from the current folder, the rootdir or Python's path",
    )
    group.addoption(
        "--statek-backend",
        choices=BACKENDS,
        metavar="reference|installed",
        help="run scenarios on the reference runtime, or on the statek package of this environment under "
        "the profile of its version",
    )
    group.addoption(
        "--statek-preset",
        metavar="NAME|FILE",
        help="use this preset instead of the scenarios' own: default, local, interactive, batch, or a .env file",
    )
    group.addoption(
        "--statek-profile",
        action="append",
        default=[],
        metavar="NAME",
        help="use only this behaviour profile: docs, 1.2.5, 1.2 or 1.4 (repeatable); the first one is the default of "
        "statek_runtime",
    )
    group.addoption(
        "--statek-seed",
        type=int,
        metavar="N",
        help="use this random seed instead of the scenarios' own",
    )


def _add_how_it_runs(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--statek-report",
        metavar="DIR",
        help="write report.json, report.md and report.html about the scenarios into this folder",
    )
    group.addoption(
        "--statek-explore",
        action="store_true",
        default=False,
        help="also explore every scenario with every crash, order, limit and fault: one more test for each",
    )


def _add_gate(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--statek-gate",
        action="append",
        default=[],
        metavar="PRESET",
        help="check this preset as `statek-sim gate` does, one item per rule and scenario: default, local, "
        "interactive, batch, or a .env file (repeatable). Gates run in addition to the tests in the given paths; "
        "without a path, only gates, scenarios and evals run",
    )


def _add_evals(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--statek-evals",
        action="append",
        nargs="?",
        const=BUILT_IN,
        default=[],
        metavar="PATH",
        help="check the built-in evals, or with =PATH those in that file or folder (repeatable), one item each: the "
        "right script must pass, the wrong scripts must fail. Evals run in addition to the tests in the given paths; "
        "without a path, only evals, scenarios and gates run",
    )


def _add_cassettes(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--statek-record",
        choices=MODES,
        metavar="MODE",
        help=f"when tests marked {CASSETTE} may reach real providers: none (the default) plays cassettes only, once "
        "records missing cassettes, new_episodes adds missing recordings, all records every request again "
        "and keeps other recordings, rewrite starts each cassette empty",
    )
    group.addoption(
        "--statek-cassette-list",
        metavar="FILE",
        help="write the cassette of each collected test into this file, one per line; "
        "`statek-sim cassette orphans` uses it",
    )


def check_requested(config: pytest.Config) -> None:
    """Raise `pytest.UsageError` if a key of the configuration file or an option has an invalid value."""
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
    """Refuse a path that cannot be written, before tests are collected."""
    if path and os.path.isdir(path):
        raise pytest.UsageError(
            f"statek: --statek-cassette-list={path}: expected a file to write, found a folder"
        )
    if path and not os.path.isdir(os.path.dirname(path) or "."):
        raise pytest.UsageError(
            f"statek: --statek-cassette-list={path}: no such folder; create it, or name another"
        )


def part_is_wanted(config: pytest.Config, part: str) -> bool:
    """Return whether this run uses the part `gate` or `evals` of the plugin."""
    parts: list[str] = config.getoption(f"statek_{part}")
    # The configuration file's list of what to run is ignored if the command line names tests.
    written = not config.getoption("file_or_dir", None) and config.getini(f"statek_{part}")
    return bool(parts or written)


def cassettes_are_wanted(config: pytest.Config, items: list[pytest.Item]) -> bool:
    """Return whether this run needs the part of the plugin for cassettes."""
    return bool(config.getoption("--statek-cassette-list")) or any(
        item.get_closest_marker(CASSETTE) for item in items
    )


def wanted_early(config: pytest.Config) -> str | None:
    """Return the requested backend, at a time when conftests are not loaded and most options are not read."""
    option: str | None = getattr(config.known_args_namespace, "statek_backend", None)
    return option or config.getini("statek_backend") or None


def may_use_network(item: pytest.Item) -> bool:
    """Return whether a test may use the real network, by its marker or the configuration file."""
    marker = item.get_closest_marker("statek")
    allowed = marker is not None and marker.kwargs.get("allow_network", False)
    return bool(allowed) or item.config.stash[REQUESTED].allow_network


def joined(here: Path, path: str) -> str:
    """Return a path relative to `here` as an absolute path without `..`, as pytest shows paths."""
    return os.path.normpath(here / path)


def _absolute(path: str, here: Path) -> str:
    return path if path == BUILT_IN else joined(here, path)


def _preset(text: str | None, here: Path) -> str | None:
    """Return the path of a preset file if it exists, otherwise the text, which is the name of a preset."""
    if not text:
        return None
    return joined(here, text) if (here / text).is_file() else text


def _folder(text: str | None, here: Path) -> str | None:
    return joined(here, text) if text else None


def _without_names(args: Sequence[str]) -> list[str]:
    """Return the paths of pytest's arguments: `suite.yaml` for `suite.yaml::one`."""
    return [arg.partition("::")[0] for arg in args]
