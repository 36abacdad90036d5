"""From the records of a trace to spans, one record after another: from a file afterwards, or live while a run goes on.

The whole task is one trace, each step a span in it (002 §7). A job's unit of work is an `invoke_agent` span; that of a
subtask is in the trace of its parent. What a guard or a checkpoint did is a mark of the span it happened in *and* a
child span: Langfuse drops marks. Each kind of record has a function here that says what it opens, marks and closes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any, Final

from statek_sim.spans import names
from statek_sim.spans.arguments import as_json
from statek_sim.spans.keeper import (
    ATTRIBUTES,
    CHAT,
    CHECKPOINT,
    END,
    GUARD,
    ID,
    PERSON,
    STEP,
    TOOL,
    TRACE,
    Cost,
    Job,
    Keeper,
    Kind,
    Making,
    complete,
    fail,
)
from statek_sim.spans.span import Attribute, Span

Record = Any
"""One event of a trace. This module stands below the events' own, which has spans: it knows them by their names."""

_PLACE: Final = itemgetter(Span._fields.index("seq"))
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
        self._keeper = Keeper(run, provider=provider, content=content, cost=cost)

    def follow(self, record: Record) -> list[Span]:
        """Take the next record; return the spans that are complete by it, the first to end first."""
        handle = _HANDLERS.get(type(record).__name__)
        if handle is None:
            return []
        handle(self._keeper, record)
        return self._taken_out()

    def finish(self) -> list[Span]:
        """Return the spans that are left: what was still going on has no end."""
        self._keeper.leave()
        return self._taken_out()

    def current(
        self, job: str, tool: str | None = None, call_id: str | None = None
    ) -> tuple[str, str] | None:
        """Return the ids of trace and span of an open call of `tool`, or of what `job` is in; None: nothing.

        Of several open calls it is that with the id `call_id`, or else the youngest.

        A driver puts this into a tool's context, so that what its libraries trace is found under it.
        """
        found = self._keeper.jobs.get(job)
        if found is None:
            return None
        calls = [call for call in found.tools if call[ATTRIBUTES][names.TOOL] == tool]
        calls = [call for call in calls if call[ATTRIBUTES].get(names.TOOL_CALL) == call_id] or calls
        span = calls[-1] if calls else found.step or found.root
        return None if span is None else (span[TRACE], span[ID])

    def _taken_out(self) -> list[Span]:
        if not self._keeper.ended:
            return []
        spans = self._keeper.ended.copy()
        self._keeper.ended.clear()
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
    keeper = Keeper(run, provider=provider, content=content, cost=cost)
    known = _HANDLERS.get
    for record in records:
        handle = known(type(record).__name__)
        if handle is not None:
            handle(keeper, record)
    keeper.leave()
    return sorted(keeper.ended, key=_PLACE)


# -- jobs and steps --------------------------------------------------------------------------------------------


def _created(keeper: Keeper, record: Record) -> None:
    keeper.know(record.job, record.role, record.model, record.parent)


def _moved(keeper: Keeper, record: Record) -> None:
    if record.new in _WORKING:
        keeper.root_of(keeper.job(record.job), record.at)


def _offered(keeper: Keeper, record: Record) -> None:
    """Only jobs of engine two are offered tools."""
    keeper.job(record.job).calls_together = True


def _step(keeper: Keeper, record: Record) -> None:
    """Begin a step, which ends the one before."""
    job, at, number = keeper.jobs.get(record.job) or keeper.job(record.job), record.at, record.step
    if (before := job.step) is not None:
        before[END] = at
        keeper.ended.append(complete(before))
    root = job.root
    if root is None or root[END] is not None:
        root = keeper.root_of(job, at)
    job.step = keeper.open(job, root, STEP, str(number), at, STEP.always | {names.NUMBER: number})


def _stopped(keeper: Keeper, record: Record) -> None:
    """End a unit of work with everything in it."""
    job, at, reason = keeper.job(record.job), record.at, record.reason
    root = keeper.root_of(job, at)
    keeper.close_all(job, at)
    # It is handed on later: the last checkpoint of a task comes when the task has ended.
    root[END] = at
    root[ATTRIBUTES][names.STOPPED] = reason
    if reason not in _COMPLETED:
        detail = record.detail
        fail(root, f"{reason}: {detail}" if detail else reason)


# -- requests --------------------------------------------------------------------------------------------------


def _requested(keeper: Keeper, record: Record) -> None:
    job = keeper.jobs.get(record.job) or keeper.job(record.job)
    model, at = record.model, record.at
    keeper.close(job.chat, at, "cancelled")
    attributes = job.asking.copy()
    attributes[names.MODEL] = model
    if model != job.model and keeper.provider is None:
        attributes[names.PROVIDER] = names.provider_of(model)
    attributes[names.TURN] = record.turn
    attributes[names.ATTEMPT] = record.attempt
    if keeper.content:
        # One that is sent again after a failure adds nothing to the one before.
        job.last_input = "\n".join(map(_text, record.new)) or job.last_input
        attributes[names.INPUT] = job.last_input
    job.chat = keeper.open(job, job.step or job.root, CHAT, model, at, attributes)


def _replied(keeper: Keeper, record: Record) -> None:
    job = keeper.jobs.get(record.job) or keeper.job(record.job)
    if (span := job.chat) is None:
        return
    job.chat = None
    attributes = span[ATTRIBUTES]
    prompt, completion = record.reported_prompt, record.reported_completion
    attributes[names.INPUT_TOKENS] = prompt = record.measured_prompt if prompt is None else prompt
    attributes[names.OUTPUT_TOKENS] = completion = (
        record.measured_completion if completion is None else completion
    )
    if (
        keeper.cost is not None
        and (cost := keeper.cost(attributes[names.MODEL], prompt, completion)) is not None
    ):
        attributes[names.COST] = cost
    if keeper.content:
        attributes[names.OUTPUT] = "\n".join((record.text, *record.tool_calls)).strip("\n")
    span[END] = record.at
    keeper.ended.append(complete(span))


def _request_failed(keeper: Keeper, record: Record) -> None:
    job = keeper.job(record.job)
    span, job.chat = job.chat, None
    # As httpx, a request that nobody answered in time has no words for it.
    keeper.close(span, record.at, record.error or "timeout")


def _text(message: Mapping[str, Any]) -> str:
    """Return what a message says, and below it what it calls, as `_replied` has an answer."""
    content = message.get("content")
    words = content if isinstance(content, str) else "" if content is None else repr(content)
    calls = [call.get("function") or {} for call in message.get("tool_calls") or ()]
    lines = [words, *(f"{call.get('name')}({call.get('arguments')})" for call in calls)]
    return f"{message.get('role')}: " + "\n".join(filter(None, lines))


# -- tools -----------------------------------------------------------------------------------------------------


# What attributes are copied of: to copy and overwrite them takes less than to add them one by one.
_UNKNOWN_CALL: Final[dict[str, Attribute]] = TOOL.always | {names.TOOL: "", names.VIA: ""}
_KNOWN_CALL: Final[dict[str, Attribute]] = _UNKNOWN_CALL | {names.TOOL_CALL: ""}


def _called(keeper: Keeper, record: Record) -> None:
    job = keeper.jobs.get(record.job) or keeper.job(record.job)
    name, call_id = record.name, record.call_id
    attributes = (_UNKNOWN_CALL if call_id is None else _KNOWN_CALL).copy()
    attributes[names.TOOL] = name
    attributes[names.VIA] = record.via
    if call_id is not None:
        attributes[names.TOOL_CALL] = call_id
    if keeper.content:
        # What model-written code calls a tool with is Python, and has no JSON; nor have numbers like `inf`.
        given = as_json(record.arguments) if job.calls_together else None
        attributes[names.TOOL_ARGUMENTS] = attributes[names.INPUT] = (
            record.arguments if given is None else given
        )
    job.tools.append(keeper.open(job, job.step or job.root, TOOL, name, record.at, attributes))


def _returned(keeper: Keeper, record: Record) -> None:
    """End the call that a record is about, if it is open."""
    job = keeper.jobs.get(record.job) or keeper.job(record.job)
    span = _ended_call(job, record.name, record.call_id)
    if span is None:
        return
    # By its number, which no other span has, so that nothing behind it is compared.
    job.tools.remove(span)
    if keeper.content and record.result is not None:
        span[ATTRIBUTES][names.TOOL_RESULT] = span[ATTRIBUTES][names.OUTPUT] = record.result
    span[END] = record.at
    if record.error is not None:
        fail(span, record.error)
    keeper.ended.append(complete(span))


def _ended_call(job: Job, name: str, call_id: str | None) -> Making | None:
    """Return the open call of a tool with an id, or else one without: it began before the trace had ids.

    Which one ends without an id, a trace does not say: with engine two, which begins the calls of a reply together,
    the oldest is taken; with engine one, whose tools call tools, the youngest.
    """
    without = None
    for span in job.tools if job.calls_together else reversed(job.tools):
        attributes = span[ATTRIBUTES]
        if attributes[names.TOOL] != name:
            continue
        known = attributes.get(names.TOOL_CALL)
        if call_id is None or known == call_id:
            return span
        if known is None and without is None:
            without = span
    return without


# -- what the harness did --------------------------------------------------------------------------------------


def _spoke(keeper: Keeper, record: Record) -> None:
    """Mark what a part of the harness did; a guard's verdict is a span as well."""
    part, action, detail, at = record.part, record.action, record.detail, record.at
    under = keeper.mark(record.job, at, part, {"statek.action": action, names.DETAIL: detail})
    if not part.endswith(" guard"):
        return
    attributes = GUARD.always | {names.VERDICT: action, names.DETAIL: detail}
    if action != "pass":
        attributes[names.LEVEL] = "ERROR" if action == "block" else "WARNING"
        attributes[names.STATUS_MESSAGE] = detail
    _moment(keeper, record, under, GUARD, part.removesuffix(" guard"), attributes)


def _committed(keeper: Keeper, record: Record) -> None:
    """Mark a checkpoint, as a span as well; the last one of a task comes when that has ended."""
    attributes: dict[str, Attribute] = {
        "statek.iteration": record.iteration,
        "statek.messages": record.messages,
    }
    under = keeper.mark(record.job, record.at, f"checkpoint {record.point}", attributes)
    _moment(keeper, record, under, CHECKPOINT, record.point, CHECKPOINT.always | attributes)


def _resumed(keeper: Keeper, record: Record) -> None:
    """Mark that a run was taken up again from a checkpoint, as a span as well."""
    attributes: dict[str, Attribute] = {"statek.point": record.point}
    under = keeper.mark(record.job, record.at, "checkpoint restored", attributes)
    _moment(keeper, record, under, CHECKPOINT, "restored", CHECKPOINT.always | attributes)


def _moment(
    keeper: Keeper,
    record: Record,
    under: Making,
    kind: Kind,
    what: str,
    attributes: dict[str, Attribute],
) -> None:
    """Open and close a span that takes no time."""
    keeper.close(keeper.open(keeper.job(record.job), under, kind, what, record.at, attributes), record.at)


def _asked(keeper: Keeper, record: Record) -> None:
    """Begin to wait for a person."""
    job = keeper.job(record.job)
    attributes = PERSON.always | {"statek.token": record.token}
    if keeper.content:
        attributes[names.INPUT] = record.question
    job.people[record.token] = keeper.open(
        job, job.step or job.root, PERSON, record.tool, record.at, attributes
    )


def _answered(keeper: Keeper, record: Record) -> None:
    """End to wait for a person."""
    span = keeper.job(record.job).people.pop(record.token, None)
    if span is None:
        return
    span[ATTRIBUTES]["statek.answer"] = record.kind
    if keeper.content:
        span[ATTRIBUTES][names.OUTPUT] = record.text
    keeper.close(span, record.at, None if record.kind == "answered" else record.kind)


def _refused(keeper: Keeper, record: Record) -> None:
    """Mark a call that was not executed."""
    attributes: dict[str, Attribute] = {names.TOOL: record.name, "statek.failure": record.failure}
    keeper.mark(record.job, record.at, "call refused", attributes)


def _nudged(keeper: Keeper, record: Record) -> None:
    """Mark a correction."""
    attributes: dict[str, Attribute] = {"statek.failure": record.failure, "statek.number": record.number}
    keeper.mark(record.job, record.at, "nudge", attributes)


def _compacted(keeper: Keeper, record: Record) -> None:
    """Mark a history that was made shorter."""
    attributes: dict[str, Attribute] = {
        "statek.strategy": record.strategy,
        "statek.before": record.tokens_before,
        "statek.after": record.tokens_after,
    }
    keeper.mark(record.job, record.at, "compacted", attributes)


def _attempted(keeper: Keeper, record: Record) -> None:
    """Mark how an attempt of a ladder's level ended, and end its step: the next attempt begins with another one."""
    job = keeper.job(record.job)
    attributes: dict[str, Attribute] = {"statek.level": record.level, "statek.cause": record.cause}
    keeper.mark(record.job, record.at, "attempt", attributes)
    keeper.close(job.step, record.at)
    job.step = None


def _escalated(keeper: Keeper, record: Record) -> None:
    """Mark that another level is asked, or nobody any more."""
    attributes: dict[str, Attribute] = {
        "statek.to": record.to_level or "nobody",
        "statek.cause": record.cause,
    }
    keeper.mark(record.job, record.at, "escalated", attributes)


_HANDLERS: Final[Mapping[str, Callable[[Keeper, Record], None]]] = {
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
    "Nudged": _nudged,
    "Compacted": _compacted,
    "AttemptEnded": _attempted,
    "Escalated": _escalated,
}
"""What each kind of record does; kinds that are not here are no part of spans."""
