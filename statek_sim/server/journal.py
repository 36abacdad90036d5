"""What the server was asked and what it did, for tests to assert on. Old entries make room, so memory stays flat."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from statek_sim.cassettes.redaction import AROUND, plain_header, plain_target, sent_with, without_secrets
from statek_sim.cassettes.secret_rules import is_secret_header
from statek_sim.providers.mismatch import describe
from statek_sim.providers.scripted import Entry
from statek_sim.providers.wire.request import FormatName
from statek_sim.server.fault import ANSWERED, Fault
from statek_sim.server.parsed_request import json_of
from statek_sim.values import JSON

KEPT_ENTRIES: Final = 10_000
KEPT_BYTES: Final = 64 * 1024 * 1024

_MOST_PROBLEMS: Final = 100
_LARGEST_SHOWN: Final = 1024 * 1024
"""Bytes of the largest body that the journal's page shows whole."""
_LONGEST_SHOWN: Final = 10_000
"""Bytes of another body, or of one that is no JSON, that it shows."""

HIDDEN: Final = "(hidden)"

_SECRET_PARAMETER: Final = re.compile(r"([?&](?:key|api[-_]key|token|access_token)=)[^&]*", re.IGNORECASE)


class JournalEntry(NamedTuple):
    """One request, for a reply, an embedding or a count, and what became of it.

    `number` counts from 1. `reply` is the script entry that answered, None when a fault or an error did; `problem`
    says why there was no answer. `latency` is the virtual seconds that the answer took.
    """

    number: int
    wire: FormatName
    raw_target: str
    raw_headers: Mapping[str, str]
    body: bytes
    status: int
    reply: Entry | None = None
    faults: tuple[Fault, ...] = ()
    problem: str | None = None
    latency: float = 0.0

    @property
    def target(self) -> str:
        """The path and query as asked for, without secrets."""
        return _SECRET_PARAMETER.sub(rf"\1{HIDDEN}", plain_target(self.raw_target))

    @property
    def headers(self) -> dict[str, str]:
        """The headers by name in lower case; credentials are hidden, by name and by how they look."""
        return {
            name: HIDDEN if is_secret_header(name) else plain_header(name, value)
            for name, value in self.raw_headers.items()
        }

    @property
    def is_answered(self) -> bool:
        """Whether no fault kept the client from a whole and readable answer."""
        return all(isinstance(fault, ANSWERED) for fault in self.faults)

    @property
    def json(self) -> JSON:
        """The body, as it is; `ValueError` when it is no JSON, or nested deeper than any request is."""
        return json_of(self.body)

    def __repr__(self) -> str:
        """Return the entry without secrets: test runners print what an assertion is about."""
        return f"<{type(self).__name__} {self.line()}>"

    def line(self) -> str:
        """Return the entry in one line, for people."""
        if self.problem is not None:
            outcome = without_secrets(self.problem.partition("\n")[0], self.sent())
        elif self.reply is not None:
            lost = "" if self.is_answered else ", which the client never got whole"
            outcome = f"reply {self.reply.position}: {describe(self.reply.reply)}{lost}"
        else:
            outcome = "no reply was used" if self.faults else "worked out from the request"
        struck = f" with {', '.join(map(str, self.faults))}" if self.faults else ""
        status = "silence" if not self.status else str(self.status)
        return f"{self.number}. {self.target} -> {status}{struck}: {outcome}"

    def record(self) -> dict[str, JSON]:
        """Return the entry as the server's journal page shows it: without secrets."""
        return {
            "number": self.number,
            "format": self.wire,
            "target": self.target,
            "headers": {**self.headers},
            "body": self._shown_body(),
            "status": self.status,
            "reply": None if self.reply is None else self.reply.position,
            "said": None if self.reply is None else describe(self.reply.reply),
            "faults": [str(fault) for fault in self.faults],
            "problem": None if self.problem is None else without_secrets(self.problem, self.sent()),
            "latency": self.latency,
        }

    def _shown_body(self) -> JSON:
        """Return the body without secrets: a document, or as text, of a long one its start and its size."""
        sent, size = self.sent(), len(self.body)
        try:
            if size <= _LARGEST_SHOWN:
                return json_of(without_secrets(self.body.decode("utf-8"), sent).encode())
        except ValueError:
            pass
        # With what comes behind the start: a secret that goes on there is none to see where it was cut.
        text = without_secrets(self.body[: _LONGEST_SHOWN + AROUND].decode("utf-8", "replace"), sent)
        return text if size <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}... ({size} bytes)"

    def sent(self) -> tuple[str, ...]:
        """Return the secrets that the request was sent with."""
        return sent_with(self.raw_target, tuple(self.raw_headers.items()))


class Journal:
    """The latest entries, at most `entries` of them and about `size` bytes of bodies. `total` counts all there were."""

    def __init__(self, entries: int = KEPT_ENTRIES, size: int = KEPT_BYTES) -> None:
        self._kept: deque[JournalEntry] = deque()
        self._most = entries
        self._size = size
        self._bytes = 0
        self.total = 0
        self.problems: list[str] = []
        """What went wrong, in words: requests without an answer. The first ones."""

    def add(self, entry: JournalEntry) -> None:
        """Write an entry down."""
        self.total += 1
        self._bytes += len(entry.body)
        kept = self._kept
        kept.append(entry)
        while len(kept) > self._most or (self._bytes > self._size and len(kept) > 1):
            self._bytes -= len(kept.popleft().body)
        if entry.problem is not None:
            self.add_problem(entry.problem, entry.sent())

    def add_problem(self, problem: str, sent: tuple[str, ...] = ()) -> None:
        """Note what went wrong, without what was `sent`; a flood of problems is no more than its first ones."""
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(without_secrets(problem, sent))

    @property
    def dropped(self) -> int:
        """How many entries had to make room."""
        return self.total - len(self._kept)

    def entries(self) -> tuple[JournalEntry, ...]:
        """Return what is kept, oldest first."""
        return tuple(self._kept)
