"""Finds the recording that answers a request or, if there is none, describes the closest recording.

Recordings of equal requests form a lane, which is played in recorded order. A lane is looked up by the request's
fingerprint; only recordings with redacted values are compared one by one. Two threads never get the same recording.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from threading import Lock
from typing import Final

from rapidfuzz import fuzz

from statek_sim.cassettes.exchange import Exchange, Request
from statek_sim.cassettes.matching import Compared, Matching, has_redacted_place
from statek_sim.cassettes.redaction import plain_uri
from statek_sim.values import JSON


class Recordings:
    """A cassette's recordings, in file order, and which of them have been played.

    `fingerprints[n]` is the fingerprint of the request in `exchanges[n]`. Where a recorded request is redacted, any
    value matches.
    """

    def __init__(self, exchanges: Sequence[Exchange], matching: Matching) -> None:
        self.fingerprints = [matching.fingerprint(exchange.request) for exchange in exchanges]
        self.exchanges = exchanges
        self._matching = matching
        self._redacted = [
            number for number, exchange in enumerate(exchanges) if has_redacted_place(exchange.request)
        ]
        self._compared: dict[int, Compared] = {}
        self._lock = Lock()
        self._lanes: dict[str, deque[int]] = {}
        for number, fingerprint in enumerate(self.fingerprints):
            self._lanes.setdefault(fingerprint, deque()).append(number)

    def __len__(self) -> int:
        return len(self.fingerprints)

    def play(self, fingerprint: str) -> Exchange | None:
        """Return the next unplayed recording of requests with this fingerprint, or None."""
        with self._lock:
            lane = self._lanes.get(fingerprint)
            number = lane.popleft() if lane else None
        return None if number is None else self.exchanges[number]

    def can_play(self, fingerprint: str) -> bool:
        """Return whether requests with this fingerprint have an unplayed recording."""
        return bool(self._lanes.get(fingerprint))

    def lane_of(self, request: Request) -> str:
        """Return the fingerprint whose recordings answer a request.

        This is the request's own fingerprint, or that of the first unplayed recording that differs from the request
        only in redacted values.
        """
        fingerprint = self._matching.fingerprint(request)
        if self.can_play(fingerprint) or not self._redacted:
            return fingerprint
        seen = self._matching.compared(request)
        for number in self._redacted:
            lane = self.fingerprints[number]
            if self.can_play(lane) and self._seen(number).fits(seen):
                return lane
        return fingerprint

    def _seen(self, number: int) -> Compared:
        if number not in self._compared:
            self._compared[number] = self._matching.compared(self.exchanges[number].request)
        return self._compared[number]

    def knows(self, fingerprint: str) -> bool:
        """Return whether the cassette contains a recording of these requests, played or not."""
        return fingerprint in self._lanes

    def unplayed(self) -> list[int]:
        """Return the indexes of the unplayed recordings, in file order."""
        with self._lock:
            return sorted(number for lane in self._lanes.values() for number in lane)


NOTHING: Final = "(nothing)"
_WIDTH: Final = 72
"""The maximum length of a value in a message; a longer value is cut to the part around the first difference."""
_BEFORE: Final = 24


class _Missing:
    """The type of a missing value, as opposed to null."""


_MISSING: Final = _Missing()


@dataclass(frozen=True, slots=True)
class Difference:
    """A path at which two JSON values differ, and both values as JSON text; None for a missing value."""

    place: str
    old: str | None
    new: str | None

    @property
    def distance(self) -> float:
        """How much the two strings differ, from 0 (equal) to 1."""
        if self.old is None or self.new is None:
            return 1.0
        return 1 - fuzz.ratio(self.old, self.new) / 100

    def shown(self) -> tuple[str, str]:
        """Return both strings, shortened to the part around the first difference."""
        if self.old is None:
            return NOTHING, _cut(self.new or "", 0)
        if self.new is None:
            return _cut(self.old, 0), NOTHING
        first = _first_difference(self.old, self.new)
        start = max(0, first - _BEFORE) if max(len(self.old), len(self.new)) > _WIDTH else 0
        return _cut(self.old, start), _cut(self.new, start)


def differences(old: JSON, new: JSON, place: str = "") -> Iterator[Difference]:
    """Yield a difference for each path, such as `body.messages[1].content`, at which two values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys((*old, *new)):
            here = f"{place}.{key}" if place else key
            yield from _compared(here, old.get(key, _MISSING), new.get(key, _MISSING))
    elif isinstance(old, list) and isinstance(new, list):
        for number, (left, right) in enumerate(zip_longest(old, new, fillvalue=_MISSING)):
            yield from _compared(f"{place}[{number}]", left, right)
    elif old != new or type(old) is not type(new):
        yield Difference(place, _text(old), _text(new))


def _compared(place: str, old: JSON | _Missing, new: JSON | _Missing) -> Iterator[Difference]:
    if isinstance(old, _Missing) or isinstance(new, _Missing):
        sides = (None if isinstance(side, _Missing) else _text(side) for side in (old, new))
        yield Difference(place, *sides)
    else:
        yield from differences(old, new, place)


def _text(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False)


def _first_difference(old: str, new: str) -> int:
    return next(
        (n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
    )


def _cut(text: str, start: int) -> str:
    end = start + _WIDTH
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


SHOWN: Final = 6
"""Maximum number of differences in a message."""


@dataclass(frozen=True, slots=True)
class Advice:
    """Instructions for error messages: how to create a cassette, record again, and ignore `{fields}`."""

    create: str
    record: str
    ignore: str


_MOST_IGNORED: Final = 20
"""Maximum number of differences that the message suggests ignoring."""


def miss_message(
    request: Request, recordings: Recordings, path: Path, matching: Matching, advice: Advice, *, exists: bool
) -> str:
    """Return the error message for a request without an unplayed recording; `exists` is false for a new cassette."""
    seen = matching.compared(request)
    title = f"{seen.method} {plain_uri(request.uri, matching.own).partition('?')[0]}"
    if not len(recordings):
        why, how = ("is empty", advice.record) if exists else ("does not exist", advice.create)
        return f"{path}: no recording of {title}: the cassette {why}.\n  To record it: {how}"
    fingerprint = matching.fingerprint(request)
    if recordings.knows(fingerprint):
        return _all_played(title, recordings.fingerprints, fingerprint, path, advice)
    unplayed = frozenset(recordings.unplayed())
    number, found = _nearest(seen, recordings, matching, unplayed)
    line = recordings.exchanges[number].line
    played = "" if number in unplayed else ", already played"
    places = [difference.place for difference in found]
    with_body = " with this body" if any(map(_is_in_body, places)) else ""
    lines = [
        f"{path}: no recording of {title}{with_body} ({len(recordings)} recorded, {len(unplayed)} not played yet).",
        f"  The nearest is {path}:{line}{played}; differences:",
        *_difference_lines(found),
        f"  If the change is intended, record it: {advice.record}",
    ]
    if places and "method" not in places and len(places) <= _MOST_IGNORED:
        fields = list(dict.fromkeys((*matching.ignored, *places)))
        lines.append(f"  If it does not matter, ignore it: {advice.ignore.format(fields=fields)}")
    return "\n".join(lines)


def _is_in_body(place: str) -> bool:
    return place.startswith("body")


def _all_played(title: str, fingerprints: Sequence[str], fingerprint: str, path: Path, advice: Advice) -> str:
    count = fingerprints.count(fingerprint)
    times = "once" if count == 1 else f"{count} times"
    return (
        f"{path}: {title} is recorded {times} with this body, but was requested once more.\n"
        f"  If the client should repeat the request, record it: {advice.record}"
    )


def _nearest(
    seen: Compared, recordings: Recordings, matching: Matching, unplayed: frozenset[int]
) -> tuple[int, list[Difference]]:
    """Return the index of the most similar recording, and its differences from the request.

    Recordings with fewer and smaller differences take precedence; among equals, unplayed recordings do.
    """
    new = _tree(seen)
    compared = (
        (number, list(differences(_tree(matching.compared(recordings.exchanges[number].request)), new)))
        for number in range(len(recordings))
    )
    _, number, found = min(
        ((_cost(found, played=number not in unplayed), number, found) for number, found in compared),
        key=lambda entry: entry[:2],
    )
    return number, found


def _cost(found: list[Difference], *, played: bool) -> tuple[bool, float, bool]:
    elsewhere = not all(_is_in_body(difference.place) for difference in found)
    return elsewhere, sum(1 + difference.distance for difference in found), played


def _tree(seen: Compared) -> dict[str, JSON]:
    return {"method": seen.method, **dict(seen.address), "body": seen.body}


def _difference_lines(found: list[Difference]) -> list[str]:
    lines: list[str] = []
    for difference in found[:SHOWN]:
        old, new = difference.shown()
        lines += [f"    {difference.place}", f"      recorded: {old}", f"      now:      {new}"]
    left = len(found) - SHOWN
    return [*lines, f"    and {left} more"] if left > 0 else lines
