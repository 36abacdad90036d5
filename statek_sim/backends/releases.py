"""Which releases of STATEK there are, and which profile describes one; `statek_sim.semantics` lists them."""

from __future__ import annotations

from collections.abc import Sequence

from statek_sim.semantics import NEWER, RELEASES, Release, line_of


def releases() -> tuple[Release, ...]:
    """Return the listed releases, oldest first."""
    return RELEASES


def profile_of(version: str) -> str | None:
    """Return the profile of a release: its own, else that of the newest listed one of its line, else None."""
    own = [release for release in RELEASES if release.version == version]
    line = [release for release in RELEASES if release.line == line_of(version)]
    return next((release.profile for release in (*own, *reversed(line))), None)


def newest(versions: Sequence[str]) -> str:
    """Return the highest of some versions like `1.4.2`."""
    return max(versions, key=lambda version: tuple(map(int, version.split("."))))


__all__ = ["NEWER", "Release", "line_of", "newest", "profile_of", "releases"]
