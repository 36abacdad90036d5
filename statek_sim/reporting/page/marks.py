"""What happened to jobs as marks on a timeline: a kind, a short label, maybe a detail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, assert_never

from statek_sim import trace as events
from statek_sim.reporting.page.excerpt import excerpt, label
from statek_sim.reporting.page.spans import held_item
from statek_sim.suite.transcript import lost_words, place
from statek_sim.trace import Event
from statek_sim.values import JSON

_DETAIL = 160
"""Characters of a detail: the transcript beside the timeline has it whole."""


class _Told(NamedTuple):
    kind: str
    label: str
    detail: str | None = None


def marks(trace: Sequence[Event]) -> Iterator[dict[str, JSON]]:
    """Yield the marks of a run, oldest first; `seq` is the event's place in the trace, which orders equal times."""
    for seq, event in enumerate(trace):
        mark = _told(event)
        if mark is not None:
            yield {
                "job": event.job,
                "seq": seq,
                "at": event.at,
                "kind": mark.kind,
                "label": label(mark.label),
                "detail": None if mark.detail is None else excerpt(mark.detail, _DETAIL),
            }


def _told(event: Event) -> _Told | None:
    match event:
        case events.StatusChanged() | events.StepStarted():
            return None
        case events.ConsoleLine():
            return _Told("exception", event.text, event.text) if event.error else None
        case events.JobCreated():
            return _Told("created", f"agent {event.role} on {event.model}")
        case events.CodeExecuted():
            return _Told("code", f"{event.kind}: {event.outcome}", event.source)
        case events.ToolCalled():
            return _Told("tool", str(event.name), f"{event.name}({event.arguments})")
        case events.ToolReturned():
            return _Told("tool_result", str(event.name), event.result if event.error is None else event.error)
        case events.Waiting():
            return _Told("wait", f"waits in {place(event.instruction)}")
        case events.Released():
            return _Told("released", "the awaited future is ready")
        case events.ExitCalled():
            return _Told("exit", event.status, event.status)
        case _:
            return _told_of_calls(event)


_Rest = (
    events.LLMRequested
    | events.LLMReplied
    | events.RequestFailed
    | events.Delivered
    | events.HandlerRegistered
    | events.HandlerRan
    | events.JobStopped
    | events.UserMessage
    | events.Reactivated
    | events.Notified
    | events.SubtaskCompleted
    | events.DifficultyRaised
    | events.WorldChanged
    | events.StoreRemark
    | events.AgentEvent
)


def _told_of_calls(event: _Rest) -> _Told:
    match event:
        case events.LLMRequested():
            again = f", attempt {event.attempt}" if event.attempt > 1 else ""
            return _Told("turn", f"turn {event.turn}{again}", f"{event.bytes_sent:,} bytes to {event.model}")
        case events.LLMReplied():
            return _Told("reply", f"turn {event.turn}", "\n".join((event.text, *event.tool_calls)))
        case events.RequestFailed():
            again = "gives up" if event.retry_in is None else f"tries again in {event.retry_in:g} s"
            return _Told("failure", f"turn {event.turn}: {event.error}", f"{event.error}; {again}")
        case events.Delivered():
            return _Told("delivered", event.body, event.body)
        case events.HandlerRegistered():
            return _Told("registered", event.name, event.context)
        case events.HandlerRan():
            failed = f"; it raised {event.failed}" if event.failed else ""
            return _Told("handler", event.name, f"context {event.context}, error {event.error}{failed}")
        case _:
            return _told_of_jobs(event)


def _told_of_jobs(
    event: events.JobStopped
    | events.UserMessage
    | events.Reactivated
    | events.Notified
    | events.SubtaskCompleted
    | events.DifficultyRaised
    | events.WorldChanged
    | events.StoreRemark
    | events.AgentEvent,
) -> _Told:
    match event:
        case events.JobStopped():
            return _Told("stop", event.reason, event.detail)
        case events.UserMessage():
            return _Told("message", event.text, event.text)
        case events.Reactivated():
            return _Told("reactivated", f"by {event.by}")
        case events.Notified():
            return _Told("notified", event.text, f"{event.text} (queued)" if event.queued else event.text)
        case events.SubtaskCompleted():
            ended = event.result if event.error is None else event.error
            return _Told("subtask", event.subtask, ended)
        case events.DifficultyRaised():
            return _Told("difficulty", event.difficulty, f"at {event.tokens:,} tokens")
        case events.WorldChanged():
            return _Told(_world_kind(event), f"{event.subject}: {event.change}")
        case events.StoreRemark():
            return _Told("store", event.told, event.told)
        case _:
            return _told_of_harness(event)


def _told_of_harness(event: events.AgentEvent) -> _Told:
    match event:
        case events.ToolsOffered():
            return _Told("offered", f"{len(event.names)} tools", ", ".join(event.names))
        case events.ReplyRead():
            found = event.refused if event.refused is not None else ", ".join(event.calls)
            return _Told("rescue", " > ".join(event.stages) or "read", found)
        case events.CallRefused():
            return _Told("refused", event.name, event.reason)
        case events.Nudged():
            return _Told("nudge", f"{event.failure}, {event.number} of {event.limit}", event.text)
        case events.StepMoved():
            return _Told("step", f"{event.step} {event.change}", ", ".join(event.open) or None)
        case events.Compacted():
            tokens = f"{event.tokens_before:,} -> {event.tokens_after:,} tokens"
            return _Told("compacted", event.strategy, f"{tokens}; {lost_words(event)}")
        case events.HarnessSpoke():
            return _Told("harness", f"{event.part}: {event.action}", event.detail)
        case events.PersonAsked():
            return _Told("asked", event.question, event.tool)
        case events.PersonAnswered():
            return _Told("person", event.kind, event.text or None)
        case events.AttemptEnded():
            return _Told("attempt", f"{event.level}: {event.cause}", event.detail or None)
        case events.Escalated():
            return _Told("escalated", f"to {event.to_level or 'nobody'}", f"{event.cause}: {event.detail}")
        case events.Committed():
            return _Told("commit", event.point, f"iteration {event.iteration}")
        case events.ProcessKilled():
            return _Told("killed", "the process died", None)
        case events.RunResumed():
            since = f"committed at {event.committed:g} s, iteration {event.iteration}"
            return _Told("resumed", event.point, since)
        case events.CallRecalled():
            return _Told("recalled", f"{event.name}: {event.how}", event.detail)
        case _:
            assert_never(event)


def _world_kind(event: events.WorldChanged) -> str:
    """Return `claim` when a work item is claimed, `release_claim` when a claim ends, else `world`."""
    status = held_item(event.change)
    if status is None:
        return "world"
    return "claim" if status else "release_claim"
