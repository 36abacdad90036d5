"""One test's, or one run's, use of a cassette.

Which requests are played, which may go live, and what is written at the end. The modes are vcrpy's and
pytest-recording's. `none` only plays. `once` records a cassette that does not exist, and plays one that does.
`new_episodes` plays existing recordings and records the rest. `all` records everything, and replaces recordings of
repeated requests. `rewrite` starts with an empty cassette. Sessions of one `Run` share their cassettes.
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
from statek_sim.cassettes.redaction import lasting, plain_uri, redacted
from statek_sim.cassettes.secret_finder import known_in
from statek_sim.cassettes.store import (
    LONGEST_NAME,
    Recorded,
    Run,
    check_changeable,
    check_writable,
    load,
    merged,
    tape_of,
)
from statek_sim.cassettes.tape import Advice, Tape, miss_message
from statek_sim.errors import BadInput, CassetteMiss


class RecordMode(StrEnum):
    """When a request may go to the real provider."""

    NONE = "none"
    ONCE = "once"
    NEW_EPISODES = "new_episodes"
    ALL = "all"
    REWRITE = "rewrite"


ASIDE: Final = ".new.yaml"
"""Suffix of the file that a failed re-recording leaves next to the cassette."""

_ADVICE: Final = Advice(
    create="with record mode once",
    record="with record mode new_episodes or rewrite",
    ignore="Matching.ignoring({fields})",
)


@dataclass(frozen=True, slots=True)
class Saved:
    """Result of closing a session: the file, or None, and the number of new recordings in it."""

    path: Path | None
    recorded: int


@dataclass(slots=True)
class CassetteSession:
    """Plays and records one cassette; thread-safe.

    `exchanges` are the requests so far with their responses, played or live, as they were sent: with their secrets.
    `misses` are the messages of all misses. `shown` is the file's name in messages, possibly shorter than `path`.
    Secrets in `environment`, by the names of its variables, are not recorded.
    """

    path: Path
    mode: RecordMode
    matching: Matching = field(default_factory=Matching)
    advice: Advice = _ADVICE
    shown: Path | None = None
    misses: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list, repr=False)
    _tape: Tape = field(init=False)
    run: Run = field(default_factory=Run)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    _recorded: list[Recorded] = field(default_factory=list)
    _times: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)
    _may_record: bool = field(init=False)
    _existed: bool = field(init=False)

    def __post_init__(self) -> None:
        """Load the cassette, if the mode needs it; raises `BadCassette` if it is damaged."""
        records = self.mode is not RecordMode.NONE
        if records:
            check_writable(self.path)
        self._existed = self.run.state(self.path).existed if records else self.path.exists()
        self._may_record = records and not (self.mode is RecordMode.ONCE and self._existed)
        if self._may_record and self.path.exists():
            check_changeable(self.path)
        wanted = self.path.exists() and self.mode is not RecordMode.REWRITE
        self._tape = load(self.path, self.matching) if wanted else tape_of([], self.matching)

    @property
    def may_record(self) -> bool:
        """Whether a request without a recording may go live."""
        return self._may_record

    @property
    def plays(self) -> bool:
        """Whether the mode plays recordings."""
        return self.mode is not RecordMode.ALL

    @property
    def recorded(self) -> int:
        """Number of exchanges recorded so far."""
        return len(self._recorded)

    def __len__(self) -> int:
        return len(self._tape)

    def can_play(self, request: Request) -> bool:
        """Return whether the request has an unplayed recording."""
        return self.plays and self._tape.can_play(self._tape.lane_of(request, self.matching))

    def play(self, request: Request) -> Response | None:
        """Return the recorded response, or None if the request is to go live; raises `CassetteMiss` if it must not."""
        while self.plays and self._tape.can_play(lane := self._tape.lane_of(request, self.matching)):
            # Another thread may have taken it.
            found = self._tape.play(lane)
            if found is not None:
                if self._may_record:
                    self._count(lane)
                self.exchanges.append(Exchange(request=request, response=found.response))
                return found.response
        if self._may_record:
            return None
        path, exists = self.shown or self.path, self._existed
        message = miss_message(request, self._tape, path, self.matching, self.advice, exists=exists)
        self.misses.append(message)
        raise CassetteMiss(message)

    def record(self, request: Request, response: Response) -> None:
        """Keep a live exchange for `close` to write, without its secrets and its volatile headers.

        An exchange that cannot be checked for secrets is added to `refused`, and `close` reports it.
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
        """Record an omission and its reason, such as a truncated answer, for `close` to report."""
        self.refused.append(f"{self.shown or self.path}: not recorded: {why}")

    def _count(self, fingerprint: str) -> int:
        """Count a request, and return its number of earlier occurrences."""
        with self._lock:
            self._times[fingerprint] += 1
            return self._times[fingerprint] - 1

    def readable(self) -> list[Exchange]:
        """Return the exchanges so far with their bodies decoded, if possible."""
        return [decoded(exchange) for exchange in self.exchanges]

    def recordings(self) -> list[Exchange]:
        """Return the recordings of the cassette, in the order of the file."""
        return [*self._tape.exchanges]

    def unplayed(self) -> list[Exchange]:
        """Return the recordings that were not used. None while recording: the file is about to change."""
        if self._may_record:
            return []
        return [self._tape.exchanges[number] for number in self._tape.unplayed()]

    def close(self, *, failed: bool = False) -> Saved:
        """Write the recordings. After a failure an existing file is kept; the new one is written next to it.

        Raises `BadInput` if it cannot be written, and, unless the run already failed, if something was not recorded: a
        body that cannot be checked for secrets, a truncated answer.
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
    """Return the path for a failed re-recording, next to the cassette and with a name that is not too long."""
    stem = path.name.removesuffix(path.suffix)
    room = LONGEST_NAME - len(ASIDE)
    return path.with_name(f"{os.fsencode(stem)[:room].decode('utf-8', 'ignore')}{ASIDE}")


def record_mode(name: str) -> RecordMode:
    """Return the mode of that name; raises `BadInput` for an unknown one."""
    try:
        return RecordMode(name)
    except ValueError:
        raise BadInput(f"record mode {name!r}: expected {', '.join(RecordMode)}") from None
