"""The releases of STATEK that the reference runtime is held against: one data file, read here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from statek_sim.errors import BadInput
from statek_sim.scenario.data_file import read_list
from statek_sim.scenario.schema import STATEK_PROFILES, Profile
from statek_sim.scenario.tree import Node, node_value

RELEASES: Final = Path(__file__).parent / "releases.yaml"

NEWER: Final = "newer"
"""In `pythons`: the newest Python that is installed and known to work."""

_KEYS: Final = ("version", "profile", "pythons", "ci")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release: the profile that describes it, the versions of Python it runs on, whether CI runs it in full."""

    version: str
    profile: Profile
    pythons: tuple[str, ...]
    ci: bool

    @property
    def line(self) -> str:
        """The first two numbers of the version."""
        return line_of(self.version)


def line_of(version: str) -> str:
    """Return the first two numbers of a version."""
    return ".".join(version.split(".")[:2])


@cache
def releases(path: Path = RELEASES) -> tuple[Release, ...]:
    """Return the listed releases, oldest first; raises BadInput with `path:line: message`."""
    root = read_list(path, of="releases")
    return () if root is None else tuple(_release(path, node) for node in root.items)


def profile_of(version: str) -> Profile | None:
    """Return the profile of a release: its own, else that of the newest listed one of its line, else None."""
    own = [release for release in releases() if release.version == version]
    line = [release for release in releases() if release.line == line_of(version)]
    return next((release.profile for release in (*own, *reversed(line))), None)


def newest(versions: Sequence[str]) -> str:
    """Return the highest of some versions like `1.4.2`."""
    return max(versions, key=lambda version: tuple(map(int, version.split("."))))


def _release(path: Path, node: Node) -> Release:
    where = f"{path}:{node.line}"
    said = node_value(node)
    if not isinstance(said, dict) or sorted(said) != sorted(_KEYS):
        raise BadInput(f"{where}: a release has exactly the keys {', '.join(_KEYS)}")
    version, pythons, ci = said["version"], said["pythons"], said["ci"]
    profile = next((name for name in STATEK_PROFILES if name == said["profile"]), None)
    if not isinstance(version, str) or not isinstance(ci, bool) or profile is None:
        raise BadInput(
            f"{where}: version is a text, ci true or false, profile one of {', '.join(STATEK_PROFILES)}"
        )
    if not isinstance(pythons, list) or not pythons:
        raise BadInput(f"{where}: pythons is a list like ['3.11', {NEWER}]")
    return Release(version=version, profile=profile, pythons=tuple(map(str, pythons)), ci=ci)
