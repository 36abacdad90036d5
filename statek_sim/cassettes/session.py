"""Plays and records a cassette for one test or one run.

The record modes are the same as in vcrpy and pytest-recording. `none` only plays. `once` records a cassette that does
not exist, and only plays an existing one. `new_episodes` plays existing recordings and records all other requests.
`all` records every request, and replaces recordings of the same requests. `rewrite` starts with an empty cassette.
Sessions with the same `Run` share their cassettes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import Final

from statek_sim.cassettes.bodies import Undecodable
from statek_sim.cassettes.document import decoded
from statek_sim.cassettes.exchange import Exchange, Request, Response
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.recording_lookup import Advice, Recordings, miss_message
from statek_sim.cassettes.redaction import lasting, plain_uri, redacted
from statek_sim.cassettes.secret_detection import known_in
from statek_sim.cassettes.store import (
    LONGEST_NAME,
    Recorded,
    Run,
    check_changeable,
    check_writable,
    load,
    merged,
)
from statek_sim.errors import BadInput, CassetteMiss


class RecordMode(StrEnum):
    """When a request may be sent to the real provider."""

    NONE = "none"
    ONCE = "once"
    NEW_EPISODES = "new_episodes"
    ALL = "all"
    REWRITE = "rewrite"


ASIDE: Final = ".new.yaml"
"""Suffix of the file next to the cassette to which a failed re-recording is written."""

_ADVICE: Final = Advice(
    create="with record mode once",
    record="with record mode new_episodes or rewrite",
    ignore="Matching.ignoring({fields})",
)


@dataclass(frozen=True, slots=True)
class Saved:
    """The file that a closed session wrote, or None, and the number of new recordings."""

    path: Path | None
    recorded: int


@dataclass(slots=True)
class CassetteSession:
    """Plays and records one cassette; thread-safe.

    `exchanges` holds all requests so far with their responses, played or live, including their secrets. `misses` holds
    the error messages for requests without a recording, and `refused` those for exchanges that are not recorded.
    `shown` is the file's name in messages. Values of `environment` variables whose names denote secrets are not
    recorded.
    """

    path: Path
    mode: RecordMode
    matching: Matching = field(default_factory=Matching)
    advice: Advice = _ADVICE
    shown: Path | None = None
    misses: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list, repr=False)
    _recordings: Recordings = field(init=False)
    run: Run = field(default_factory=Run)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    _recorded: list[Recorded] = field(default_factory=list)
    _times: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)
    _may_record: bool = field(init=False)
    _existed: bool = field(init=False)

    def __post_init__(self) -> None:
        """Load the cassette if the mode plays it; raises `BadCassette` if it is invalid, `BadInput` if not writable."""
        records = self.mode is not RecordMode.NONE
        if records:
            check_writable(self.path)
        self._existed = self.run.state(self.path).existed if records else self.path.exists()
        self._may_record = records and not (self.mode is RecordMode.ONCE and self._existed)
        if self._may_record and self.path.exists():
            check_changeable(self.path)
        wanted = self.path.exists() and self.mode is not RecordMode.REWRITE
        self._recordings = load(self.path, self.matching) if wanted else Recordings([], self.matching)

    @property
    def may_record(self) -> bool:
        """Whether a request without a recording may be sent to the provider."""
        return self._may_record

    @property
    def plays(self) -> bool:
        """Whether the record mode plays recordings."""
        return self.mode is not RecordMode.ALL

    @property
    def recorded(self) -> int:
        """The number of exchanges recorded so far."""
        return len(self._recorded)

    def __len__(self) -> int:
        return len(self._recordings)

    def can_play(self, request: Request) -> bool:
        """Return whether the request has an unplayed recording."""
        return self.plays and self._recordings.can_play(self._recordings.lane_of(request))

    def play(self, request: Request) -> Response | None:
        """Return the recorded response, or None if the request may be sent to the provider.

        Raises `CassetteMiss` if there is no recording and nothing may be recorded.
        """
        while self.plays and self._recordings.can_play(lane := self._recordings.lane_of(request)):
            # Another thread may have played the last recording meanwhile.
            found = self._recordings.play(lane)
            if found is not None:
                if self._may_record:
                    self._count(lane)
                self.exchanges.append(Exchange(request=request, response=found.response))
                return found.response
        if self._may_record:
            return None
        path, exists = self.shown or self.path, self._existed
        message = miss_message(request, self._recordings, path, self.matching, self.advice, exists=exists)
        self.misses.append(message)
        raise CassetteMiss(message)

    def record(self, request: Request, response: Response) -> None:
        """Record a live exchange, without secrets and changing headers; `close` writes the recordings.

        An exchange that cannot be checked for secrets is not recorded; `close` raises an error about it.
        """
        whole = Exchange(request=request, response=response)
        self.exchanges.append(whole)
        try:
            exchange = lasting(redacted(whole, self.matching.own, known_in(self.environment)))
        except (BadInput, Undecodable) as error:
            question = f"{request.method} {plain_uri(request.uri, self.matching.own)}"
            self.refuse(f"{question}: {error}")
            return
        fingerprint = self.matching.fingerprint(exchange.request)
        self._recorded.append(Recorded(fingerprint, self._count(fingerprint), exchange))

    def refuse(self, why: str) -> None:
        """Note why an exchange is not recorded (such as a truncated response); `close` then raises an error."""
        self.refused.append(f"{self.shown or self.path}: not recorded: {why}")

    def _count(self, fingerprint: str) -> int:
        """Count a request, and return how often it occurred before."""
        with self._lock:
            self._times[fingerprint] += 1
            return self._times[fingerprint] - 1

    def readable(self) -> list[Exchange]:
        """Return the exchanges so far, with decoded bodies where possible."""
        return [decoded(exchange) for exchange in self.exchanges]

    def recordings(self) -> list[Exchange]:
        """Return the cassette's recordings, in file order."""
        return [*self._recordings.exchanges]

    def unplayed(self) -> list[Exchange]:
        """Return the recordings that were not played; empty while recording, because the file will change."""
        if self._may_record:
            return []
        return [self._recordings.exchanges[number] for number in self._recordings.unplayed()]

    def close(self, *, failed: bool = False) -> Saved:
        """Write the recordings; return the file and the number of recordings.

        After a failed run, an existing cassette is kept, and new recordings that would replace it are written next to
        it. Raises `BadInput` if the file cannot be written or, unless the run `failed`, if an exchange was not
        recorded, such as a truncated response.
        """
        saved = self._save(failed=failed)
        if self.refused and not failed:
            raise BadInput("\n".join(self.refused))
        return saved

    def _save(self, *, failed: bool) -> Saved:
        count = self.recorded
        if not self._may_record:
            return Saved(None, 0)
        rewrites = self.mode is RecordMode.REWRITE
        replaces = self.mode is RecordMode.ALL
        if failed and (rewrites or replaces) and self._existed:
            if not count:
                return Saved(None, 0)
            target = aside(self.path)
            alone = replace(self.run, sharers=frozenset())
            merged(target, self._recorded, self.matching, rewrites=True, replaces=False, run=alone)
            return Saved(target, count)
        if count or (rewrites and not failed):
            merged(
                self.path, self._recorded, self.matching, rewrites=rewrites, replaces=replaces, run=self.run
            )
        return Saved(self.path if count else None, count)


def aside(path: Path) -> Path:
    """Return the path next to a cassette to which a failed re-recording is written."""
    stem = path.name.removesuffix(path.suffix)
    room = LONGEST_NAME - len(ASIDE)
    return path.with_name(f"{os.fsencode(stem)[:room].decode('utf-8', 'ignore')}{ASIDE}")


def record_mode(name: str) -> RecordMode:
    """Return the record mode named `name`; raises `BadInput` for an unknown name."""
    try:
        return RecordMode(name)
    except ValueError:
        raise BadInput(f"record mode {name!r}: expected {', '.join(RecordMode)}") from None
