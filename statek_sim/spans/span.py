"""Spans as values: what took time in a run, under what, with which marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from statek_sim.spans.names import Operation

Attribute = str | int | float | bool | Sequence[str]
"""What an attribute may be."""


class Mark(NamedTuple):
    """Something that happened in a span, at a virtual second."""

    name: str
    at: float
    attributes: Mapping[str, Attribute]


class Span(NamedTuple):
    """One span. `start` and `end` are virtual seconds; `end` is None for one that has none yet.

    `seq` is its place in the order in which spans began, from 1. `trace` (32 hexadecimal digits) and `id` (16) are made
    from the run's id and that place: equal runs have equal ids. `error` is why it failed, None where it did not.
    """

    seq: int
    trace: str
    id: str
    parent: str | None
    job: str
    operation: Operation
    name: str
    start: float
    end: float | None
    attributes: Mapping[str, Attribute]
    marks: tuple[Mark, ...]
    error: str | None

    @property
    def seconds(self) -> float | None:
        """How long it took."""
        return None if self.end is None else self.end - self.start


def named(spans: Sequence[Span], name: str | None) -> list[Span]:
    """Return the spans of an operation, or with this whole name; all where `name` is None."""
    return [span for span in spans if name is None or name in (span.operation, span.name)]
