"""Checks variations of one scenario under one profile, for property-based tests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from statek_sim.errors import BadInput
from statek_sim.explore.explorer import Explorer
from statek_sim.explore.player import SURVIVES, Violation
from statek_sim.explore.result import KINDS, Failure, case_name, case_text
from statek_sim.explore.workers import own_invariants
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario

SIMPLEST: Final = ("limits", "faults", "moves", "crashes", "commits")
"""The kinds of deviation, simple kinds first."""


class InvariantBroken(AssertionError):
    """Raised if a run violates an invariant; the notes contain the case's file and the command for replaying it."""


class Subject:
    """A scenario, for either engine, to check with the built-in invariants and your own.

    `invariants` are module-level functions or names such as `module:attribute`, so that a saved case can refer to them.
    Failures are written to `folder`.
    """

    def __init__(
        self,
        scenario: Scenario | str | Path,
        *,
        profile: str | None = None,
        invariants: Iterable[str | Callable[..., Any]] = (),
        folder: str | Path = "found",
    ) -> None:
        self.scenario = scenario if isinstance(scenario, Scenario) else _only(Path(scenario))
        self.profile = profile or self.scenario.profiles[0]
        self._names = tuple(map(_name_of, invariants))
        self._own = own_invariants(self._names)
        self.folder = Path(folder)

    def __repr__(self) -> str:
        """Return the scenario's name, shown in failing tests."""
        return f"Subject({self.scenario.id!r}, profile={self.profile!r})"

    @cached_property
    def _explorer(self) -> Explorer:
        """The scenario's player; the base run is played on first use."""
        return Explorer(self.scenario, self.profile, self._own)

    @cached_property
    def singles(self) -> tuple[Deviation, ...]:
        """All single deviations that the scenario allows, simple kinds first."""
        every = self._explorer.player.singles(KINDS)
        return tuple(one for kind in SIMPLEST for one in every.get(kind, ()))

    def like(self, scenario: Scenario) -> Subject:
        """Return another scenario with the same settings."""
        return Subject(scenario, profile=self.profile, invariants=self._names, folder=self.folder)

    def wrong(self, deviations: Sequence[Deviation] = ()) -> tuple[Violation, ...]:
        """Return the violations in a run with these deviations; none if a deviation is impossible in the scenario."""
        try:
            explorer = self._explorer
        except BadInput:
            raise
        except Exception as error:  # noqa: BLE001  # a bug of the runtime's is what we look for
            # The base run already failed.
            return (Violation(SURVIVES, f"{type(error).__name__}: {error}"),)
        try:
            return explorer.play(deviations)
        except BadInput:
            return ()

    def check(self, deviations: Sequence[Deviation] = ()) -> None:
        """Play a run with these deviations; on a violation, write it to a file and raise InvariantBroken."""
        wrong = self.wrong(deviations)
        if not wrong:
            return
        error = InvariantBroken(f"{wrong[0].invariant}: {wrong[0].message}")
        for deviation in deviations:
            error.add_note(str(deviation))
        path = self.write(wrong[0], deviations)
        error.add_note(f"written to {path.as_posix()}; to replay it:")
        error.add_note(f"statek-sim explore --replay {path.as_posix()}")
        raise error

    def write(self, violation: Violation, deviations: Sequence[Deviation]) -> Path:
        """Write a failure as a scenario file, replacing an earlier file for the same invariant."""
        failure = Failure(
            invariant=violation.invariant, message=violation.message, deviations=tuple(deviations), times=1
        )
        path = self.folder / case_name(self.scenario, self.profile, violation.invariant)
        self.folder.mkdir(parents=True, exist_ok=True)
        path.write_text(case_text(self.scenario, self.profile, failure, self.folder), encoding="utf-8")
        return path


def _only(path: Path) -> Scenario:
    found = load_or_fail([path])
    if len(found) != 1:
        raise BadInput(f"{path}: expected one scenario, found {len(found)}; load them and choose one")
    return found[0]


def _name_of(invariant: str | Callable[..., Any]) -> str:
    """Return an invariant's name, `module:attribute`; raises `BadInput` for a function without such a name."""
    if isinstance(invariant, str):
        return invariant
    module, name = invariant.__module__, invariant.__qualname__
    if getattr(sys.modules.get(module), name, None) is not invariant:
        raise BadInput(
            f"invariant {name!r} of {module}: expected a module-level function, because saved failures "
            "refer to it by name"
        )
    return f"{module}:{name}"
