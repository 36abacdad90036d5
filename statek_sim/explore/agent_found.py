"""What has been found so far in one scenario of engine two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from statek_sim.explore.explorer import REPEATS
from statek_sim.explore.invariants import Violation
from statek_sim.explore.reduce import ddmin
from statek_sim.explore.result import Cell, CrashCost, Failure
from statek_sim.scenario.deviation import Deviation


@dataclass(slots=True)
class AgentFound:
    """Failures with the smallest deviations that show them, cells of the crash map, and counts.

    `reached`: of every `sometimes` invariant, whether some run reached it.
    """

    reached: dict[str, bool]
    smallest: dict[str, tuple[tuple[Deviation, ...], str]] = field(default_factory=dict)
    times: Counter[str] = field(default_factory=Counter)
    cells: list[Cell] = field(default_factory=list)
    runs: int = 1
    unknown: int = 0
    repeats: int = 0
    crash: CrashCost = field(default_factory=CrashCost)
    triples: int = 0

    def note(self, deviations: tuple[Deviation, ...], wrong: Sequence[Violation]) -> None:
        """Keep the first of the smallest that break an invariant."""
        for one in wrong:
            self.times[one.invariant] += 1
            known = self.smallest.get(one.invariant)
            if known is None or len(deviations) < len(known[0]):
                self.smallest[one.invariant] = (deviations, one.message)

    def failures(self, breaks: Callable[[str, Sequence[Deviation]], str | None]) -> tuple[Failure, ...]:
        """Return each failure with the fewest deviations that still show it."""
        return tuple(self._failure(name, breaks) for name in self.smallest)

    def _failure(self, name: str, breaks: Callable[[str, Sequence[Deviation]], str | None]) -> Failure:
        deviations, message = self.smallest[name]
        if name != REPEATS and len(deviations) > 1:

            def fails(parts: Sequence[Deviation]) -> bool:
                self.runs += 1
                return breaks(name, parts) is not None

            deviations = ddmin(deviations, fails)
            message = breaks(name, deviations) or message
        return Failure(invariant=name, message=message, deviations=deviations, times=self.times[name])
