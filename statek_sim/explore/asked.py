"""Who plays the variations of one scenario that is asked about: the explorers of both engines, asked the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from statek_sim.explore import plan
from statek_sim.explore.explorer import Explorer
from statek_sim.explore.invariants import Invariant, Violation
from statek_sim.explore.variation import varied
from statek_sim.scenario.deviation import Deviation
from statek_sim.scenario.schema import Scenario
from statek_sim.trace import Event


@dataclass(frozen=True, slots=True)
class Seen:
    """What is left of a run that was played: its trace."""

    events: tuple[Event, ...]
    digest: str


class Asked(Protocol):
    """Plays variations of one scenario; each raises `Untimely` where its world cannot do what is asked."""

    def singles(self) -> tuple[Deviation, ...]:
        """Return every single deviation that the scenario gives occasion for, simple ones first."""

    def wrong(self, deviations: Sequence[Deviation]) -> tuple[Violation, ...]:
        """Return what is wrong with a run."""

    def played(self, deviations: Sequence[Deviation]) -> Seen:
        """Return a run."""

    def repeated(self, seen: Seen, deviations: Sequence[Deviation]) -> tuple[Violation, ...]:
        """Return how a run differs from the same one played again."""


class StatekAsked:
    """A scenario of engine one."""

    def __init__(self, scenario: Scenario, profile: str, own: Mapping[str, Invariant]) -> None:
        self._explorer = Explorer(scenario, profile, own)

    def singles(self) -> tuple[Deviation, ...]:
        """Return limits, faults, moved events, kills and lost commits."""
        kinds = (plan.limits, plan.faults, plan.moves, plan.kills, plan.lost_commits)
        return tuple(one for kind in kinds for one in kind(self._explorer.base))

    def wrong(self, deviations: Sequence[Deviation]) -> tuple[Violation, ...]:
        """Return what is wrong with a run."""
        return self._explorer.play(deviations)

    def played(self, deviations: Sequence[Deviation]) -> Seen:
        """Return a run."""
        with varied(self._explorer.base, deviations) as variation:
            return Seen(tuple(variation.events), variation.digest)

    def repeated(self, seen: Seen, deviations: Sequence[Deviation]) -> tuple[Violation, ...]:
        """Return how a run differs from the same one played again."""
        return self._explorer.repeated(seen, deviations)


class AgentAsked:
    """A scenario of engine two."""

    def __init__(self, scenario: Scenario, profile: str, own: Mapping[str, Any]) -> None:
        # What engine two checks arguments with is not loaded for those who have no scenario of it.
        from statek_sim.explore.agent_runs import AgentExplorer  # noqa: PLC0415

        self._explorer = AgentExplorer(scenario, profile, own)

    def singles(self) -> tuple[Deviation, ...]:
        """Return limits, faults, moved events and kills."""
        return self._explorer.singles()

    def wrong(self, deviations: Sequence[Deviation]) -> tuple[Violation, ...]:
        """Return what is wrong with a run."""
        return self._explorer.player.judged(deviations)[1]

    def played(self, deviations: Sequence[Deviation]) -> Seen:
        """Return a run."""
        record = self._explorer.player.play(deviations).record
        return Seen(tuple(record.events), record.digest)

    def repeated(self, seen: Seen, deviations: Sequence[Deviation]) -> tuple[Violation, ...]:
        """Return how a run differs from the same one played again."""
        return self._explorer.player.repeated(deviations, seen)


def asked_of(scenario: Scenario, profile: str, own: Mapping[str, Any]) -> Asked:
    """Return who plays a scenario."""
    engine = StatekAsked if scenario.engine == "statek" else AgentAsked
    return engine(scenario, profile, own)
