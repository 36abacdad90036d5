"""The fake server's journal: the latest requests and responses, for assertions and the journal page."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from statek_sim.cassettes.redaction import AROUND, plain_header, plain_target, sent_with, without_secrets
from statek_sim.providers.mismatch import Entry, describe
from statek_sim.providers.wire.reply import WireReply
from statek_sim.providers.wire.request import FormatName
from statek_sim.server.fault import ANSWERED, Fault
from statek_sim.server.parsed_request import json_of
from statek_sim.values import JSON

KEPT_ENTRIES: Final = 10_000
KEPT_BYTES: Final = 64 * 1024 * 1024

_MOST_PROBLEMS: Final = 100
_LARGEST_SHOWN: Final = 1024 * 1024
"""The maximum size of a JSON body on the journal page, in bytes."""
_LONGEST_SHOWN: Final = 10_000
"""The maximum length of any other body on the journal page; longer bodies are truncated."""


class JournalEntry(NamedTuple):
    """A request for a reply, embeddings or a token count, and the response to it.

    `number` starts at 1. `reply` is the script entry used, or None for a computed response, a fault or an error.
    `problem` explains why there is no answer. `latency` is in virtual seconds. `message` is the model's message in the
    response, or None for an error, raw bytes, embeddings or a count.
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
        """The entry's approximate size in memory, in bytes."""
        if self.message is None:
            return len(self.body)
        arguments = sum(len(call.arguments) for call in self.message.calls)
        return len(self.body) + len(self.message.text or "") + arguments

    @property
    def target(self) -> str:
        """The request's path and query, with secrets redacted."""
        return plain_target(self.raw_target)

    @property
    def headers(self) -> dict[str, str]:
        """The request headers, keyed by lower-case name, with secrets redacted."""
        return {name: plain_header(name, value) for name, value in self.raw_headers.items()}

    @property
    def is_answered(self) -> bool:
        """Whether the client received a complete, readable response despite any faults."""
        return all(isinstance(fault, ANSWERED) for fault in self.faults)

    @property
    def json(self) -> JSON:
        """The parsed request body; raises `ValueError` if it is not JSON or is nested too deeply."""
        return json_of(self.body)

    def __repr__(self) -> str:
        """Return the entry as one line, without secrets, because test runners print it in failed assertions."""
        return f"<{type(self).__name__} {self.line()}>"

    def line(self) -> str:
        """Return the entry as one line, for reports."""
        if self.problem is not None:
            outcome = without_secrets(self.problem.partition("\n")[0], self.sent())
        elif self.reply is not None:
            lost = "" if self.is_answered else ", not fully received by the client"
            outcome = f"reply {self.reply.position}: {describe(self.reply.reply)}{lost}"
        else:
            outcome = "no reply was used" if self.faults else "computed from the request"
        struck = f" with {', '.join(map(str, self.faults))}" if self.faults else ""
        status = "silence" if not self.status else str(self.status)
        return f"{self.number}. {self.target} -> {status}{struck}: {outcome}"

    def record(self) -> dict[str, JSON]:
        """Return the entry as JSON for the journal page, without secrets."""
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
        """Return the request body without secrets, as parsed JSON or text; a long body is truncated."""
        sent, size = self.sent(), len(self.body)
        try:
            if size <= _LARGEST_SHOWN:
                return json_of(without_secrets(self.body.decode("utf-8"), sent).encode())
        except ValueError:
            pass
        # Include text after the cut, because a secret is only recognized as a whole.
        text = without_secrets(self.body[: _LONGEST_SHOWN + AROUND].decode("utf-8", "replace"), sent)
        return text if size <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}... ({size} bytes)"

    def sent(self) -> tuple[str, ...]:
        """Return the secrets in the request's target and headers."""
        return sent_with(self.raw_target, tuple(self.raw_headers.items()))


class Journal:
    """Keeps the latest entries, up to `KEPT_ENTRIES` and about `KEPT_BYTES` of text. `total` counts all requests."""

    def __init__(self) -> None:
        self._kept: deque[JournalEntry] = deque()
        self._bytes = 0
        self.total = 0
        self.problems: list[str] = []
        """Messages about unanswered requests, limited to the first 100."""

    def add(self, entry: JournalEntry) -> None:
        """Append an entry, drop old entries beyond the limits, and record the entry's problem."""
        self.total += 1
        self._bytes += entry.size
        kept = self._kept
        kept.append(entry)
        while len(kept) > KEPT_ENTRIES or (self._bytes > KEPT_BYTES and len(kept) > 1):
            self._bytes -= kept.popleft().size
        if entry.problem is not None:
            self.add_problem(entry.problem, entry.sent())

    def add_problem(self, problem: str, sent: tuple[str, ...] = ()) -> None:
        """Record a message about an unanswered request, redacting the secrets in `sent`."""
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(without_secrets(problem, sent))

    @property
    def dropped(self) -> int:
        """The number of dropped entries."""
        return self.total - len(self._kept)

    def entries(self) -> tuple[JournalEntry, ...]:
        """Return the remaining entries, oldest first."""
        return tuple(self._kept)
