"""What a miss tells: the nearest recording, what differs from it, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from statek_sim.cassettes.difference import Difference, differences
from statek_sim.cassettes.exchange import Request
from statek_sim.cassettes.matching import Compared, Matching
from statek_sim.cassettes.redaction import plain_uri
from statek_sim.cassettes.tape import Tape
from statek_sim.values import JSON

SHOWN: Final = 6
"""Differences that are listed."""


@dataclass(frozen=True, slots=True)
class Advice:
    """How the reader records again, and how they ignore a field; `{field}` stands for its name."""

    record: str
    ignore: str


def miss_message(request: Request, tape: Tape, path: Path, matching: Matching, advice: Advice) -> str:
    """Return what to tell about a request that no unplayed recording answers."""
    seen = matching.compared(request)
    title = f"{seen.method} {plain_uri(request.uri, matching.own).partition('?')[0]}"
    if not len(tape):
        return (
            f"{path}: no recording of {title}: the cassette does not exist.\n  To record it: {advice.record}"
        )
    fingerprint = matching.fingerprint(request)
    if tape.knows(fingerprint):
        return _all_played(title, tape.fingerprints, fingerprint, path, advice)
    unplayed = frozenset(tape.unplayed())
    number, found = _nearest(seen, tape, matching, unplayed)
    line = tape.exchange(number).line
    played = "" if number in unplayed else ", already played"
    lines = [
        f"{path}: no recording of {title} with this body ({len(tape)} recorded, {len(unplayed)} not played yet).",
        f"  The nearest is {path}:{line}{played}; what differs:",
        *_told(found),
        f"  If the change is meant, record it: {advice.record}",
    ]
    places = [difference.place for difference in found[:SHOWN] if difference.place != "method"]
    if places:
        lines.append(f"  If it does not matter, ignore it: {advice.ignore.format(field=places[0])}")
    return "\n".join(lines)


def _all_played(title: str, fingerprints: Sequence[str], fingerprint: str, path: Path, advice: Advice) -> str:
    count = fingerprints.count(fingerprint)
    times = "once" if count == 1 else f"{count} times"
    return (
        f"{path}: {title} is recorded {times} with this body, and asked once more.\n"
        f"  If the client is meant to ask again, record it: {advice.record}"
    )


def _nearest(
    seen: Compared, tape: Tape, matching: Matching, unplayed: frozenset[int]
) -> tuple[int, list[Difference]]:
    """Return the recording that differs least, by number of places and then by how far; unplayed ones first."""
    new = _tree(seen)
    compared = (
        (number, list(differences(_tree(matching.compared(tape.exchange(number).request)), new)))
        for number in range(len(tape))
    )
    _, number, found = min(
        ((_cost(found, played=number not in unplayed), number, found) for number, found in compared),
        key=lambda entry: entry[:2],
    )
    return number, found


def _cost(found: list[Difference], *, played: bool) -> tuple[bool, float, bool]:
    elsewhere = any(not difference.place.startswith("body") for difference in found)
    return elsewhere, sum(1 + difference.distance for difference in found), played


def _tree(seen: Compared) -> dict[str, JSON]:
    return {"method": seen.method, **dict(seen.address), "body": seen.body}


def _told(found: list[Difference]) -> list[str]:
    lines: list[str] = []
    for difference in found[:SHOWN]:
        old, new = difference.shown()
        lines += [f"    {difference.place}", f"      recorded: {old}", f"      now:      {new}"]
    left = len(found) - SHOWN
    return [*lines, f"    and {left} more"] if left > 0 else lines
