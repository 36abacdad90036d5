"""The timeline of the page: marks for what happened to jobs, spans for waits, tool calls and claims held.

A span goes from one event of the trace to another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, assert_never

from statek_sim import trace as events
from statek_sim.reporting.text_format import excerpt, label
from statek_sim.scenario.schema import QueueItem
from statek_sim.suite.transcript import lost_words, place
from statek_sim.trace import Event
from statek_sim.values import JSON
from statek_sim.world.queue import ItemStatus

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


@dataclass(slots=True, kw_only=True)
class Span:
    """One span of a job. Times are virtual seconds, `seq` places in the trace; it is open where `to_seq` is None."""

    job: str
    kind: str
    label: str
    from_seq: int
    start: float
    to_seq: int | None = None
    end: float | None = None

    def as_json(self) -> dict[str, JSON]:
        """Return the span as the page has it."""
        return {
            "job": self.job,
            "kind": self.kind,
            "from_seq": self.from_seq,
            "to_seq": self.to_seq,
            "from": self.start,
            "to": self.end,
            "label": self.label,
        }


def spans(trace: Sequence[Event], items: Iterable[QueueItem] = ()) -> list[Span]:
    """Return all spans in the order in which they begin; `items` are the queue's at the start, maybe claimed then.

    A wait ends when its future is ready, a tool call when the tool returns, a claim when the item changes hands or
    status. A job that stops ends its waits and tool calls, not its claims: what stays open then is a leak.
    """
    open_spans = _Open()
    for item in items:
        if item.status == ItemStatus.CLAIMED:
            open_spans.claim(item.id, f"{item.status} by {item.owner}", 0, 0.0, job="")
    for seq, event in enumerate(trace):
        open_spans.follow(seq, event)
    return open_spans.all


def held_item(change: str) -> bool | None:
    """Return whether a change of the world leaves a work item claimed; None when it is not about a work item."""
    # A line of the ledger is whatever the model noted, which may be no text.
    status = str(change).partition(" ")[0]
    return status == ItemStatus.CLAIMED if status in ItemStatus.__members__ else None


class _Open:
    """The spans so far, and those of them that have no end yet."""

    def __init__(self) -> None:
        self.all: list[Span] = []
        self._waits: dict[str, Span] = {}
        self._claims: dict[str, Span] = {}
        self._tools: dict[str, list[tuple[str | None, Span]]] = {}

    def follow(self, seq: int, event: Event) -> None:
        """Open or close what one event opens or closes."""
        match event:
            case events.Waiting():
                self._close(self._waits.pop(event.job, None), seq, event.at)
                self._waits[event.job] = self._begin(
                    "wait", f"a future, in {place(event.instruction)}", seq, event
                )
            case events.Released():
                self._close(self._waits.pop(event.job, None), seq, event.at)
            case events.ToolCalled():
                span = self._begin("tool", str(event.name), seq, event)
                self._tools.setdefault(event.job, []).append((event.call_id, span))
            case events.ToolReturned():
                self._close(self._called(event), seq, event.at)
            case events.JobStopped():
                self._close(self._waits.pop(event.job, None), seq, event.at)
                for _, span in self._tools.pop(event.job, ()):
                    self._close(span, seq, event.at)
            case events.WorldChanged() if held_item(event.change) is not None:
                self._close(self._claims.pop(event.subject, None), seq, event.at)
                if held_item(event.change):
                    self.claim(event.subject, event.change, seq, event.at, job=event.job)
            case _:
                pass

    def claim(self, item: str, change: str, seq: int, at: float, *, job: str) -> None:
        """Begin a claim on an item: `change` is `CLAIMED by OWNER`."""
        _, _, owner = change.partition(" by ")
        words = label(f"{item} by {owner}")
        span = Span(job=job, kind="claim", label=words, from_seq=seq, start=at)
        self._claims[item] = span
        self.all.append(span)

    def _begin(self, kind: str, name: str, seq: int, event: Event) -> Span:
        span = Span(job=event.job, kind=kind, label=label(name), from_seq=seq, start=event.at)
        self.all.append(span)
        return span

    def _called(self, event: events.ToolReturned) -> Span | None:
        """Return the open call of the tool with the id that returned, or else one without: tools had no ids once.

        Of several without an id it is the youngest: tools that call tools return first.
        """
        calls = self._tools.get(event.job, [])
        name, wanted = label(str(event.name)), event.call_id
        places = [at for at in reversed(range(len(calls))) if calls[at][1].label == name]
        if wanted is not None:
            places = [at for at in places if calls[at][0] == wanted] or [
                at for at in places if calls[at][0] is None
            ]
        return calls.pop(places[0])[1] if places else None

    @staticmethod
    def _close(span: Span | None, seq: int, at: float) -> None:
        if span is not None:
            span.to_seq, span.end = seq, at
