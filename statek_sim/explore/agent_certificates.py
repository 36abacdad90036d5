"""Certificates of engine two: what becomes of a tool's work when its process dies before, during or after a call.

Work counts as done again whatever the tool says of it. Where a person is asked whether a call happened nobody makes it
again without being told so: that is safe. There are no owners of work in engine two, and no claims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from statek_sim.backends.agent_sessions import Moments
from statek_sim.backends.deviations import Place
from statek_sim.explore.agent_variation import AgentVariation
from statek_sim.explore.certificates import AT_LEAST_ONCE, SAFE, TWICE, worst
from statek_sim.explore.result import ToolCertificate
from statek_sim.scenario.events import Deviation


class AgentEffects:
    """Collects, kill by kill, which tools worked again. `own` are the names of the user's own functions."""

    def __init__(self, base: AgentVariation, own: frozenset[str]) -> None:
        self._before = Counter(tool for _, tool in base.moments.worked)
        self._phases = _phases_of_kills(base.moments)
        self._own = own
        self._seen: dict[str, dict[str, str]] = {tool: {} for tool in self._before}

    def note(self, deviations: Sequence[Deviation], run: AgentVariation) -> None:
        """Take in one run; only those count in which nothing happens but one death."""
        if len(deviations) != 1 or deviations[0].action != "kill":
            return
        now = Counter(tool for _, tool in run.moments.worked)
        for tool, phase in self._phases.get((deviations[0].kill, deviations[0].silent), ()):
            self._see(tool, phase, AT_LEAST_ONCE if now[tool] > self._before[tool] else SAFE)
        for tool in self._before:
            if now[tool] > self._before[tool]:
                self._see(tool, TWICE, AT_LEAST_ONCE)

    def _see(self, tool: str, phase: str, verdict: str) -> None:
        known = worst((self._seen[tool].get(phase), verdict))
        assert known is not None, "one verdict was seen just now"
        self._seen[tool][phase] = known

    def certificates(self) -> tuple[ToolCertificate, ...]:
        """Return a certificate for every tool that did its work undisturbed."""
        return tuple(
            ToolCertificate(
                tool=tool,
                own=tool in self._own,
                before=phases.get("before"),
                during=phases.get("during"),
                after=phases.get("after"),
                twice=phases.get(TWICE),
            )
            for tool, phases in sorted(self._seen.items())
        )


def _phases_of_kills(moments: Moments) -> dict[Place, set[tuple[str, str]]]:
    """Return, for every kill that is played, the calls it stands for: those of all moments that come to the same."""
    first: dict[tuple[float, int, int, int, int], Place] = {}
    phases = _phases(moments)
    found: dict[Place, set[tuple[str, str]]] = {}
    for number, (point, state) in enumerate(zip(moments.points, moments.states, strict=True)):
        place = first.setdefault(state, point.place)
        found.setdefault(place, set()).update(phases.get(number, ()))
    return found


def _phases(moments: Moments) -> dict[int, set[tuple[str, str]]]:
    """Return, for moments by number, which tool's calls they are about, and how far these are.

    Before a call is the commit that says it will be made; after it is the receipt that says it was.
    """
    found: dict[int, set[tuple[str, str]]] = {}
    calling: dict[str, int] = {}
    worked: dict[str, str] = {}
    for number, point in enumerate(moments.points):
        if point.what == "commit calling":
            calling[point.job] = number
        elif point.what.endswith(" worked"):
            tool = point.what.removesuffix(" worked")
            worked[point.job] = tool
            found.setdefault(number, set()).add((tool, "during"))
            if point.job in calling:
                found.setdefault(calling[point.job], set()).add((tool, "before"))
        elif point.what.startswith("receipt ") and point.job in worked:
            found.setdefault(number, set()).add((worked.pop(point.job), "after"))
    return found
