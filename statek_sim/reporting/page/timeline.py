"""The timeline of the page: marks for what happened to jobs, spans for waits, tool calls and claims held.

A span goes from one event of the trace to another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim import trace as events
from statek_sim.reporting.text_format import label
from statek_sim.scenario.schema import QueueItem
from statek_sim.suite.transcript import numbered, place
from statek_sim.trace import Event
from statek_sim.values import JSON
from statek_sim.world.queue import ItemStatus

KINDS: Final[Mapping[type[Event], str]] = {
    events.JobCreated: "created",
    events.LLMRequested: "turn",
    events.LLMReplied: "reply",
    events.RequestFailed: "failure",
    events.CodeExecuted: "code",
    events.ToolCalled: "tool",
    events.ToolReturned: "tool_result",
    events.Waiting: "wait",
    events.Released: "released",
    events.ExitCalled: "exit",
    events.Delivered: "delivered",
    events.HandlerRegistered: "registered",
    events.HandlerRan: "handler",
    events.JobStopped: "stop",
    events.UserMessage: "message",
    events.Reactivated: "reactivated",
    events.Notified: "notified",
    events.SubtaskCompleted: "subtask",
    events.DifficultyRaised: "difficulty",
    events.StoreRemark: "store",
    events.ToolsOffered: "offered",
    events.ReplyRead: "rescue",
    events.CallRefused: "refused",
    events.Nudged: "nudge",
    events.StepMoved: "step",
    events.Compacted: "compacted",
    events.HarnessSpoke: "harness",
    events.PersonAsked: "asked",
    events.PersonAnswered: "person",
    events.AttemptEnded: "attempt",
    events.Escalated: "escalated",
    events.Committed: "commit",
    events.ProcessKilled: "killed",
    events.RunResumed: "resumed",
    events.CallRecalled: "recalled",
}
"""Kinds of marks by kind of event; changes of the world and lines of the console have kinds by what they tell."""


def marks(trace: Sequence[Event]) -> Iterator[dict[str, JSON]]:
    """Yield the marks of a run, oldest first; `seq` is the event's place in the trace, which orders equal times.

    A label is the beginning of the event's first line in the transcript. Requests and code have their own: the
    transcript shows what is new in them.
    """
    first_lines: dict[int, str] = {}
    for seq, line in numbered(trace):
        first_lines.setdefault(seq, line.text)
    for seq, event in enumerate(trace):
        kind = _kind(event)
        if kind is not None:
            words = label(_own_label(event) or first_lines.get(seq, kind))
            yield {"job": event.job, "seq": seq, "at": event.at, "kind": kind, "label": words}


def _own_label(event: Event) -> str | None:
    match event:
        case events.LLMRequested():
            again = f", attempt {event.attempt}" if event.attempt > 1 else ""
            return f"turn {event.turn}{again}"
        case events.CodeExecuted():
            return f"{event.kind}: {event.outcome}"
        case _:
            return None


def _kind(event: Event) -> str | None:
    """Return the kind of an event's mark, None for one without: status changes, steps, console lines without error."""
    match event:
        case events.ConsoleLine():
            return "exception" if event.error else None
        case events.WorldChanged():
            return _world_kind(event)
        case _:
            return KINDS.get(type(event))


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
        """Return the open call that returned; of several without an id the youngest: tools may call tools."""
        calls = self._tools.get(event.job, [])
        wanted = (event.call_id, label(str(event.name)))
        places = [at for at, (call_id, span) in enumerate(calls) if (call_id, span.label) == wanted]
        return calls.pop(places[-1])[1] if places else None

    @staticmethod
    def _close(span: Span | None, seq: int, at: float) -> None:
        if span is not None:
            span.to_seq, span.end = seq, at
