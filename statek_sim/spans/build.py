"""From the records of a trace to spans, one record after another: from a file afterwards, or live while a run goes on.

The whole task is one trace, each step a span in it. A job's unit of work is an `invoke_agent` span; that of a
subtask is in the trace of its parent. What a guard or a checkpoint did is a mark of the span it happened in *and* a
child span: Langfuse drops marks. Each kind of record has a function here that says what it opens, marks and closes.

Source: the harness document §7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Final

from statek_sim.spans import names
from statek_sim.spans.names import Operation
from statek_sim.spans.span import Attribute, Cost, Job, OpenSpans, Span, as_json

Record = Any
"""One event of a trace. This module stands below the events' own, which has spans: it knows them by their names."""

_COMPLETED: Final = frozenset({"final", "exit"})
_WORKING: Final = frozenset({"STARTED", "WARMING_UP"})


class SpanBuilder:
    """Follows one run. `follow` returns the spans that a record ends, `finish` those that are left.

    `run` is the run's id, any text that tells it from others; `provider` answers it, as STATEK calls providers; None:
    who makes the model, by its name. With `content` spans carry what was said, called and returned.
    """

    def __init__(
        self, run: str, *, provider: str | None = None, content: bool = False, cost: Cost | None = None
    ) -> None:
        self._spans = OpenSpans(run, provider=provider, content=content, cost=cost)

    def follow(self, record: Record) -> list[Span]:
        """Take the next record; return the spans that are complete by it, the first to end first."""
        handle = _HANDLERS.get(type(record).__name__)
        if handle is not None:
            handle(self._spans, record)
        return self._taken_out()

    def finish(self) -> list[Span]:
        """Return the spans that are left: what was still going on has no end."""
        self._spans.leave()
        return self._taken_out()

    def current(
        self, job: str, tool: str | None = None, call_id: str | None = None
    ) -> tuple[str, str] | None:
        """Return the ids of trace and span of an open call of `tool`, or of what `job` is in; None: nothing.

        Of several open calls it is that with the id `call_id`, or else the youngest.

        A driver puts this into a tool's context, so that what its libraries trace is found under it.
        """
        found = self._spans.jobs.get(job)
        if found is None:
            return None
        calls = [call for call in found.tools if call.attributes[names.TOOL] == tool]
        calls = [call for call in calls if call.attributes.get(names.TOOL_CALL) == call_id] or calls
        span = calls[-1] if calls else found.step or found.root
        return None if span is None else (span.trace, span.id)

    def _taken_out(self) -> list[Span]:
        spans = self._spans.ended.copy()
        self._spans.ended.clear()
        return spans


def spans_of(
    records: Iterable[Record],
    run: str,
    *,
    provider: str | None = None,
    content: bool = False,
    cost: Cost | None = None,
) -> list[Span]:
    """Return all spans of a run, in the order in which they began. The arguments are those of `SpanBuilder`."""
    spans = OpenSpans(run, provider=provider, content=content, cost=cost)
    for record in records:
        if (handle := _HANDLERS.get(type(record).__name__)) is not None:
            handle(spans, record)
    spans.leave()
    return sorted(spans.ended, key=attrgetter("seq"))


# -- jobs and steps --------------------------------------------------------------------------------------------


def _created(spans: OpenSpans, record: Record) -> None:
    spans.know(record.job, record.role, record.model, record.parent)


def _moved(spans: OpenSpans, record: Record) -> None:
    if record.new in _WORKING:
        spans.root_of(spans.job(record.job), record.at)


def _offered(spans: OpenSpans, record: Record) -> None:
    """Only jobs of engine two are offered tools."""
    spans.job(record.job).calls_together = True


def _step(spans: OpenSpans, record: Record) -> None:
    """Begin a step, which ends the one before."""
    job = spans.job(record.job)
    spans.close(job.step, record.at)
    root = spans.root_of(job, record.at)
    number = {names.NUMBER: record.step}
    job.step = spans.open(job, Operation.STEP, str(record.step), record.at, number, under=root)


def _stopped(spans: OpenSpans, record: Record) -> None:
    """End a unit of work with everything in it."""
    job, reason = spans.job(record.job), record.reason
    root = spans.root_of(job, record.at)
    spans.close_all(job, record.at)
    # It is handed on later: the last checkpoint of a task comes when the task has ended.
    root.end = record.at
    root.attributes[names.STOPPED] = reason
    if reason not in _COMPLETED:
        root.fail(f"{reason}: {record.detail}" if record.detail else reason)


# -- requests --------------------------------------------------------------------------------------------------


def _requested(spans: OpenSpans, record: Record) -> None:
    job = spans.job(record.job)
    spans.close(job.chat, record.at, "cancelled")
    attributes: dict[str, Attribute] = {
        names.MODEL: record.model,
        names.PROVIDER: spans.provider_of(record.model),
        names.CONVERSATION: job.conversation,
        names.TURN: record.turn,
        names.ATTEMPT: record.attempt,
    }
    if spans.content:
        # One that is sent again after a failure adds nothing to the one before.
        job.last_input = "\n".join(map(_text, record.new)) or job.last_input
        attributes[names.INPUT] = job.last_input
    job.chat = spans.open(job, Operation.CHAT, record.model, record.at, attributes)


def _replied(spans: OpenSpans, record: Record) -> None:
    job = spans.job(record.job)
    span, job.chat = job.chat, None
    if span is None:
        return
    prompt, completion = record.reported_prompt, record.reported_completion
    prompt = record.measured_prompt if prompt is None else prompt
    completion = record.measured_completion if completion is None else completion
    span.attributes |= {names.INPUT_TOKENS: prompt, names.OUTPUT_TOKENS: completion}
    cost = None if spans.cost is None else spans.cost(str(span.attributes[names.MODEL]), prompt, completion)
    if cost is not None:
        span.attributes[names.COST] = cost
    if spans.content:
        span.attributes[names.OUTPUT] = "\n".join((record.text, *record.tool_calls)).strip("\n")
    spans.close(span, record.at)


def _request_failed(spans: OpenSpans, record: Record) -> None:
    job = spans.job(record.job)
    span, job.chat = job.chat, None
    # As httpx, a request that nobody answered in time has no words for it.
    spans.close(span, record.at, record.error or "timeout")


def _text(message: Mapping[str, Any]) -> str:
    """Return what a message says, and below it what it calls, as `_replied` has an answer."""
    content = message.get("content")
    words = content if isinstance(content, str) else "" if content is None else repr(content)
    calls = [call.get("function") or {} for call in message.get("tool_calls") or ()]
    lines = [words, *(f"{call.get('name')}({call.get('arguments')})" for call in calls)]
    return f"{message.get('role')}: " + "\n".join(filter(None, lines))


# -- tools -----------------------------------------------------------------------------------------------------


def _called(spans: OpenSpans, record: Record) -> None:
    job = spans.job(record.job)
    attributes: dict[str, Attribute] = {names.TOOL: record.name, names.VIA: record.via}
    if record.call_id is not None:
        attributes[names.TOOL_CALL] = record.call_id
    if spans.content:
        # What model-written code calls a tool with is Python, and has no JSON; nor have numbers like `inf`.
        given = as_json(record.arguments) if job.calls_together else None
        attributes[names.TOOL_ARGUMENTS] = attributes[names.INPUT] = (
            record.arguments if given is None else given
        )
    job.tools.append(spans.open(job, Operation.TOOL, record.name, record.at, attributes))


def _returned(spans: OpenSpans, record: Record) -> None:
    """End the call that a record is about, if it is open."""
    job = spans.job(record.job)
    span = _ended_call(job, record.name, record.call_id)
    if span is None:
        return
    job.tools = [call for call in job.tools if call is not span]
    if spans.content and record.result is not None:
        span.attributes[names.TOOL_RESULT] = span.attributes[names.OUTPUT] = record.result
    spans.close(span, record.at, record.error)


def _ended_call(job: Job, name: str, call_id: str | None) -> Span | None:
    """Return the open call of a tool with an id, or else one without: it began before the trace had ids.

    Which one ends without an id, a trace does not say: with engine two, which begins the calls of a reply together,
    the oldest is taken; with engine one, whose tools call tools, the youngest.
    """
    ordered = job.tools if job.calls_together else job.tools[::-1]
    calls = [call for call in ordered if call.attributes[names.TOOL] == name]
    ids = [call.attributes.get(names.TOOL_CALL) for call in calls]
    if call_id is None:
        return calls[0] if calls else None
    wanted = call_id if call_id in ids else None
    return calls[ids.index(wanted)] if wanted in ids else None


# -- what the harness did --------------------------------------------------------------------------------------


def _spoke(spans: OpenSpans, record: Record) -> None:
    """Mark what a part of the harness did; a guard's verdict is a span as well."""
    part, action, detail = record.part, record.action, record.detail
    under = spans.mark(record.job, record.at, part, {"statek.action": action, names.DETAIL: detail})
    if not part.endswith(" guard"):
        return
    attributes: dict[str, Attribute] = {names.VERDICT: action, names.DETAIL: detail}
    if action != "pass":
        attributes[names.LEVEL] = "ERROR" if action == "block" else "WARNING"
        attributes[names.STATUS_MESSAGE] = detail
    _moment(spans, record, under, Operation.GUARD, part.removesuffix(" guard"), attributes)


def _committed(spans: OpenSpans, record: Record) -> None:
    """Mark a checkpoint, as a span as well; the last one of a task comes when that has ended."""
    attributes = {"statek.iteration": record.iteration, "statek.messages": record.messages}
    under = spans.mark(record.job, record.at, f"checkpoint {record.point}", attributes)
    _moment(spans, record, under, Operation.CHECKPOINT, record.point, attributes)


def _resumed(spans: OpenSpans, record: Record) -> None:
    """Mark that a run was taken up again from a checkpoint, as a span as well."""
    attributes = {"statek.point": record.point}
    under = spans.mark(record.job, record.at, "checkpoint restored", attributes)
    _moment(spans, record, under, Operation.CHECKPOINT, "restored", attributes)


def _moment(
    spans: OpenSpans,
    record: Record,
    under: Span,
    operation: Operation,
    what: str,
    attributes: Mapping[str, Attribute],
) -> None:
    """Open and close a span that takes no time."""
    span = spans.open(spans.job(record.job), operation, what, record.at, attributes, under=under)
    spans.close(span, record.at)


def _asked(spans: OpenSpans, record: Record) -> None:
    """Begin to wait for a person."""
    job = spans.job(record.job)
    attributes = {"statek.token": record.token}
    if spans.content:
        attributes[names.INPUT] = record.question
    job.people[record.token] = spans.open(job, Operation.PERSON, record.tool, record.at, attributes)


def _answered(spans: OpenSpans, record: Record) -> None:
    """End to wait for a person."""
    span = spans.job(record.job).people.pop(record.token, None)
    if span is None:
        return
    span.attributes["statek.answer"] = record.kind
    if spans.content:
        span.attributes[names.OUTPUT] = record.text
    spans.close(span, record.at, None if record.kind == "answered" else record.kind)


def _attempted(spans: OpenSpans, record: Record) -> None:
    """Mark how an attempt of a ladder's level ended, and end its step: the next attempt begins with another one."""
    spans.mark(record.job, record.at, "attempt", {"statek.level": record.level, "statek.cause": record.cause})
    job = spans.job(record.job)
    spans.close(job.step, record.at)
    job.step = None


def _escalated(spans: OpenSpans, record: Record) -> None:
    """Mark that another level is asked, or nobody any more."""
    attributes = {"statek.to": record.to_level or "nobody", "statek.cause": record.cause}
    spans.mark(record.job, record.at, "escalated", attributes)


def _marked(what: str, **members: str) -> Callable[[OpenSpans, Record], None]:
    """Return what marks that something happened, with members of the record by the names of their attributes."""

    def mark(spans: OpenSpans, record: Record) -> None:
        attributes = {f"statek.{name}": getattr(record, member) for name, member in members.items()}
        spans.mark(record.job, record.at, what, attributes)

    return mark


def _refused(spans: OpenSpans, record: Record) -> None:
    """Mark a call that was not executed."""
    attributes = {names.TOOL: record.name, "statek.failure": record.failure}
    spans.mark(record.job, record.at, "call refused", attributes)


_HANDLERS: Final[Mapping[str, Callable[[OpenSpans, Record], None]]] = {
    "JobCreated": _created,
    "StatusChanged": _moved,
    "ToolsOffered": _offered,
    "StepStarted": _step,
    "JobStopped": _stopped,
    "LLMRequested": _requested,
    "LLMReplied": _replied,
    "RequestFailed": _request_failed,
    "ToolCalled": _called,
    "ToolReturned": _returned,
    "HarnessSpoke": _spoke,
    "Committed": _committed,
    "RunResumed": _resumed,
    "PersonAsked": _asked,
    "PersonAnswered": _answered,
    "CallRefused": _refused,
    "Nudged": _marked("nudge", failure="failure", number="number"),
    "Compacted": _marked("compacted", strategy="strategy", before="tokens_before", after="tokens_after"),
    "AttemptEnded": _attempted,
    "Escalated": _escalated,
}
"""What each kind of record does; kinds that are not here are no part of spans."""
