"""Compares every scenario on the reference runtime with real versions of STATEK."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Final

from statek_sim.backends.installed.peer import Peer, installed_record, profile_of_peer
from statek_sim.backends.record import RunRecord
from statek_sim.backends.run import run_scenario
from statek_sim.compare.facts import Difference, differences, facts_of, parting
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.suite.installed import ENDINGS, Ending, died, ending, real_ending
from statek_sim.trace import Event, StoreRemark
from statek_sim.values import JSON

AGAIN: Final = 2
"""How many new processes repeat a comparison with differences; if all agree, the difference was random."""

MOST_BY_CHANCE: Final = 5
"""Maximum number of comparisons to repeat per release; more differences cannot be random."""

ReferenceRuns = Mapping[tuple[str, Profile], RunRecord]
"""The reference runtime's records, by scenario and profile."""


class Verdict(StrEnum):
    """The result of comparing a scenario on one version.

    `VARIES` means that the first comparison found a difference, but `AGAIN` repetitions in new processes found none.
    """

    AGREE = "agree"
    VARIES = "varies"
    DIFFERS = "differs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One scenario on one version; `differences` come from the first comparison."""

    scenario: str
    verdict: Verdict
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionMatrix:
    """The verdicts on all scenarios for one STATEK version."""

    version: str
    profile: Profile
    python: str
    rows: tuple[Row, ...]

    def count(self, verdict: Verdict) -> int:
        """Return the number of scenarios with this verdict."""
        return sum(row.verdict is verdict for row in self.rows)

    @property
    def failed(self) -> bool:
        """Whether any scenario differs in every comparison, so not at random."""
        return any(row.verdict is Verdict.DIFFERS for row in self.rows)


def run_matrix(
    pythons: Sequence[str],
    scenarios: Sequence[Scenario],
) -> tuple[VersionMatrix, ...]:
    """Compare `scenarios` on each interpreter's STATEK; the interpreters in `pythons` run in parallel.

    Raises `BadInput` for an interpreter without STATEK or with a version that has no behaviour profile.
    """
    peers = [Peer(python) for python in pythons]
    try:
        profiles = [profile_of_peer(peer) for peer in peers]
        # First, and one at a time: a run of the reference runtime needs its process exclusively.
        reference = _reference(scenarios, set(profiles))
        with ThreadPoolExecutor(max_workers=max(1, len(peers))) as pool:
            running = [
                pool.submit(_version, peer, profile, scenarios, reference)
                for peer, profile in zip(peers, profiles, strict=True)
            ]
            return tuple(future.result() for future in running)
    finally:
        for peer in peers:
            peer.close()


def _reference(scenarios: Iterable[Scenario], profiles: set[Profile]) -> ReferenceRuns:
    return {
        (scenario.id, profile): run_scenario(scenario, profile)
        for scenario in scenarios
        for profile in profiles
        if scenario.compared_under(profile)
    }


def _version(
    peer: Peer,
    profile: Profile,
    scenarios: Iterable[Scenario],
    reference: ReferenceRuns,
) -> VersionMatrix:
    def row(scenario: Scenario, peer: Peer) -> Row:
        ours = reference[scenario.id, profile]
        theirs = installed_record(scenario, profile, peer.run(scenario, profile), seed=scenario.seed)
        found = compared(ours, theirs)
        verdict = Verdict.DIFFERS if found else Verdict.AGREE
        return Row(scenario=scenario.id, verdict=verdict, differences=found)

    compare = [scenario for scenario in scenarios if scenario.compared_under(profile)]
    rows = [row(scenario, peer) for scenario in compare]
    differing = [place for place, found in enumerate(rows) if found.verdict is Verdict.DIFFERS]
    if len(differing) <= MOST_BY_CHANCE:
        for place in differing:
            if agrees_again(peer.interpreter, partial(_agrees, row, compare[place])):
                rows[place] = replace(rows[place], verdict=Verdict.VARIES)
    return VersionMatrix(version=peer.version, profile=profile, python=peer.python_version, rows=tuple(rows))


def _agrees(row: Callable[[Scenario, Peer], Row], scenario: Scenario, peer: Peer) -> bool:
    return row(scenario, peer).verdict is not Verdict.DIFFERS


def agrees_again(python: str, agrees: Callable[[Peer], bool]) -> bool:
    """Return whether repeating a failed comparison succeeds in each of `AGAIN` new interpreters.

    dbzero sometimes reads memory that is not its own, but almost every process gives the same result. A real difference
    occurs in every process.
    """
    for _ in range(AGAIN):
        with Peer(python) as peer:
            if not agrees(peer):
                return False
    return True


def compared(reference: RunRecord, installed: RunRecord) -> tuple[Difference, ...]:
    """Return the fields that differ, then the first event that differs, as `trace`.

    A run that did not return differs in its `error`. If the reference runtime stops code that STATEK runs, the two are
    compared up to that point, and by their `ending`.
    """
    stop = ending(reference)
    if stop is not None:
        return tuple(_until(stop, reference, installed))
    if installed.error is not None and installed.error.type in ("Lost", *ENDINGS):
        ours = facts_of(reference)["error"]
        return (Difference("error", ours, installed.error.message),)
    found = differences(facts_of(reference), facts_of(installed))
    return (*found, *_trace_difference(reference.events, installed.events))


def _until(stop: Ending, reference: RunRecord, installed: RunRecord) -> Iterator[Difference]:
    theirs = real_ending(installed, stop)
    if theirs != stop.expected:
        yield Difference("ending", stop.expected, theirs)
    seen = installed.events[: stop.there]
    ours = [event for event in reference.events[: stop.position] if not isinstance(event, StoreRemark)]
    yield from _trace_difference(ours[: len(seen)] if died(installed) else ours, seen)


def _trace_difference(reference: Sequence[Event], installed: Sequence[Event]) -> Iterator[Difference]:
    parted = parting(reference, installed)
    if parted is not None:
        ours: JSON = {"position": parted.position, "event": parted.reference}
        yield Difference("trace", ours, {"position": parted.position, "event": parted.installed})
