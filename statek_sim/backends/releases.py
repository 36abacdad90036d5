"""Which releases of STATEK there are, and which profile describes one; `statek_sim.semantics` lists them."""

from __future__ import annotations

from collections.abc import Sequence

from statek_sim.semantics import NEWER, RELEASES, Release, line_of, profile_of


def releases() -> tuple[Release, ...]:
    """Return the listed releases, oldest first."""
    return RELEASES


def newest(versions: Sequence[str]) -> str:
    """Return the highest of some versions like `1.4.2`."""
    return max(versions, key=lambda version: tuple(map(int, version.split("."))))


__all__ = ["NEWER", "Release", "line_of", "newest", "profile_of", "releases"]
