"""One test's, or one run's, use of a cassette: what is played, what may go live, what is written in the end.

The words are vcrpy's and pytest-recording's. `none` plays only. `once` records a cassette that does not exist, and
plays one that does. `new_episodes` plays what it has and records the rest. `all` records everything; recordings of
requests that came again are replaced. `rewrite` starts from nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import Final

from statek_sim.cassettes.bodies import Undecodable
from statek_sim.cassettes.exchange import Exchange, Request, Response
from statek_sim.cassettes.headers import lasting
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.nearest import Advice, miss_message
from statek_sim.cassettes.scrub import plain_uri, scrubbed
from statek_sim.cassettes.store import load, tape_of, write
from statek_sim.cassettes.tape import Tape
from statek_sim.errors import BadInput, CassetteMiss


class RecordMode(StrEnum):
    """When a request may go to the real provider."""

    NONE = "none"
    ONCE = "once"
    NEW_EPISODES = "new_episodes"
    ALL = "all"
    REWRITE = "rewrite"


ASIDE: Final = ".new.yaml"
"""How the file ends that a failed re-recording leaves beside the cassette."""

_ADVICE: Final = Advice(
    record="with record mode new_episodes or rewrite", ignore="Matching.ignoring(['{field}'])"
)


@dataclass(frozen=True, slots=True)
class Saved:
    """What closing a session wrote: the file, or None, and how many new recordings are in it."""

    path: Path | None
    recorded: int


@dataclass(slots=True)
class CassetteSession:
    """Plays and records one cassette; safe to use from several threads.

    `misses` are the messages of all misses. `shown` is how messages name the file: shorter than `path`, maybe.
    """

    path: Path
    mode: RecordMode
    matching: Matching = field(default_factory=Matching)
    index_folder: Path | None = None
    advice: Advice = _ADVICE
    shown: Path | None = None
    misses: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    _tape: Tape = field(init=False)
    _recorded: list[Exchange] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)
    _may_record: bool = field(init=False)

    def __post_init__(self) -> None:
        """Load the cassette, if the mode wants it; `BadCassette` when it is damaged."""
        exists = self.path.exists()
        self._may_record = self.mode not in (RecordMode.NONE, RecordMode.ONCE) or (
            self.mode is RecordMode.ONCE and not exists
        )
        wanted = exists and self.mode is not RecordMode.REWRITE
        self._tape = (
            load(self.path, self.matching, index_folder=self.index_folder)
            if wanted
            else tape_of([], self.matching)
        )

    @property
    def may_record(self) -> bool:
        """Whether a request that is not recorded may go live."""
        return self._may_record

    @property
    def plays(self) -> bool:
        """Whether recordings are played at all."""
        return self.mode is not RecordMode.ALL

    @property
    def recorded(self) -> int:
        """How many exchanges were recorded so far."""
        return len(self._recorded)

    def __len__(self) -> int:
        return len(self._tape)

    def can_play(self, request: Request) -> bool:
        """Whether a recording of the request is left."""
        return self.plays and (
            self._tape.can_play(self.matching.fingerprint_as_sent(request))
            or self._tape.can_play(self.matching.fingerprint(request))
        )

    def play(self, request: Request) -> Response | None:
        """Return the recorded response, or None when the request is to go live; `CassetteMiss` when it must not."""
        found = self._find(request) if self.plays else None
        if found is not None:
            return found.response
        if self._may_record:
            return None
        message = miss_message(request, self._tape, self.shown or self.path, self.matching, self.advice)
        self.misses.append(message)
        raise CassetteMiss(message)

    def _find(self, request: Request) -> Exchange | None:
        found = self._tape.play(self.matching.fingerprint_as_sent(request))
        return found or self._tape.play(self.matching.fingerprint(request))

    def record(self, request: Request, response: Response) -> None:
        """Keep a live exchange, without its secrets and its headers that change each time, for `close` to write.

        What may not be written, because nobody can say what is in it, is among `refused`, and `close` tells of it.
        """
        try:
            exchange = lasting(scrubbed(Exchange(request=request, response=response), self.matching.own))
        except (BadInput, Undecodable) as error:
            asked = f"{request.method} {plain_uri(request.uri, self.matching.own)}"
            self.refused.append(f"{self.shown or self.path}: not recorded: {asked}: {error}")
            return
        with self._lock:
            self._recorded.append(exchange)

    def recordings(self) -> list[Exchange]:
        """Return what the cassette holds, in the order of the file."""
        return self._tape.exchanges()

    def unplayed(self) -> list[Exchange]:
        """Return the recordings that nobody asked for. None while recording: the file is about to change."""
        if self._may_record:
            return []
        return [self._tape.exchange(number) for number in self._tape.unplayed()]

    def close(self, *, failed: bool = False) -> Saved:
        """Write what was recorded. After a failure a file that would be replaced stays; the new one is put aside.

        `BadInput` when it cannot be written, and, unless the run failed already, when something was not recorded.
        """
        saved = self._save(failed=failed)
        if self.refused and not failed:
            raise BadInput("\n".join(self.refused))
        return saved

    def _save(self, *, failed: bool) -> Saved:
        if not self._recorded:
            if self.mode is RecordMode.REWRITE and not failed:
                self.path.unlink(missing_ok=True)
            return Saved(None, 0)
        replaces = self.mode in (RecordMode.ALL, RecordMode.REWRITE) and self.path.exists()
        target = self.path.with_suffix(ASIDE) if failed and replaces else self.path
        write(target, self._kept() + self._recorded)
        return Saved(target, len(self._recorded))

    def _kept(self) -> list[Exchange]:
        """Return the old recordings that stay in the file."""
        if self.mode is not RecordMode.ALL:
            return self._tape.exchanges()
        new = {self.matching.fingerprint(exchange.request) for exchange in self._recorded}
        return [
            self._tape.exchange(number)
            for number, fingerprint in enumerate(self._tape.fingerprints)
            if fingerprint not in new
        ]


def record_mode(name: str) -> RecordMode:
    """Return the mode of that name; `BadInput` for a name that is none."""
    try:
        return RecordMode(name)
    except ValueError:
        raise BadInput(f"record mode {name!r}: expected {', '.join(RecordMode)}") from None
