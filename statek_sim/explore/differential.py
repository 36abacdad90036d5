"""Whose is a failure? The smallest variation is played on the real STATEK, and how both end is compared.

Only a kill after an event can be played there: what becomes durable in between cannot be seen from outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from statek_sim.backends.installed.peer import Lost, Peer
from statek_sim.backends.installed.record import installed_record
from statek_sim.backends.record import JobRecord
from statek_sim.explore.result import Failure
from statek_sim.explore.variation import Undisturbed, undisturbed, varied
from statek_sim.scenario.events import RESTART, Deviation
from statek_sim.scenario.schema import Scenario
from statek_sim.trace import event_label
from statek_sim.values import JSON

STATEKS: Final = "STATEK's"
OURS: Final = "ours"
YOURS: Final = "your tool's"

UNSEEN: Final = frozenset({"JobCreated", "LLMReplied", "Released"})
"""Events that are told of on STATEK a moment after they happen, with the change that follows them done already."""

_BETWEEN: Final = "it dies between two events, which cannot be seen from outside"


@dataclass(frozen=True, slots=True)
class Compared:
    """What the real STATEK does under the same kill: whose it is, and in which fact the two differ first."""

    whose: str | None
    why: str


def compare(peer: Peer, scenario: Scenario, profile: str, failure: Failure, under: str) -> Compared:
    """Play the failure's kill on `peer`, under its profile `under`, and say whose it is; None where that cannot be."""
    if len(failure.deviations) != 1 or failure.deviations[0].action != "kill":
        return Compared(None, "only a single kill can be played on the real STATEK")
    deviation = failure.deviations[0]
    if deviation.silent or deviation.kill == 0:
        return Compared(None, _BETWEEN)
    if under not in scenario.profiles:
        return Compared(None, f"the scenario does not hold for profile {under}")
    order = kill_order(undisturbed(scenario, profile)[0], deviation)
    if str(order["what"]) in UNSEEN:
        return Compared(None, _BETWEEN)
    base, _ = undisturbed(scenario, under)
    place = place_of(base, order)
    if place is None:
        return Compared(None, f"there is no such moment under profile {under}")
    return _compared(peer, base, place, order)


def kill_order(base: Undisturbed, deviation: Deviation) -> dict[str, JSON]:
    """Return a kill in the words of the installed backend: which event of its kind it is."""
    event = base.events[deviation.kill - 1]
    label = event_label(event)
    alike = [
        one for one in base.events[: deviation.kill] if (event_label(one), one.job) == (label, event.job)
    ]
    restart = RESTART if deviation.restart is None else deviation.restart
    return {"what": label, "job": event.job, "times": len(alike), "restart": restart}


def place_of(base: Undisturbed, order: dict[str, JSON]) -> int | None:
    """Return the number of the event that an order is about, in a run under another profile."""
    alike = [
        number
        for number, event in enumerate(base.events, 1)
        if (event_label(event), event.job) == (order["what"], order["job"])
    ]
    times = order["times"]
    assert isinstance(times, int), "kill_order made it"
    return alike[times - 1] if len(alike) >= times else None


def _compared(peer: Peer, base: Undisturbed, place: int, order: dict[str, JSON]) -> Compared:
    outcome = peer.run(base.scenario, base.profile, kill=order)
    if isinstance(outcome, Lost):
        return Compared(None, f"the run there was lost: {outcome.reason}")
    theirs = installed_record(base.scenario, base.profile, outcome, seed=base.scenario.seed)
    restart = order["restart"]
    assert isinstance(restart, float), "kill_order made it"
    with varied(base, (Deviation(kill=place, restart=restart),)) as variation:
        ours = variation.record
    if not any("exploration" in str(getattr(event, "change", "")) for event in outcome.events):
        return Compared(None, "the moment did not come there")
    if any(job.stop == "contained" for job in ours.jobs.values()):
        return Compared(None, "its code is stopped here, and STATEK cannot stop it")
    facts = (
        ("work items", dict(ours.items), dict(theirs.items)),
        ("ledger", ours.ledger, theirs.ledger),
        ("jobs", _ends(ours.jobs), _ends(theirs.jobs)),
        ("handlers", [one.name for one in ours.handlers], [one.name for one in theirs.handlers]),
    )
    for what, mine, real in facts:
        if mine != real:
            return Compared(OURS, f"{what}: {mine} here, {real} on STATEK {peer.version}")
    own = any(":" in name for text in base.scenario.agents.values() for name in text.tools)
    return Compared(YOURS if own else STATEKS, f"STATEK {peer.version} ends the same")


def _ends(jobs: Mapping[str, JobRecord]) -> dict[str, tuple[str, JSON]]:
    """Return how jobs end; why they stopped is told by an event that a killed process may not get to."""
    return {name: (job.status, job.exit) for name, job in jobs.items()}
