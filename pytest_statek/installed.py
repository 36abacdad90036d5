"""Support for running scenarios on the installed `statek` package: its version, and the process that runs scenarios."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Final

import pytest

from pytest_statek.options import INSTALLED, REFERENCE
from statek_sim.backends.installed.peer import Peer
from statek_sim.errors import BadInput
from statek_sim.scenario.schema import Profile
from statek_sim.semantics import RELEASES, profile_of

PACKAGES: Final = ("statek", "dbzero")
"""The packages that applications import."""


@dataclass(frozen=True, slots=True)
class InstalledStatek:
    """The `statek` package that `import statek` finds, with the behaviour profile for its version."""

    version: str
    profile: Profile

    def __str__(self) -> str:
        return f"statek {self.version} (profile {self.profile})"


def installed_statek() -> InstalledStatek:
    """Return the installed package without importing it; raises `BadInput` with install instructions."""
    try:
        found = version("statek")
    except PackageNotFoundError:
        raise BadInput(_missing("statek")) from None
    if find_spec("dbzero") is None:
        raise BadInput(_missing("dbzero"))
    profile = profile_of(found)
    if profile is None:
        known = RELEASES
        lines = ", ".join(f"{line}.x" for line in dict.fromkeys(release.line for release in known))
        raise BadInput(
            f"statek {found} has no behaviour profile; expected one of {lines}, "
            f"installed with: {sys.executable} -m pip install 'statek[dbzero]=={known[-1].version}'"
        )
    return InstalledStatek(found, profile)


def say_what_is_missing(failure: Exception) -> None:
    """Raise a `pytest.UsageError` if a conftest could not import the requested package."""
    # pytest's error about a conftest has the original exception as `cause`.
    cause = getattr(failure, "cause", None)
    if isinstance(cause, ModuleNotFoundError) and cause.name in PACKAGES:
        raise pytest.UsageError(f"statek: --statek-backend=installed: {_missing(cause.name)}") from None


def chosen_backend() -> tuple[str, str]:
    """Return the default backend for applications, with a description: the installed package, if there is one."""
    if _found("statek") is None and _found("dbzero") is None:
        return REFERENCE, "the reference runtime: statek is not installed"
    found = _found("statek")
    return INSTALLED, "the installed package" if found is None else f"the installed statek {found}"


def _found(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _missing(module: str) -> str:
    return (
        f"{module} is not installed for {sys.executable}; install it with: "
        f"{sys.executable} -m pip install 'statek[dbzero]'"
    )


def peer_of(config: pytest.Config) -> Peer:
    """Return the interpreter that runs this process's scenarios; it starts on first use and stops with the run."""
    if _PEER not in config.stash:
        peer = config.stash[_PEER] = Peer(sys.executable)
        config.add_cleanup(peer.close)
    return config.stash[_PEER]


_PEER: Final = pytest.StashKey[Peer]()
