"""Exports spans to OpenTelemetry, from a finished trace or live while an agent runs (extra `otel`).

Only this module uses OpenTelemetry's SDK. Ids and times are taken from the spans, so equal runs export equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final, Protocol

from opentelemetry import context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event as SdkEvent
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from statek_sim.clock import EPOCH
from statek_sim.errors import BadInput
from statek_sim.spans import names
from statek_sim.spans.build import SpanBuilder, spans_of
from statek_sim.spans.names import Operation
from statek_sim.spans.span import Cost, Span
from statek_sim.trace import Event, Trace

SCOPE: Final = InstrumentationScope("statek_sim", schema_url=names.SCHEMA_URL)
_NANOSECONDS: Final = 1_000_000_000
_FLAGS: Final = TraceFlags(TraceFlags.SAMPLED)
_CLIENTS: Final = frozenset({Operation.CHAT})


class Processor(Protocol):
    """Receives finished spans. The SDK's span processors, such as `BatchSpanProcessor`, implement this."""

    def on_end(self, span: ReadableSpan) -> None:
        """Process one span."""


def readable(
    span: Span, *, start: datetime = EPOCH, service: str = "agent", resource: Resource | None = None
) -> ReadableSpan:
    """Convert a span to the SDK's form; `start` is the wall time at virtual second 0."""
    zero = _nanoseconds(start)
    begun = zero + round(span.start * _NANOSECONDS)
    last = max([span.start, *(mark.at for mark in span.marks)])
    return ReadableSpan(
        name=span.name,
        context=_context(span.trace, span.id),
        parent=None if span.parent is None else _context(span.trace, span.parent),
        resource=resource or Resource({"service.name": service}),
        attributes=dict(span.attributes),
        events=[
            SdkEvent(mark.name, dict(mark.attributes), zero + round(mark.at * _NANOSECONDS))
            for mark in span.marks
        ],
        kind=SpanKind.CLIENT if span.operation in _CLIENTS else SpanKind.INTERNAL,
        instrumentation_scope=SCOPE,
        status=Status(StatusCode.UNSET) if span.error is None else Status(StatusCode.ERROR, span.error),
        start_time=begun,
        end_time=zero + round((last if span.end is None else span.end) * _NANOSECONDS),
    )


def _context(trace: str, span: str) -> SpanContext:
    return SpanContext(int(trace, 16), int(span, 16), is_remote=False, trace_flags=_FLAGS)


def _nanoseconds(moment: datetime) -> int:
    whole = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).replace(microsecond=0)
    return int(whole.timestamp()) * _NANOSECONDS + moment.microsecond * 1000


def trace_spans(
    trace: Trace,
    *,
    start: datetime = EPOCH,
    service: str = "agent",
    provider: str | None = None,
    content: bool = False,
    cost: Cost | None = None,
) -> list[ReadableSpan]:
    """Return all spans in a trace in the SDK's form; the run's id is the digest of the trace."""
    resource = Resource({"service.name": service})
    found = spans_of(trace.events, trace.digest(), provider=provider, content=content, cost=cost)
    return [readable(span, start=start, resource=resource) for span in found]


def send(spans: Iterable[ReadableSpan], endpoint: str, headers: Mapping[str, str] | None = None) -> int:
    """Send spans over OTLP/HTTP to `endpoint`, a full URL that ends in `/v1/traces`; return how many were sent.

    Raises `BadInput` if the receiver did not accept them.
    """
    batch = list(spans)
    exporter = OTLPSpanExporter(endpoint=endpoint, headers=dict(headers or {}))
    try:
        if batch and exporter.export(batch) is not SpanExportResult.SUCCESS:
            raise BadInput(
                f"{endpoint}: {len(batch)} spans were not accepted; expected an OTLP/HTTP receiver at this address"
            )
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]  # the SDK has no types here
    return len(batch)


class LiveSpans:
    """Passes each span in a trace to a processor when it ends.

    Call `follow` with the trace first, and `close` at the end to pass on the spans that are still open. `around` is for
    `AsyncDriver(around_tool=...)`: spans from the libraries that a tool uses then become children of its call. `run`
    identifies the run. The spans' times are those in the trace, counted from `start`.
    """

    def __init__(
        self,
        processor: Processor,
        *,
        run: str,
        start: datetime,
        service: str = "agent",
        provider: str | None = None,
        content: bool = False,
        cost: Cost | None = None,
    ) -> None:
        self._processor = processor
        self._builder = SpanBuilder(run, provider=provider, content=content, cost=cost)
        self._start = start
        self._resource = Resource({"service.name": service})

    def follow(self, trace: Trace) -> None:
        """Process every event added to `trace` from now on."""
        before = trace.add

        def add(event: Event) -> None:
            before(event)
            self._hand_over(self._builder.follow(event))

        trace.add = add

    def close(self) -> None:
        """Pass the spans that are still open to the processor, marked as open."""
        self._hand_over(self._builder.finish())

    @contextmanager
    def around(self, job: str, tool: str, call_id: str | None = None) -> Iterator[None]:
        """Make a tool's open call the current span inside the block: the call with this id, or else the latest one."""
        ids = self._builder.current(job, tool, call_id)
        if ids is None:
            yield
            return
        token = context.attach(set_span_in_context(NonRecordingSpan(_context(*ids))))
        try:
            yield
        finally:
            context.detach(token)

    def _hand_over(self, spans: Iterable[Span]) -> None:
        for span in spans:
            self._processor.on_end(readable(span, start=self._start, resource=self._resource))
