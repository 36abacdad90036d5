"""Idempotency certificates: what becomes of a tool's effect when its process dies, it runs twice, or two owners act."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from statek_sim.backends.deviation_plan import Place
from statek_sim.explore.player import Player, Run, Violation
from statek_sim.explore.result import ToolCertificate
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.schema import Scenario

SAFE: Final = "safe"
AT_LEAST_ONCE: Final = "at least once"
LEAKS: Final = "leaks"
_ORDER: Final = (SAFE, AT_LEAST_ONCE, LEAKS)
"""From best to worst: of several kills in one phase the worst counts."""

BEFORE: Final = "before"
DURING: Final = "during"
AFTER: Final = "after"
TWICE: Final = "twice"
OWNERS: Final = "owners"


class Certificates:
    """Collects, kill by kill, what tools did twice and what they left behind."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._calls = player.base.tool_calls
        self._phases = _phases_of_kills(player)
        self._seen: dict[str, dict[str, str]] = {name: {} for name in self._calls}

    def note(self, kill: Deviation, run: Run, wrong: Collection[Violation]) -> None:
        """Take in a run in which nothing happens but one death."""
        for tool, phase in self._phases.get((kill.kill, kill.silent), ()):
            self._see(tool, phase, run, wrong)
        for tool, times in self._calls.items():
            if run.tool_calls[tool] > times:
                self._see(tool, TWICE, run, wrong)

    def note_two_owners(self, run: Run, wrong: Collection[Violation]) -> None:
        """Take in a run in which two owners do the same work."""
        for tool in self._calls:
            self._see(tool, OWNERS, run, wrong)

    def _see(self, tool: str, phase: str, run: Run, wrong: Collection[Violation]) -> None:
        verdict = self._player.verdict(run, tool, phase, wrong)
        self._seen[tool][phase] = max(self._seen[tool].get(phase, SAFE), verdict, key=_ORDER.index)

    def of_tools(self) -> tuple[ToolCertificate, ...]:
        """Return a certificate for every tool that was called."""
        own = own_tools(self._player.scenario)
        return tuple(
            ToolCertificate(
                tool=name,
                own=name in own,
                before=phases.get(BEFORE),
                during=phases.get(DURING),
                after=phases.get(AFTER),
                twice=phases.get(TWICE),
                owners=phases.get(OWNERS),
            )
            for name, phases in sorted(self._seen.items())
        )


def _phases_of_kills(player: Player) -> Mapping[Place, set[tuple[str, str]]]:
    """Return, for every kill that is played, the calls it stands for: those of all points with the same state."""
    base = player.base
    first: dict[object, Place] = {}
    found: dict[Place, set[tuple[str, str]]] = {}
    for number, (point, state) in enumerate(zip(base.points, base.states, strict=True)):
        place = first.setdefault(state, point.place)
        found.setdefault(place, set()).update(player.phases.get(number, ()))
    return found


def own_tools(scenario: Scenario) -> frozenset[str]:
    """Return the names of the user's own tools, which are functions."""
    names = (name for text in scenario.agents.values() for name in text.tools)
    return frozenset(name.rpartition(":")[2] for name in names if ":" in name)
