"""The traces of both runtimes, held against each other event by event."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from statek_sim import trace as events
from statek_sim.compare.normalization import normal, normal_local
from statek_sim.trace import Event, as_dict
from statek_sim.usage.totals import approx_tokens
from statek_sim.values import JSON

UNSEEN_FIELDS: Final = {
    (
        "LLMReplied",
        "measured_prompt",
    ): "what a tokenizer measures is this package's own; STATEK does not measure",
    ("LLMReplied", "measured_completion"): "what a tokenizer measures is this package's own",
}
"""Facts of events that the real package cannot tell, with the reason. Every kind of event can be seen there."""


@dataclass(frozen=True, slots=True)
class Parting:
    """The first event that differs: its position, and what each side has there (None: its trace has ended)."""

    position: int
    reference: dict[str, JSON] | None
    installed: dict[str, JSON] | None


def parting(reference: Sequence[Event], installed: Sequence[Event]) -> Parting | None:
    """Return where two traces part, None when they are the same."""
    pairs = zip_longest(comparable(reference), comparable(installed))
    for position, (ours, theirs) in enumerate(pairs):
        if ours != theirs:
            return Parting(position, ours, theirs)
    return None


def comparable(trace: Iterable[Event]) -> Iterator[dict[str, JSON]]:
    """Yield events as plain values: without what only one side can know, machine-dependent text made normal."""
    requests = Requests()
    usage: dict[str, _Usage] = defaultdict(_Usage)
    for event in trace:
        if isinstance(event, events.StoreRemark):
            # What is said about a loss; the loss itself shows in what both sides have.
            continue
        kind = type(event).__name__
        fields: dict[str, JSON] = json.loads(json.dumps(as_dict(event), default=dict))
        if isinstance(event, events.LLMRequested):
            correction = requests.correction(event)
            usage[event.job].asked(event.bytes_sent, correction)
            fields["bytes_sent"] = event.bytes_sent + correction
            # A text with an id of the store may be another one although nothing else is: count in normal text.
            fields["kept"], fields["new"] = requests.kept(event.job)
        elif isinstance(event, events.LLMReplied):
            usage[event.job].answered(event.bytes_received)
        elif isinstance(event, events.DifficultyRaised) and usage[event.job].correction:
            fields["tokens"] = usage[event.job].tokens
        yield {
            name: _normal(name, value) for name, value in fields.items() if (kind, name) not in UNSEEN_FIELDS
        }


@dataclass(slots=True)
class _Usage:
    """What the answered requests of one job came to, in bytes; `correction` is what normal text adds to them."""

    sent: int = 0
    received: int = 0
    correction: int = 0
    _latest: tuple[int, int] = (0, 0)

    def asked(self, size: int, correction: int) -> None:
        self._latest = size, correction

    def answered(self, size: int) -> None:
        sent, correction = self._latest
        self.sent += sent
        self.correction += correction
        self.received += size

    @property
    def tokens(self) -> int:
        return approx_tokens(self.sent + self.correction, self.received)


_SHOWN: Final = ("arguments", "context", "detail", "result")
"""Fields that hold values as texts that no agent ever sees."""


def _normal(name: str, value: JSON) -> JSON:
    return normal_local(normal(value)) if name in _SHOWN else normal(value)


class Requests:
    """The messages that jobs have sent, put together from what was new in each request."""

    def __init__(self) -> None:
        self._messages: dict[str, list[JSON]] = {}
        self._usual: dict[str, list[JSON]] = {}
        self._before: dict[str, list[JSON]] = {}

    def correction(self, request: events.LLMRequested) -> int:
        """Return by how many bytes a request would be longer with normal text."""
        kept = self._messages.get(request.job, [])[: request.kept]
        messages: list[JSON] = [*kept, *map(dict, request.new)]
        self._messages[request.job] = messages
        usual = normal(messages)
        self._before[request.job] = self._usual.get(request.job, [])
        self._usual[request.job] = usual if isinstance(usual, list) else messages
        return 0 if usual == messages else len(json.dumps(usual)) - len(json.dumps(messages))

    def kept(self, job: str) -> tuple[int, list[JSON]]:
        """Return how many messages of a job's latest request the one before had, and the rest, in normal text."""
        before, now = self._before[job], self._usual[job]
        kept = next(
            (place for place, (old, new) in enumerate(zip(before, now, strict=False)) if old != new),
            min(len(before), len(now)),
        )
        return kept, now[kept:]


def size_corrections(trace: Iterable[Event]) -> dict[str, int]:
    """Return by how many bytes each job's answered requests would be longer with normal text."""
    requests = Requests()
    usage: dict[str, _Usage] = defaultdict(_Usage)
    for event in trace:
        if isinstance(event, events.LLMRequested):
            usage[event.job].asked(event.bytes_sent, requests.correction(event))
        elif isinstance(event, events.LLMReplied):
            usage[event.job].answered(event.bytes_received)
    return {job: used.correction for job, used in usage.items()}
