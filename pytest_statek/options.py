"""What the user asked for, on the command line or in the configuration file. Read, not yet checked.

This module is loaded in every pytest run, so it imports nothing but pytest. The options of all parts are in it: pytest
takes half a millisecond for each module of a plugin.
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


CASSETTE: Final = "statek_cassette"
"""The marker of tests with a cassette, and the fixture that is it."""
SESSION: Final[pytest.StashKey[CassetteSession]] = pytest.StashKey()
"""Where a test's stash keeps its open cassette."""
CASSETTE_MARKER: Final = (
    f'{CASSETTE}(name="…", ignore=["body.metadata.run"], mode="none", allow_unplayed=False): answer this test\'s '
    "HTTP requests from cassettes/<module>/<test>.yaml; every argument may be left out."
)
"""The marker as `pytest --markers` shows it."""

REPEAT: Final = "statek_repeat"
"""The marker of tests that run again and again."""
RUN_NUMBER: Final[pytest.StashKey[int]] = pytest.StashKey()
"""Where the stash of a repeated test keeps which of its runs it is, from 0."""
REPEAT_MARKER: Final = (
    f"{REPEAT}(runs, pass_at_least=1.0): run this test so many times, each with fixtures of its own and the next "
    "`statek_seed`; it passes when the share of runs that pass is at least this."
)
"""The marker as `pytest --markers` shows it."""

MODES: Final = ("none", "once", "new_episodes", "all", "rewrite")


Kind = Literal["string", "linelist", "bool"]
"""What a key of the configuration file holds, in pytest's words."""

INI_KEYS: Final[Mapping[str, tuple[Kind, str]]] = {
    "statek_explore": ("bool", "as --statek-explore"),
    "statek_invariants": (
        "linelist",
        "invariants of your own for --statek-explore, module:attribute, one per line",
    ),
    "statek_scenarios": (
        "linelist",
        f"scenario files and folders, one per line, or {BUILT_IN!r}: collected like testpaths, when no path is given",
    ),
    "statek_backend": ("string", "as --statek-backend"),
    "statek_preset": ("string", "as --statek-preset"),
    "statek_profile": ("linelist", "as --statek-profile, one per line"),
    "statek_seed": ("string", "as --statek-seed"),
    "statek_watchdog": (
        "string",
        (
            "what one scenario may use of this machine: seconds of processor time, seconds that pass, bytes of memory; "
            "cpu=20,wall=60,memory=1024m by default, off: no limit. One that uses more is killed and fails"
        ),
    ),
    "statek_storage": (
        "string",
        (
            "strict or warn: whether a value that STATEK's store loses or changes fails a test (what statek_app does), "
            "or is a warning (what the other statek_ fixtures do); strict fails scenarios, too"
        ),
    ),
    "statek_report": ("string", "as --statek-report"),
    "statek_allow_network": (
        "bool",
        "do not forbid real network connections in tests that use statek_ fixtures",
    ),
    "statek_cassette_ignore": (
        "linelist",
        (
            "parts of requests that do not count when recordings are looked up, one per line: body.metadata.run, "
            "query.trace"
        ),
    ),
    "statek_cassette_secret_names": (
        "linelist",
        "headers, parameters and members of bodies that hold secrets of yours, one per line: x-acme-pin",
    ),
    "statek_cassette_secret_patterns": (
        "linelist",
        "regular expressions that your secrets fit, one per line: acme-[0-9a-f]{32}",
    ),
    "statek_cassette_allow_undecoded": (
        "linelist",
        (
            "media types of bodies that are no text and may be recorded although secrets in them cannot be seen, one "
            "per line: image/png, audio/*"
        ),
    ),
    "statek_allow_unplayed": (
        "bool",
        "do not fail a test that leaves recordings of its cassette unplayed",
    ),
    "statek_gate": ("linelist", "as --statek-gate, one per line: judged when no path is given"),
    "statek_gate_policy": (
        "string",
        "what is demanded of the presets, a file; none: the shipped policy",
    ),
    "statek_gate_baseline": (
        "string",
        (
            "nothing may be worse than in this baseline: a .json file, or a folder with one per preset; an item per "
            "scenario in it"
        ),
    ),
    "statek_gate_scenarios": (
        "linelist",
        (
            "judge on the scenarios in these files or folders, one per line, or on `built-in`, the shipped workloads; "
            "none: on those of --statek-scenarios, or the shipped workloads"
        ),
    ),
    "statek_evals": ("linelist", "as --statek-evals, one per line: when no path is given"),
    "statek_evals_model": (
        "string",
        (
            "let this simulated model work on the evals, an item per eval and arm: a shipped profile or a .toml file; "
            "needs statek_evals_baseline or statek_evals_policy"
        ),
    ),
    "statek_evals_baseline": (
        "string",
        "fail where fewer runs are right than in this baseline of `statek-sim evals run --update-baseline`",
    ),
    "statek_evals_policy": (
        "string",
        "what is demanded of the model's runs, as `statek-sim evals run --policy` has it: an item per rule",
    ),
    "statek_evals_seeds": (
        "string",
        (
            "how many seeds, from 0: of scripts 3 where nothing is said, of a model all that the baseline has, "
            "or 10 without one"
        ),
    ),
    "statek_evals_arm": (
        "linelist",
        (
            "parts of the harness that the model works under, one per line, as `statek-sim evals run --arms` has them; "
            "none: all arms of the baseline, and of each rule its own"
        ),
    ),
}
"""Keys of the configuration file, each with its kind and what `pytest --help` says of it."""

_EXPECTED: Final[Mapping[Kind, str]] = {
    "string": "a text",
    "linelist": "a list of texts",
    "bool": "true or false",
}


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
        self.allow_network: bool = config.getini("statek_allow_network")
        self.explore: bool = config.getoption("--statek-explore") or config.getini("statek_explore")
        self.invariants: tuple[str, ...] = tuple(config.getini("statek_invariants"))
        self.watchdog: str = config.getini("statek_watchdog")
        self.storage: str | None = config.getini("statek_storage") or None

    @property
    def collects(self) -> bool:
        """Whether this run has scenario items."""
        return bool(self.scenarios or self.files)


REQUESTED: Final = pytest.StashKey[Requested]()
"""Where `config.stash` keeps them."""

STDERR: Final = pytest.StashKey[int]()
"""Where `config.stash` keeps a file descriptor of the standard error that pytest does not capture."""


def add_options(parser: pytest.Parser) -> None:
    """Declare every option and its ini key."""
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
        "--statek-explore",
        action="store_true",
        default=False,
        help="explore every scenario too: one more test for each, with every crash, order, limit and fault of it",
    )


def _add_gate(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--statek-gate",
        action="append",
        default=[],
        metavar="PRESET",
        help="judge this preset as `statek-sim gate` does, an item per rule and scenario: default, local, interactive, "
        "batch, or a .env file (repeatable). Added to the tests whose paths are given; without any path, only these "
        "items and scenarios run",
    )


def _add_evals(group: pytest.OptionGroup) -> None:
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


def _add_cassettes(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--statek-record",
        choices=MODES,
        metavar="MODE",
        help=f"when tests marked {CASSETTE} may reach real providers: none (the default) plays cassettes only, once "
        "records those that do not exist, new_episodes adds what is missing, all records everything and keeps what "
        "was not asked again, rewrite starts each cassette from nothing",
    )
    group.addoption(
        "--statek-cassette-list",
        metavar="FILE",
        help="write the cassette of each collected test into this file, one per line; "
        "`statek-sim cassette orphans` asks for it",
    )


def check_requested(config: pytest.Config) -> None:
    """Raise `pytest.UsageError` for a key of the configuration file, or an option, that has not what it takes."""
    for name, (kind, _) in INI_KEYS.items():
        _check_key(config, name, kind)
    _check_cassette_list(config.getoption("--statek-cassette-list"))


def _check_key(config: pytest.Config, name: str, kind: Kind) -> None:
    try:
        with warnings.catch_warnings():
            # Pytest warns of a list in place of a text, which is refused here.
            warnings.simplefilter("ignore")
            value: object = config.getini(name)
    except (TypeError, ValueError, pytest.UsageError) as error:
        # Pytest's own checks of a `[tool.pytest]` table name the key; what it says of other truth values does not.
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
    """Refuse a place where no file can be made, before tests are collected."""
    if path and os.path.isdir(path):
        raise pytest.UsageError(
            f"statek: --statek-cassette-list={path}: is a folder; expected a file to write"
        )
    if path and not os.path.isdir(os.path.dirname(path) or "."):
        raise pytest.UsageError(
            f"statek: --statek-cassette-list={path}: the folder that it is in is not there; make it, or name another"
        )


def part_is_wanted(config: pytest.Config, part: str) -> bool:
    """Return whether a run asks for a part, `gate` or `evals`."""
    parts: list[str] = config.getoption(f"--statek-{part}")
    # The configuration file's list of what to run does not count where the command line names tests.
    written = not config.getoption("file_or_dir", None) and config.getini(f"statek_{part}")
    return bool(parts or written)


def cassettes_are_wanted(config: pytest.Config, items: list[pytest.Item]) -> bool:
    """Return whether a run has use for cassettes."""
    return bool(config.getoption("--statek-cassette-list")) or any(
        item.get_closest_marker(CASSETTE) for item in items
    )


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
