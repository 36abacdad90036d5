"""A span in a run, as a value, and the spans that are open during a run."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from statek_sim.spans import names
from statek_sim.spans.names import Operation

Attribute = str | int | float | bool | Sequence[str]
"""The type of a span attribute's value."""

Cost = Callable[[str, int, int], float | None]
"""Returns a request's cost in US dollars, given its model, prompt tokens and completion tokens; None if unknown."""

_HTTP_FAILURE: Final = re.compile(r"(?:Client|Server) error '(\d{3}) ")
"""Matches httpx's error message for a request that a provider rejected, as found in traces."""


class Mark(NamedTuple):
    """An event inside a span, at a virtual second."""

    name: str
    at: float
    attributes: Mapping[str, Attribute]


@dataclass(slots=True)
class Span:
    """A span. `start` and `end` are virtual seconds; `end` is None while it is open.

    `seq` is its position in the order of starts, from 1. `trace` (32 hexadecimal digits) and `id` (16) are derived from
    the run's id and that position, so equal runs have equal ids. `error` is the reason for a failure, or None.
    """

    seq: int
    trace: str
    id: str
    parent: str | None
    job: str
    operation: Operation
    name: str
    start: float
    attributes: dict[str, Attribute]
    end: float | None = None
    marks: tuple[Mark, ...] = ()
    error: str | None = None

    @property
    def seconds(self) -> float | None:
        """The duration in virtual seconds, or None while the span is open."""
        return None if self.end is None else self.end - self.start

    def fail(self, error: str) -> None:
        """Mark the span as failed; its attribute `error.type` becomes the HTTP status, or the start of the error."""
        status = _HTTP_FAILURE.match(error)
        kind = status[1] if status else error.partition(":")[0].partition(" (")[0][:80] or "error"
        self.error = error
        self.attributes |= {names.ERROR: kind, names.LEVEL: "ERROR", names.STATUS_MESSAGE: error}


def named(spans: Sequence[Span], name: str | None) -> list[Span]:
    """Return the spans for an operation, or with this full name; all spans if `name` is None."""
    return [span for span in spans if name is None or name in (span.operation, span.name)]


@dataclass(slots=True)
class Job:
    """A job with its open spans. `conversation` is the id of its conversation.

    `last_input` is the text of the messages added by the job's last request.
    """

    name: str
    conversation: str
    role: str
    model: str
    parent: str | None
    units: int = 0
    last_input: str = ""
    calls_together: bool = False
    root: Span | None = None
    step: Span | None = None
    chat: Span | None = None
    tools: list[Span] = field(default_factory=list)
    people: dict[str, Span] = field(default_factory=dict)

    @property
    def left(self) -> Iterator[Span]:
        """The spans that were not returned yet, innermost first; of these, only the unit of work may have ended."""
        inner = (*self.tools, *self.people.values(), self.chat, self.step, self.root)
        return (span for span in inner if span is not None)


class OpenSpans:
    """Opens, marks and closes a run's spans. `ended` collects finished spans until the caller removes them."""

    def __init__(self, run: str, *, provider: str | None, content: bool, cost: Cost | None) -> None:
        self.provider: Final = None if provider is None else names.provider_name(provider)
        self.content: Final = content
        self.cost: Final = cost
        self.jobs: Final[dict[str, Job]] = {}
        self.ended: Final[list[Span]] = []
        digest = hashlib.sha256(run.encode("utf-8", "replace")).digest()
        self._run = run
        self._prefix = digest[:4].hex()
        self._conversation = digest[8:16].hex()
        self._count = 0

    def job(self, name: str) -> Job:
        """Return a job by name, adding it if it is unknown: a trace may lack its start, or have events outside jobs."""
        return self.jobs.get(name) or self.know(name, name or "outside", "", None)

    def know(self, name: str, role: str, model: str, parent: str | None) -> Job:
        """Record a job's role, model and parent, and return the job."""
        found = self.jobs.get(name)
        if found is None:
            found = self.jobs[name] = Job(name, f"{self._conversation}/{name}", role, model, parent)
        else:
            found.role, found.model, found.parent = role, model, parent
        return found

    def provider_of(self, model: str) -> str:
        """Return a model's provider."""
        return self.provider or names.provider_of(model)

    def open(
        self,
        job: Job,
        operation: Operation,
        what: str,
        at: float,
        attributes: Mapping[str, Attribute],
        *,
        under: Span | None = None,
    ) -> Span:
        """Open a span at `at` under the given parent, or else under the job's step or unit of work."""
        above = under or job.step or job.root or self.root_of(job, at)
        return self._open(job, above.trace, above.id, operation, what, at, attributes)

    def _open(
        self,
        job: Job,
        trace: str,
        parent: str | None,
        operation: Operation,
        what: str,
        at: float,
        attributes: Mapping[str, Attribute],
    ) -> Span:
        self._count = seq = self._count + 1
        return Span(
            seq,
            trace,
            f"{self._prefix}{seq:08x}",
            parent,
            job.name,
            operation,
            f"{operation} {what}",
            at,
            {**names.ALWAYS[operation], **attributes},
        )

    def close(self, span: Span | None, at: float, error: str | None = None) -> None:
        """Close a span, if there is one; if `error` is given, mark it as failed."""
        if span is None:
            return
        span.end = at
        if error is not None:
            span.fail(error)
        self.ended.append(span)

    def close_all(self, job: Job, at: float) -> None:
        """Close a job's open spans, except its unit of work, because no further events will arrive for them."""
        for waited in (*job.tools, *job.people.values(), job.chat):
            self.close(waited, at, "cancelled")
        self.close(job.step, at)
        job.step = job.chat = None
        job.tools, job.people = [], {}

    def root_of(self, job: Job, at: float) -> Span:
        """Return the span for a job's current unit of work, opening a new one if there is none."""
        if job.root is not None:
            if job.root.end is None:
                return job.root
            self.ended.append(job.root)
        job.units += 1
        above = None if job.parent is None else self.jobs.get(job.parent)
        under = None if above is None else above.step or above.root
        attributes: dict[str, Attribute] = {
            names.AGENT: job.role,
            names.MODEL: job.model,
            names.PROVIDER: self.provider_of(job.model),
            names.CONVERSATION: job.conversation,
            names.SESSION: job.conversation,
        }
        if under is None:
            attributes[names.TRACE_NAME] = f"{job.role} {job.name}"
        trace, parent = (self._task_id(job), None) if under is None else (under.trace, under.id)
        job.root = self._open(job, trace, parent, Operation.AGENT, job.role, at, attributes)
        return job.root

    def mark(self, name: str, at: float, what: str, attributes: Mapping[str, Attribute]) -> Span:
        """Mark an event in a job's current span; return that span."""
        job = self.job(name)
        span = job.step or job.root or self.root_of(job, at)
        span.marks += (Mark(what, at, attributes),)
        return span

    def leave(self) -> None:
        """Add the spans that are still open to `ended`, marked as open and without an end."""
        for job in self.jobs.values():
            for span in job.left:
                if span.end is None:
                    span.attributes[names.OPEN] = True
                self.ended.append(span)
            job.root = job.step = job.chat = None
            job.tools, job.people = [], {}

    def _task_id(self, job: Job) -> str:
        """Return the trace id for a job's unit of work."""
        text = f"{self._run} task {job.units} of {job.name}"
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def as_json(written: str) -> str | None:
    """Return a call's arguments as a JSON object, or None if that is impossible.

    This requires Python keyword arguments with literal values: no names like `from` or `a-b`, and no numbers like `inf`
    and `nan`, which JSON lacks.
    """
    try:
        call = ast.parse(f"_({written})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or any(word.arg is None for word in call.keywords):
            return None
        found = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
        return json.dumps(found, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
