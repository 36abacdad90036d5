"""Builds spans from a trace's events, live or after the run.

A task becomes one OpenTelemetry trace: an `invoke_agent` span with a span for each step. A subtask's spans are in its
parent's trace. Guard actions and checkpoints are recorded both as marks and as child spans, because Langfuse drops
marks. For each kind of event, a function here opens, marks or closes spans.

Source: the harness document §7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Final

from statek_sim.spans import names
from statek_sim.spans.names import Operation
from statek_sim.spans.span import Attribute, Cost, OpenSpans, Span, as_json

Record = Any
"""A trace event. Events are recognized by class name, because the module that defines them imports this one."""

_COMPLETED: Final = frozenset({"final", "exit"})
_WORKING: Final = frozenset({"STARTED", "WARMING_UP"})


class SpanBuilder:
    """Builds a run's spans. `follow` returns the spans that an event ends, `finish` the remaining ones.

    `run` is the run's unique id, any string. `provider` is STATEK's name for the provider; if None, it is derived from
    the model's name. With `content`, spans include messages, arguments and results.
    """

    def __init__(
        self, run: str, *, provider: str | None = None, content: bool = False, cost: Cost | None = None
    ) -> None:
        self._spans = OpenSpans(run, provider=provider, content=content, cost=cost)

    def follow(self, record: Record) -> list[Span]:
        """Process the next event; return the spans that it ends, in the order in which they end."""
        handle = _HANDLERS.get(type(record).__name__)
        if handle is not None:
            handle(self._spans, record)
        return self._taken_out()

    def finish(self) -> list[Span]:
        """Return the remaining spans. Spans that are still open have no end."""
        self._spans.leave()
        return self._taken_out()

    def current(
        self, job: str, tool: str | None = None, call_id: str | None = None
    ) -> tuple[str, str] | None:
        """Return the trace id and span id of an open call to `tool`, or else those of the job's current span.

        If several calls are open, the one with the id `call_id` is chosen, or else the latest. None if there is no
        span. A driver sets these ids as a tool's context, so that spans from libraries used by the tool become
        children.
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
    """Return all spans in a run, in the order in which they start. The arguments are the same as for `SpanBuilder`."""
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
    """Record that a job belongs to engine two, since jobs in engine one are not offered tools."""
    spans.job(record.job).calls_together = True


def _step(spans: OpenSpans, record: Record) -> None:
    """Start a step, which ends the previous one."""
    job = spans.job(record.job)
    spans.close(job.step, record.at)
    root = spans.root_of(job, record.at)
    number = {names.NUMBER: record.step}
    job.step = spans.open(job, Operation.STEP, str(record.step), record.at, number, under=root)


def _stopped(spans: OpenSpans, record: Record) -> None:
    """End a unit of work and everything in it."""
    job, reason = spans.job(record.job), record.reason
    root = spans.root_of(job, record.at)
    spans.close_all(job, record.at)
    # The span is returned later, because a task's last checkpoint comes after its end.
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
        # A retry after a failure adds no new input.
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
    # As in httpx, a request that timed out has no error message.
    spans.close(span, record.at, record.error or "timeout")


def _text(message: Mapping[str, Any]) -> str:
    """Return a message's text, followed by its calls, formatted as `_replied` formats answers."""
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
        # Arguments from model-written code are Python values, some of which JSON cannot express, like `inf`.
        given = as_json(record.arguments) if job.calls_together else None
        attributes[names.TOOL_ARGUMENTS] = attributes[names.INPUT] = (
            record.arguments if given is None else given
        )
    job.tools.append(spans.open(job, Operation.TOOL, record.name, record.at, attributes))


def _returned(spans: OpenSpans, record: Record) -> None:
    """End the open call with the record's tool and id; without ids, end the latest call, because tools call tools."""
    job = spans.job(record.job)
    wanted = (record.name, record.call_id)
    calls = [
        call
        for call in job.tools
        if (call.attributes[names.TOOL], call.attributes.get(names.TOOL_CALL)) == wanted
    ]
    if not calls:
        return
    span = calls[-1]
    job.tools = [call for call in job.tools if call is not span]
    if spans.content and record.result is not None:
        span.attributes[names.TOOL_RESULT] = span.attributes[names.OUTPUT] = record.result
    spans.close(span, record.at, record.error)


# -- actions by the harness ------------------------------------------------------------------------------------


def _spoke(spans: OpenSpans, record: Record) -> None:
    """Mark an action by part of the harness; add a span for a guard's verdict."""
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
    """Mark a checkpoint, and add a span for it. A task's last checkpoint comes after the task's end."""
    attributes = {"statek.iteration": record.iteration, "statek.messages": record.messages}
    under = spans.mark(record.job, record.at, f"checkpoint {record.point}", attributes)
    _moment(spans, record, under, Operation.CHECKPOINT, record.point, attributes)


def _resumed(spans: OpenSpans, record: Record) -> None:
    """Mark that a run was resumed from a checkpoint, and add a span for it."""
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
    """Start waiting for a person."""
    job = spans.job(record.job)
    attributes = {"statek.token": record.token}
    if spans.content:
        attributes[names.INPUT] = record.question
    job.people[record.token] = spans.open(job, Operation.PERSON, record.tool, record.at, attributes)


def _answered(spans: OpenSpans, record: Record) -> None:
    """Stop waiting for a person."""
    span = spans.job(record.job).people.pop(record.token, None)
    if span is None:
        return
    span.attributes["statek.answer"] = record.kind
    if spans.content:
        span.attributes[names.OUTPUT] = record.text
    spans.close(span, record.at, None if record.kind == "answered" else record.kind)


def _attempted(spans: OpenSpans, record: Record) -> None:
    """Mark the end of an attempt at a ladder's level, and end the step: the next attempt starts a new one."""
    spans.mark(record.job, record.at, "attempt", {"statek.level": record.level, "statek.cause": record.cause})
    job = spans.job(record.job)
    spans.close(job.step, record.at)
    job.step = None


def _escalated(spans: OpenSpans, record: Record) -> None:
    """Mark an escalation to another level, or the end of the ladder."""
    attributes = {"statek.to": record.to_level or "nobody", "statek.cause": record.cause}
    spans.mark(record.job, record.at, "escalated", attributes)


def _marked(what: str, **members: str) -> Callable[[OpenSpans, Record], None]:
    """Return a function that adds a mark, with the record's members as attributes."""

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
"""The function for each kind of event; other events do not affect spans."""
