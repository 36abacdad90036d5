"""Every scenario on the reference runtime and on real versions of STATEK: how they compare, and what is declared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Final

from statek_sim.backends.installed.peer import Peer, profile_of_peer
from statek_sim.backends.installed.record import installed_record
from statek_sim.backends.record import RunRecord
from statek_sim.backends.run import run_scenario
from statek_sim.compare.facts import Difference, differences, facts_of, parting
from statek_sim.errors import BadInput
from statek_sim.scenario.files import read_list
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.scenario.tree import Node, node_value
from statek_sim.suite.installed import ENDINGS, Ending, died, ending, real_ending
from statek_sim.trace import Event, StoreRemark
from statek_sim.values import JSON

AGAIN: Final = 2
"""How many processes of its own are asked what differed; all of them have to agree where it was by chance."""

MOST_BY_CHANCE: Final = 5
"""How many comparisons of one release may differ and be asked again: more of them do not differ by chance."""

ReferenceRuns = Mapping[tuple[str, Profile], RunRecord]
"""What the reference runtime did."""


class Verdict(StrEnum):
    """How one scenario does on one version. `VARIES`: it differed once, and agreed in `AGAIN` processes after that."""

    AGREE = "agree"
    DECLARED = "declared"
    VARIES = "varies"
    DIFFERS = "differs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One scenario on one version.

    `differences` are those that count: undeclared ones, or the declared ones of a scenario that has no other; of one
    that varies those of the first time.
    `stale` are declared fields that agree. `reason` says what was declared.
    """

    scenario: str
    verdict: Verdict
    differences: tuple[Difference, ...] = ()
    stale: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionMatrix:
    """All scenarios on one version of STATEK."""

    version: str
    profile: Profile
    python: str
    rows: tuple[Row, ...]

    def count(self, verdict: Verdict) -> int:
        """Return how many scenarios have this verdict."""
        return sum(row.verdict is verdict for row in self.rows)

    @property
    def failed(self) -> bool:
        """Whether something differs undeclared, or a declaration no longer holds."""
        return any(row.verdict is Verdict.DIFFERS or row.stale for row in self.rows)


def run_matrix(
    pythons: Sequence[str],
    scenarios: Sequence[Scenario],
    declarations: Declarations,
) -> tuple[VersionMatrix, ...]:
    """Compare `scenarios` on the STATEK of every interpreter in `pythons`; interpreters work side by side.

    Raises BadInput for an interpreter without STATEK, or with a version that no behaviour profile describes.
    """
    peers = [Peer(python) for python in pythons]
    try:
        profiles = [profile_of_peer(peer) for peer in peers]
        # First, and one at a time: a run of the reference runtime has its process to itself.
        reference = _reference(scenarios, set(profiles))
        with ThreadPoolExecutor(max_workers=max(1, len(peers))) as pool:
            running = [
                pool.submit(_version, peer, profile, scenarios, reference, declarations)
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
    declarations: Declarations,
) -> VersionMatrix:
    def row(scenario: Scenario, peer: Peer) -> Row:
        ours = reference[scenario.id, profile]
        theirs = installed_record(scenario, profile, peer.run(scenario, profile), seed=scenario.seed)
        return judged(scenario.id, compared(ours, theirs), declarations.of(scenario.id, peer.version))

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
    """Return whether what differed agrees in every one of `AGAIN` new interpreters.

    dbzero sometimes reads memory that is not its own: what it finds there is the same in almost every process. A real
    difference is there each time.
    """
    for _ in range(AGAIN):
        with Peer(python) as peer:
            if not agrees(peer):
                return False
    return True


def compared(reference: RunRecord, installed: RunRecord) -> tuple[Difference, ...]:
    """Return what differs: facts, and as `trace` the first event. A run that did not come back differs in its `error`.

    Where the reference runtime stops code that STATEK lets run, both are compared until then, and the `ending`.
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


def judged(scenario: str, found: tuple[Difference, ...], declared: Mapping[str, Any]) -> Row:
    """Return the verdict on one scenario: `declared` maps the fields that may differ to their declarations."""
    differing = {difference.field for difference in found}
    stale = tuple(field for field in declared if field not in differing)
    undeclared = tuple(difference for difference in found if difference.field not in declared)
    if undeclared:
        return Row(scenario=scenario, verdict=Verdict.DIFFERS, differences=undeclared, stale=stale)
    if not found:
        return Row(scenario=scenario, verdict=Verdict.AGREE, stale=stale)
    reasons = dict.fromkeys(declared[difference.field].reason for difference in found)
    return Row(
        scenario=scenario,
        verdict=Verdict.DECLARED,
        differences=found,
        stale=stale,
        reason="; ".join(reasons),
    )


DECLARED: Final = Path(__file__).parent / "declared.yaml"
"""The declarations about the built-in scenarios."""

_KEYS: Final = ("scenario", "fields", "versions", "reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """These fields of this scenario differ on these versions of STATEK, for this reason. `line` is in the file."""

    scenario: str
    fields: tuple[str, ...]
    versions: tuple[str, ...]
    reason: str
    line: int


class Declarations:
    """Declarations, found by scenario and version."""

    def __init__(self, declarations: Iterable[Declaration] = ()) -> None:
        self.all = tuple(declarations)

    def __iter__(self) -> Iterable[Declaration]:
        return iter(self.all)

    def of(self, scenario: str, version: str) -> Mapping[str, Declaration]:
        """Return the declared fields of a scenario on one version."""
        return {
            field: declaration
            for declaration in self.all
            if declaration.scenario == scenario and version in declaration.versions
            for field in declaration.fields
        }


def load_declarations(path: Path = DECLARED) -> Declarations:
    """Return the declarations in a file; raises BadInput with `path:line: message`."""
    root = read_list(path, of="declared differences")
    return Declarations(() if root is None else (_declaration(path, node) for node in root.items))


def _declaration(path: Path, node: Node) -> Declaration:
    where = f"{path}:{node.line}"
    entry = node_value(node)
    if not isinstance(entry, dict) or tuple(sorted(entry)) != tuple(sorted(_KEYS)):
        raise BadInput(f"{where}: a declared difference has exactly the keys {', '.join(_KEYS)}")
    scenario, reason = entry["scenario"], entry["reason"]
    if not (isinstance(scenario, str) and isinstance(reason, str) and reason.strip()):
        raise BadInput(f"{where}: scenario and reason are texts")
    return Declaration(
        scenario=scenario,
        fields=_words(where, "fields", entry["fields"]),
        versions=_words(where, "versions", entry["versions"]),
        reason=" ".join(reason.split()),
        line=node.line,
    )


def _words(where: str, key: str, value: object) -> tuple[str, ...]:
    """Return a list of exact names: a pattern would declare more than anybody has looked at."""
    if not isinstance(value, list) or not value:
        raise BadInput(f"{where}: {key} is a list of names")
    words = tuple(str(word) for word in value)
    for word in words:
        if "*" in word or "?" in word:
            raise BadInput(f"{where}: {key}: {word!r} is a pattern; write every name out")
    return words
