"""The shape of a trace: which kinds of events follow one another, without names, texts, amounts and times."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from statek_sim import trace as events
from statek_sim.trace import Event


def shape_of(trace: Iterable[Event]) -> tuple[str, ...]:
    """Return a word per event; the same word several times in a row is one."""
    return tuple(word for word, _ in groupby(map(_word, trace)))


def digest_of(shape: Sequence[str]) -> str:
    """Return what tells one shape from another."""
    return hashlib.blake2b("\n".join(shape).encode(), digest_size=12).hexdigest()


def steps_of(shape: Sequence[str]) -> Iterator[str]:
    """Yield every three words that follow one another: what a kept example has to have a new one of."""
    padded = ("", "", *shape, "")
    for triple in zip(padded, padded[1:], padded[2:], strict=False):
        yield hashlib.blake2b("\n".join(triple).encode(), digest_size=6).hexdigest()


def _word(event: Event) -> str:
    """Return the kind of an event, and what of it is one of few."""
    kind = type(event).__name__
    match event:
        case events.StatusChanged():
            return f"{kind} {event.new}"
        case events.JobStopped():
            return f"{kind} {event.reason}"
        case events.ToolCalled() | events.ToolReturned() | events.HandlerRan() | events.HandlerRegistered():
            return f"{kind} {event.name}"
        case events.WorldChanged(subject="ledger"):
            return f"{kind} ledger"
        case events.WorldChanged():
            return f"{kind} {event.change.partition(' ')[0]}"
    return kind
