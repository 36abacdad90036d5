"""The server's requests and answers, for assertions in tests. Old entries are dropped, so memory stays bounded."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from statek_sim.cassettes.redaction import AROUND, plain_header, plain_target, sent_with, without_secrets
from statek_sim.cassettes.secret_rules import is_secret_header
from statek_sim.providers.mismatch import describe
from statek_sim.providers.scripted import Entry
from statek_sim.providers.wire.reply import WireReply
from statek_sim.providers.wire.request import FormatName
from statek_sim.server.fault import ANSWERED, Fault
from statek_sim.server.parsed_request import json_of
from statek_sim.values import JSON

KEPT_ENTRIES: Final = 10_000
KEPT_BYTES: Final = 64 * 1024 * 1024

_MOST_PROBLEMS: Final = 100
_LARGEST_SHOWN: Final = 1024 * 1024
"""Maximum bytes of a JSON body that the journal's page shows in full."""
_LONGEST_SHOWN: Final = 10_000
"""Maximum bytes shown of a body in another format."""

HIDDEN: Final = "(hidden)"

_SECRET_PARAMETER: Final = re.compile(r"([?&](?:key|api[-_]key|token|access_token)=)[^&]*", re.IGNORECASE)


class JournalEntry(NamedTuple):
    """One request for a reply, an embedding or a count, and its outcome.

    `number` counts from 1. `reply` is the script entry that answered, None if a fault or an error was the answer;
    `problem` says why there was no answer. `latency` is the virtual seconds of the answer. `message` is the model's
    message in the answer, None for an error, raw bytes, an embedding or a count.
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
    message: WireReply | None = None

    @property
    def size(self) -> int:
        """Characters and bytes that the entry keeps in memory."""
        if self.message is None:
            return len(self.body)
        arguments = sum(len(call.arguments) for call in self.message.calls)
        return len(self.body) + len(self.message.text or "") + arguments

    @property
    def target(self) -> str:
        """The requested path and query, with secrets removed."""
        return _SECRET_PARAMETER.sub(rf"\1{HIDDEN}", plain_target(self.raw_target))

    @property
    def headers(self) -> dict[str, str]:
        """The headers by lower-case name; credentials are hidden, by name and by pattern."""
        return {
            name: HIDDEN if is_secret_header(name) else plain_header(name, value)
            for name, value in self.raw_headers.items()
        }

    @property
    def is_answered(self) -> bool:
        """Whether the client got a complete and readable answer, despite any faults."""
        return all(isinstance(fault, ANSWERED) for fault in self.faults)

    @property
    def json(self) -> JSON:
        """The parsed body; raises `ValueError` if it is not JSON, or nested too deeply."""
        return json_of(self.body)

    def __repr__(self) -> str:
        """Return the entry without secrets, because test runners print it in failed assertions."""
        return f"<{type(self).__name__} {self.line()}>"

    def line(self) -> str:
        """Return the entry on one line, for people."""
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
        """Return the entry for the server's journal page, without secrets."""
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
        """Return the body without secrets: a document, or text, shortened to its start and its size if long."""
        sent, size = self.sent(), len(self.body)
        try:
            if size <= _LARGEST_SHOWN:
                return json_of(without_secrets(self.body.decode("utf-8"), sent).encode())
        except ValueError:
            pass
        # Include text after the cut: a secret that continues there would not be recognized otherwise.
        text = without_secrets(self.body[: _LONGEST_SHOWN + AROUND].decode("utf-8", "replace"), sent)
        return text if size <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}... ({size} bytes)"

    def sent(self) -> tuple[str, ...]:
        """Return the secrets in the request."""
        return sent_with(self.raw_target, tuple(self.raw_headers.items()))


class Journal:
    """The latest entries, limited to `entries` and about `size` bytes of texts. `total` counts all requests."""

    def __init__(self, entries: int = KEPT_ENTRIES, size: int = KEPT_BYTES) -> None:
        self._kept: deque[JournalEntry] = deque()
        self._most = entries
        self._size = size
        self._bytes = 0
        self.total = 0
        self.problems: list[str] = []
        """The first problems in words: requests without an answer."""

    def add(self, entry: JournalEntry) -> None:
        """Add an entry."""
        self.total += 1
        self._bytes += entry.size
        kept = self._kept
        kept.append(entry)
        while len(kept) > self._most or (self._bytes > self._size and len(kept) > 1):
            self._bytes -= kept.popleft().size
        if entry.problem is not None:
            self.add_problem(entry.problem, entry.sent())

    def add_problem(self, problem: str, sent: tuple[str, ...] = ()) -> None:
        """Record a problem, without the secrets in `sent`; only the first ones are kept."""
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(without_secrets(problem, sent))

    @property
    def dropped(self) -> int:
        """Number of dropped entries."""
        return self.total - len(self._kept)

    def entries(self) -> tuple[JournalEntry, ...]:
        """Return the kept entries, oldest first."""
        return tuple(self._kept)
