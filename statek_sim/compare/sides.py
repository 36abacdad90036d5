"""The two sides of a comparison: behaviour profiles, releases of STATEK, or interpreters that have one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Final

from statek_sim.backends.installed.peer import Peer, profile_of_peer
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.scenario.schema import STATEK_PROFILES, Profile, Scenario
from statek_sim.semantics import RELEASES, profile_named, profile_of
from statek_sim.semantics import Profile as Rules

DOCUMENTATION: Final = "documentation"
"""Another name of the profile `docs`."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side: what the user called it, and the profile that describes it."""

    name: str
    profile: Profile

    @property
    def rules(self) -> Rules:
        """The profile's answers."""
        return profile_named(self.profile)

    @property
    def version(self) -> str | None:
        """The release that it stands for, None for a profile."""
        return self.name if self.name not in STATEK_PROFILES else None


def side_named(name: str) -> Side:
    """Return a side by the name of a profile or the version of a release; BadInput for what is neither.

    A profile's name wins: `1.2.5` is a profile and a release at once.
    """
    called = "docs" if name == DOCUMENTATION else name
    own = next((profile for profile in STATEK_PROFILES if profile == called), None)
    profile = own if own is not None else profile_of(called)
    if profile is None:
        known = (
            *STATEK_PROFILES,
            *(release.version for release in RELEASES if release.version not in STATEK_PROFILES),
        )
        problem = f"{name!r} is no release and no profile that is known; expected one of: {', '.join(known)}."
        raise BadInput((problem + suggestion(name, known)).removesuffix("."))
    return Side(called, profile)


def is_interpreter(word: str) -> bool:
    """Return whether a word is the path of a file rather than the name of a profile or a release."""
    return os.sep in word or os.path.isfile(word)


def side_of(python: str) -> Side:
    """Return the side of an interpreter: its release of STATEK. BadInput for one without STATEK."""
    with Peer(python) as peer:
        return Side(peer.version, profile_of_peer(peer))


def check_interpreter(python: str, before: Side, after: Side) -> None:
    """Raise BadInput for an interpreter that is neither side."""
    own = side_of(python)
    if not any(side.version in (None, own.name) and side.profile == own.profile for side in (before, after)):
        raise BadInput(
            f"--python {python}: has statek {own.name}, which is neither {before.name} nor {after.name}"
        )


def differing_rules(before: Rules, after: Rules) -> Iterator[str]:
    """Yield the rules on which two profiles differ, in the order of `Profile`."""
    for spec in fields(Rules):
        if spec.name != "name" and getattr(before, spec.name) != getattr(after, spec.name):
            yield spec.name


def comparable(scenario: Scenario, before: Side, after: Side) -> bool:
    """Return whether a scenario says something about one of the sides."""
    return scenario.compared_under(before.profile) or scenario.compared_under(after.profile)
