"""From the records of a trace to spans, one record after another: from a file afterwards, or live while a run goes on.

The whole task is one trace, each step a span in it (002 §7). A job's unit of work is an `invoke_agent` span; that of a
subtask is in the trace of its parent. What a guard or a checkpoint did is a mark of the span it happened in *and* a
child span: Langfuse drops marks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from statek_sim.spans import names
from statek_sim.spans.names import Operation
from statek_sim.spans.span import Attribute, Mark, Span

Record = Any
"""One event of a trace. This module stands below the events' own, which has spans: it knows them by their names."""

Cost = Callable[[str, int, int], float | None]
"""What a request cost in US dollars, by model, prompt tokens and completion tokens; None where nobody knows."""

_ALWAYS: Final[Mapping[Operation, Mapping[str, Attribute]]] = {
    operation: {
        **({names.OPERATION: operation.value} if operation in names.GEN_AI else {}),
        names.OBSERVATION: names.OBSERVATIONS[operation],
    }
    for operation in Operation
}
_BEGINNING: Final = {operation: f"{operation} " for operation in Operation}
_Begun = tuple[int, str, str, str | None, str, Operation, str, float]
"""The fields of a span that it has from its beginning."""

_COMPLETED: Final = frozenset({"final", "exit"})
_WORKING: Final = frozenset({"STARTED", "WARMING_UP"})


class _Making:
    """A span that has not ended, or that may still get marks; plain slots, because there are three to a turn."""

    __slots__ = ("attributes", "begun", "end", "error", "id", "marks", "trace")

    def __init__(self, begun: _Begun, trace: str, id_: str, attributes: dict[str, Attribute]) -> None:
        self.begun = begun
        self.trace = trace
        self.id = id_
        self.attributes = attributes
        self.end: float | None = None
        self.marks: tuple[Mark, ...] = ()
        self.error: str | None = None

    def made(self) -> Span:
        return Span(*self.begun, self.end, self.attributes, self.marks, self.error)


@dataclass(slots=True)
class _Job:
    """One job: who it is, and what is open of it."""

    role: str
    model: str
    parent: str | None
    began: float
    units: int = 0
    calls_together: bool = False
    root: _Making | None = None
    step: _Making | None = None
    chat: _Making | None = None
    tools: list[_Making] = field(default_factory=list)
    people: dict[str, _Making] = field(default_factory=dict)

    @property
    def inner(self) -> _Making | None:
        """The span that what happens now happens in, but for its tools."""
        return self.step or self.root


class SpanBuilder:
    """Follows one run. `follow` returns the spans that a record ends, `finish` those that are left.

    `run` is the run's id, any text that tells it from others; `provider` answers it, as STATEK calls providers. With
    `content` spans carry what was said, called and returned.
    """

    def __init__(
        self, run: str, *, provider: str | None = None, content: bool = False, cost: Cost | None = None
    ) -> None:
        self._run = run
        self._provider = provider
        self._content = content
        self._cost = cost
        self._jobs: dict[str, _Job] = {}
        digest = hashlib.sha256(run.encode("utf-8", "replace")).digest()
        self._prefix = digest[:4].hex()
        self._conversation = digest[8:16].hex()
        self._made = 0
        self._out: list[Span] = []

    def follow(self, record: Record) -> list[Span]:
        """Take the next record; return the spans that are complete by it, the first to end first."""
        self.take((record,))
        if not self._out:
            return []
        out, self._out = self._out, []
        return out

    def take(self, records: Iterable[Record]) -> None:
        """Take records one after another; the spans that they end come with the next ones."""
        known = _HANDLERS.get
        for record in records:
            handle = known(type(record).__name__)
            if handle is not None:
                handle(self, record)

    def finish(self) -> list[Span]:
        """Return the spans that are left: what was still going on has no end."""
        for job in self._jobs.values():
            for span in (*job.tools, *job.people.values(), job.chat, job.step, job.root):
                if span is not None:
                    if span.end is None:
                        span.attributes[names.OPEN] = True
                    self._out.append(span.made())
            job.root = job.step = job.chat = None
            job.tools, job.people = [], {}
        out, self._out = self._out, []
        return out

    def current(self, job: str, tool: str | None = None) -> tuple[str, str] | None:
        """Return the ids of trace and span of the youngest open call of `tool`, or of what `job` is in; None: nothing.

        A driver puts this into a tool's context, so that what its libraries trace is found under it.
        """
        found = self._jobs.get(job)
        if found is None:
            return None
        calls = [call for call in found.tools if call.attributes[names.TOOL] == tool]
        span = calls[-1] if calls else found.inner
        return None if span is None else (span.trace, span.id)

    # -- opening and closing -----------------------------------------------------------------------------------

    def _open(
        self,
        job: str,
        under: _Making | None,
        operation: Operation,
        what: str,
        at: float,
        attributes: dict[str, Attribute],
    ) -> _Making:
        parent = under or self._root_of(job, at)
        return self._make(job, parent.trace, parent.id, operation, what, at, attributes)

    def _make(
        self,
        job: str,
        trace: str,
        parent: str | None,
        operation: Operation,
        what: str,
        at: float,
        attributes: dict[str, Attribute],
    ) -> _Making:
        self._made += 1
        attributes |= _ALWAYS[operation]
        id_ = f"{self._prefix}{self._made:08x}"
        begun = (self._made, trace, id_, parent, job, operation, _BEGINNING[operation] + what, at)
        return _Making(begun, trace, id_, attributes)

    def _task_id(self, job: str, unit: int) -> str:
        """Return the id of the trace of a job's unit of work."""
        text = f"{self._run} task {unit} of {job}"
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]

    def _close(self, span: _Making | None, at: float, error: str | None = None) -> None:
        if span is None:
            return
        span.end = at
        if error is not None:
            self._failed(span, error)
        self._out.append(Span(*span.begun, at, span.attributes, span.marks, span.error))

    @staticmethod
    def _failed(span: _Making, error: str) -> None:
        span.error = error
        span.attributes[names.ERROR] = _kind_of(error)
        span.attributes[names.LEVEL] = "ERROR"
        span.attributes[names.STATUS_MESSAGE] = error

    def _root_of(self, name: str, at: float) -> _Making:
        """Return the span of a job's unit of work, begun where none is open."""
        job = self._job(name, at)
        if job.root is not None and job.root.end is None:
            return job.root
        if job.root is not None:
            self._out.append(job.root.made())
        job.units += 1
        above = None if job.parent is None else self._jobs.get(job.parent)
        under = None if above is None else above.inner
        unit = self._task_id(name, job.units)
        conversation = f"{self._conversation}/{name}"
        job.root = self._make(
            name,
            unit if under is None else under.trace,
            None if under is None else under.id,
            Operation.AGENT,
            job.role,
            at,
            {
                names.AGENT: job.role,
                names.MODEL: job.model,
                names.CONVERSATION: conversation,
                names.SESSION: conversation,
            },
        )
        if under is None:
            job.root.attributes[names.TRACE_NAME] = f"{job.role} {name}"
        if self._provider is not None:
            job.root.attributes[names.PROVIDER] = names.provider_name(self._provider)
        return job.root

    def _job(self, name: str, at: float) -> _Job:
        found = self._jobs.get(name)
        if found is None:
            # A trace that was cut off at its beginning, or a thing outside jobs.
            found = self._jobs[name] = _Job(role=name or "outside", model="", parent=None, began=at)
        return found

    def _inner(self, record: Record) -> _Making:
        return self._job(record.job, record.at).inner or self._root_of(record.job, record.at)

    def _mark(self, record: Record, name: str, **attributes: Attribute) -> None:
        named = {key.replace("__", "."): value for key, value in attributes.items()}
        self._inner(record).marks += (Mark(name, record.at, named),)

    # -- jobs and steps ----------------------------------------------------------------------------------------

    def created(self, record: Record) -> None:
        """Note a job."""
        self._jobs[record.job] = _Job(record.role, record.model, record.parent, record.at)

    def moved(self, record: Record) -> None:
        """Begin a unit of work."""
        job = self._jobs.get(record.job) or self._job(record.job, record.at)
        if record.new in _WORKING and (job.root is None or job.root.end is not None):
            self._root_of(record.job, record.at)

    def offered(self, record: Record) -> None:
        """Note that the job is one of engine two."""
        self._job(record.job, record.at).calls_together = True

    def step(self, record: Record) -> None:
        """Begin a step, which ends the one before."""
        job, at = self._jobs.get(record.job) or self._job(record.job, record.at), record.at
        self._close(job.step, at)
        job.step = None
        above = job.inner
        if above is None or above.end is not None:
            above = self._root_of(record.job, at)
        number = str(record.step)
        job.step = self._open(record.job, above, Operation.STEP, number, at, {names.NUMBER: record.step})

    def stopped(self, record: Record) -> None:
        """End a unit of work with everything in it."""
        at, reason = record.at, record.reason
        root = self._root_of(record.job, at)
        self._close_inner(self._jobs[record.job], at)
        root.end = at
        root.attributes[names.STOPPED] = reason
        if reason not in _COMPLETED:
            detail = record.detail
            self._failed(root, f"{reason}: {detail}" if detail else reason)

    def _close_inner(self, job: _Job, at: float) -> None:
        for call in job.tools:
            self._close(call, at, "cancelled")
        for question in job.people.values():
            self._close(question, at, "cancelled")
        self._close(job.chat, at, "cancelled")
        self._close(job.step, at)
        job.step = job.chat = None
        job.tools, job.people = [], {}

    # -- requests ----------------------------------------------------------------------------------------------

    def requested(self, record: Record) -> None:
        """Begin a request."""
        job = self._jobs.get(record.job) or self._job(record.job, record.at)
        self._close(job.chat, record.at, "cancelled")
        model = record.model
        attributes: dict[str, Attribute] = {
            names.MODEL: model,
            names.TURN: record.turn,
            names.ATTEMPT: record.attempt,
        }
        if self._provider is not None:
            attributes[names.PROVIDER] = names.provider_name(self._provider)
        if self._content:
            attributes[names.INPUT] = "\n".join(_text(message) for message in record.new)
        job.chat = self._open(record.job, job.inner, Operation.CHAT, model, record.at, attributes)

    def replied(self, record: Record) -> None:
        """End a request that was answered."""
        job = self._jobs.get(record.job) or self._job(record.job, record.at)
        span, job.chat = job.chat, None
        if span is None:
            return
        prompt = _known(record.reported_prompt, record.measured_prompt)
        completion = _known(record.reported_completion, record.measured_completion)
        span.attributes[names.INPUT_TOKENS] = prompt
        span.attributes[names.OUTPUT_TOKENS] = completion
        cost = (
            None if self._cost is None else self._cost(str(span.attributes[names.MODEL]), prompt, completion)
        )
        if cost is not None:
            span.attributes[names.COST] = cost
        if self._content:
            span.attributes[names.OUTPUT] = "\n".join((record.text, *record.tool_calls)).strip("\n")
        self._close(span, record.at)

    def request_failed(self, record: Record) -> None:
        """End a request that failed."""
        job = self._jobs.get(record.job) or self._job(record.job, record.at)
        span, job.chat = job.chat, None
        self._close(span, record.at, record.error)

    # -- tools -------------------------------------------------------------------------------------------------

    def called(self, record: Record) -> None:
        """Begin a call of a tool."""
        job = self._jobs.get(record.job) or self._job(record.job, record.at)
        attributes: dict[str, Attribute] = {names.TOOL: record.name, names.VIA: record.via}
        if self._content:
            attributes[names.TOOL_ARGUMENTS] = attributes[names.INPUT] = record.arguments
        job.tools.append(
            self._open(record.job, job.inner, Operation.TOOL, record.name, record.at, attributes)
        )

    def returned(self, record: Record) -> None:
        """End a call.

        A trace does not say which of several open calls of one tool returned: with engine two, which begins the calls
        of a reply together, the oldest is taken; with engine one, whose tools call tools, the youngest.
        """
        job = self._jobs.get(record.job) or self._job(record.job, record.at)
        tools = job.tools
        places = range(len(tools)) if job.calls_together else reversed(range(len(tools)))
        place = next((at for at in places if tools[at].attributes[names.TOOL] == record.name), None)
        if place is None:
            return
        span = tools.pop(place)
        if self._content and record.result is not None:
            span.attributes[names.TOOL_RESULT] = span.attributes[names.OUTPUT] = record.result
        self._close(span, record.at, record.error)

    # -- what the harness did ----------------------------------------------------------------------------------

    def spoke(self, record: Record) -> None:
        """Mark what a part of the harness did; a guard's verdict is a span as well."""
        part, action, detail = record.part, record.action, record.detail
        self._mark(record, part, statek__action=action, statek__detail=detail)
        if not part.endswith(" guard"):
            return
        point = part.removesuffix(" guard")
        attributes: dict[str, Attribute] = {names.VERDICT: action, names.DETAIL: detail}
        span = self._open(record.job, self._inner(record), Operation.GUARD, point, record.at, attributes)
        if action != "pass":
            span.attributes[names.LEVEL] = "ERROR" if action == "block" else "WARNING"
            span.attributes[names.STATUS_MESSAGE] = detail
        self._close(span, record.at)

    def committed(self, record: Record) -> None:
        """Mark a checkpoint, as a span as well; the last one of a task comes when that has ended."""
        job = self._jobs.get(record.job) or self._job(record.job, record.at)
        root = job.inner or self._root_of(record.job, record.at)
        point, at = record.point, record.at
        attributes: dict[str, Attribute] = {
            "statek.iteration": record.iteration,
            "statek.messages": record.messages,
        }
        root.marks += (Mark(f"checkpoint {point}", at, attributes),)
        span = self._open(record.job, root, Operation.CHECKPOINT, point, at, dict(attributes))
        self._close(span, at)

    def resumed(self, record: Record) -> None:
        """Mark that a run was taken up again from a checkpoint, as a span as well."""
        attributes: dict[str, Attribute] = {"statek.point": record.point}
        root = self._inner(record)
        root.marks += (Mark("checkpoint restored", record.at, attributes),)
        span = self._open(record.job, root, Operation.CHECKPOINT, "restored", record.at, dict(attributes))
        self._close(span, record.at)

    def asked(self, record: Record) -> None:
        """Begin to wait for a person."""
        job = self._jobs.get(record.job) or self._job(record.job, record.at)
        attributes: dict[str, Attribute] = {"statek.token": record.token}
        if self._content:
            attributes[names.INPUT] = record.question
        job.people[record.token] = self._open(
            record.job, job.inner, Operation.PERSON, record.tool, record.at, attributes
        )

    def answered(self, record: Record) -> None:
        """End to wait for a person."""
        job = self._jobs.get(record.job) or self._job(record.job, record.at)
        span = job.people.pop(record.token, None)
        if span is None:
            return
        span.attributes["statek.answer"] = record.kind
        if self._content:
            span.attributes[names.OUTPUT] = record.text
        self._close(span, record.at, None if record.kind == "answered" else record.kind)

    def refused(self, record: Record) -> None:
        """Mark a call that was not executed."""
        self._mark(record, "call refused", gen_ai__tool__name=record.name, statek__failure=record.failure)

    def nudged(self, record: Record) -> None:
        """Mark a correction."""
        self._mark(record, "nudge", statek__failure=record.failure, statek__number=record.number)

    def compacted(self, record: Record) -> None:
        """Mark a history that was made shorter."""
        before, after = record.tokens_before, record.tokens_after
        self._mark(
            record,
            "compacted",
            statek__strategy=record.strategy,
            statek__before=before,
            statek__after=after,
        )

    def attempted(self, record: Record) -> None:
        """Mark how an attempt of a ladder's level ended, and end its step: the next attempt begins with another one."""
        job = self._jobs.get(record.job) or self._job(record.job, record.at)
        self._mark(record, "attempt", statek__level=record.level, statek__cause=record.cause)
        self._close(job.step, record.at)
        job.step = None

    def escalated(self, record: Record) -> None:
        """Mark that another level is asked, or nobody any more."""
        self._mark(record, "escalated", statek__to=record.to_level or "nobody", statek__cause=record.cause)


def _kind_of(error: str) -> str:
    """Return the kind of an error, which there are few of: what its text begins with."""
    return error.partition(":")[0].partition(" (")[0][:80] or "error"


def _known(reported: int | None, measured: int) -> int:
    return measured if reported is None else reported


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    return f"{message.get('role')}: {content if isinstance(content, str) else '' if content is None else content!r}"


_HANDLERS: Final[Mapping[str, Callable[[SpanBuilder, Record], None]]] = {
    "JobCreated": SpanBuilder.created,
    "StatusChanged": SpanBuilder.moved,
    "ToolsOffered": SpanBuilder.offered,
    "StepStarted": SpanBuilder.step,
    "JobStopped": SpanBuilder.stopped,
    "LLMRequested": SpanBuilder.requested,
    "LLMReplied": SpanBuilder.replied,
    "RequestFailed": SpanBuilder.request_failed,
    "ToolCalled": SpanBuilder.called,
    "ToolReturned": SpanBuilder.returned,
    "HarnessSpoke": SpanBuilder.spoke,
    "Committed": SpanBuilder.committed,
    "RunResumed": SpanBuilder.resumed,
    "PersonAsked": SpanBuilder.asked,
    "PersonAnswered": SpanBuilder.answered,
    "CallRefused": SpanBuilder.refused,
    "Nudged": SpanBuilder.nudged,
    "Compacted": SpanBuilder.compacted,
    "AttemptEnded": SpanBuilder.attempted,
    "Escalated": SpanBuilder.escalated,
}
"""What each kind of record does; kinds that are not here are no part of spans."""


def spans_of(
    records: Iterable[Record],
    run: str,
    *,
    provider: str | None = None,
    content: bool = False,
    cost: Cost | None = None,
) -> list[Span]:
    """Return all spans of a run, in the order in which they began. The arguments are those of `SpanBuilder`."""
    builder = SpanBuilder(run, provider=provider, content=content, cost=cost)
    builder.take(records)
    return sorted(builder.finish())
