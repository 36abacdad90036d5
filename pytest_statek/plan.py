"""Checks a run's options. An invalid option stops the run before collection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from pytest_statek.installed import InstalledStatek, installed_statek
from pytest_statek.marker import seed_of
from pytest_statek.options import BACKENDS, BUILT_IN, INSTALLED, SCENARIO_SUFFIXES, STRICT, Requested
from statek_sim.errors import BadInput
from statek_sim.executors.limits import WatchdogLimits, parse_watchdog
from statek_sim.harness.preset import located_preset
from statek_sim.scenario.files import find_files, is_eval_file
from statek_sim.suite.run import builtin_suites, profile_known

_YOUR_OWN: Final = "for your own scenarios, use --statek-scenarios=PATH with a .yaml file or a folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a run's scenarios are executed. `files` are all scenario files, in order.

    Without `profiles`, each scenario runs under its own profiles. `preset` and `seed` override those in the scenarios,
    unless they are None. `report` is a folder. `installed` is the installed package, or None for the reference runtime.
    With `strict_storage`, a scenario fails if the store loses a value. `watchdog` sets the limits per scenario, if any.
    With `explore`, each scenario is also explored, and the `invariants` are checked in addition to the built-in ones.
    """

    files: tuple[Path, ...]
    alone: bool
    preset: str | None
    profiles: tuple[str, ...]
    seed: int | None
    report: Path | None
    allow_network: bool
    installed: InstalledStatek | None
    watchdog: WatchdogLimits | None
    strict_storage: bool
    explore: bool
    invariants: tuple[str, ...]


PLAN: Final = pytest.StashKey[Plan]()
"""The key in `config.stash` for the plan."""


def checked(requested: Requested, *, here: Path) -> Plan:
    """Return the plan for the options, with paths relative to `here`; raises `pytest.UsageError` if one is invalid."""
    try:
        installed = _installed() if _backend(requested) == INSTALLED else None
        return Plan(
            files=_files(requested.scenarios, here),
            alone=requested.alone,
            preset=None if requested.preset is None else located_preset(requested.preset),
            profiles=_profiles(requested, installed),
            seed=seed_of(requested),
            report=None if requested.report is None else _report_folder(requested),
            allow_network=requested.allow_network,
            installed=installed,
            strict_storage=requested.storage == STRICT,
            explore=requested.explore,
            invariants=requested.invariants,
            watchdog=parse_watchdog(requested.watchdog) if requested.watchdog else WatchdogLimits(),
        )
    except BadInput as error:
        raise pytest.UsageError(f"statek: {error}") from None


def _backend(requested: Requested) -> str | None:
    """Return the backend; raises `pytest.UsageError` for an unknown name in the configuration file."""
    if requested.backend is not None and requested.backend not in BACKENDS:
        raise BadInput(f"statek_backend={requested.backend!r}: expected {' or '.join(BACKENDS)}")
    return requested.backend


def _installed() -> InstalledStatek:
    try:
        return installed_statek()
    except BadInput as error:
        raise BadInput(f"--statek-backend=installed: {error}") from None


def _profiles(requested: Requested, installed: InstalledStatek | None) -> tuple[str, ...]:
    """Return the profiles to run. An installed package supports only the profile for its version."""
    names = tuple(profile_known(name) for name in requested.profiles)
    if installed is None:
        return names
    for profile in names:
        if profile != installed.profile:
            raise BadInput(
                f"--statek-profile={profile}: remove this option; {installed} always uses its own profile"
            )
    return (installed.profile,)


def _report_folder(requested: Requested) -> Path | None:
    folder = Path(requested.report or "")
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"--statek-report={requested.report}: expected a folder, found a file")
    if requested.needs_check and not requested.collects:
        raise BadInput("--statek-report: requires --statek-scenarios")
    return folder


def _files(scenarios: Sequence[str], here: Path) -> tuple[Path, ...]:
    """Return the scenario files and their display paths."""
    own = {text: _shortened(Path(text), here) for text in scenarios if text != BUILT_IN}
    for path in own.values():
        _refuse_tests(path)
    files, problems = find_files(own.get(text) or builtin_suites() for text in scenarios)
    if problems:
        raise BadInput(f"no scenarios: {'; '.join(map(str, problems))}; {_YOUR_OWN}")
    # A folder may have evals beside scenarios; an eval file given by name is reported as such.
    wanted = tuple(file for file in files if file in own.values() or not is_eval_file(file))
    if files and not wanted:
        raise BadInput(
            f"no scenarios: {', '.join(map(str, own.values()))}: these are evals; check them with --statek-evals"
        )
    return wanted


def _refuse_tests(path: Path) -> None:
    """Raise `BadInput` for a test path that pytest took as the value of the preceding option."""
    is_test = "::" in str(path) or (path.is_file() and path.suffix not in SCENARIO_SUFFIXES)
    if is_test or (path.is_dir() and not find_files([path])[0]):
        raise BadInput(
            f"--statek-scenarios: no scenarios found in {str(path)!r}; if this is a test path, put it before the "
            f"option: `pytest {path} --statek-scenarios` also runs the built-in suites; {_YOUR_OWN}"
        )


def _shortened(path: Path, here: Path) -> Path:
    return path.relative_to(here) if path.is_relative_to(here) else path
