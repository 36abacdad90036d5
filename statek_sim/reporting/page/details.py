"""One run's details for the page: jobs with their usage, a timeline, and the transcript."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from statek_sim import trace as events
from statek_sim.analysis.run_usage import scenario_use
from statek_sim.backends.record import JobRecord, RunRecord
from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.limits import LimitName
from statek_sim.reporting.model import writable
from statek_sim.reporting.page.usage import Curve, curves, result_harness, waterfall_json
from statek_sim.reporting.text_format import Excerpts, excerpt, label
from statek_sim.scenario.schema import QueueItem
from statek_sim.suite.result import ScenarioResult
from statek_sim.suite.transcript import Line, numbered, place
from statek_sim.trace import Event
from statek_sim.usage.breakdown import JobUse
from statek_sim.usage.tokenizers import TokenizerRegistry
from statek_sim.values import JSON, Message, record
from statek_sim.world.queue import ItemStatus


def details_of(
    result: ScenarioResult, *, failure: str | None = None, tokenizers: TokenizerRegistry | None = None
) -> dict[str, JSON]:
    """Return the details in the schema's `details`; `failure` is the report's text about a failed run.

    `tokenizers` are those that measured it. Very long texts are cut, with a note.
    """
    scenario, record = result.scenario, result.record
    texts = Excerpts()
    # The transcript first: it is the most useful text, so it is the last to be cut.
    entries = transcript_json(record.events, texts)
    queue = scenario.world.queue
    return {
        "source": scenario.source,
        "proves": list(scenario.proves),
        "preset": result.preset or scenario.preset,
        "seed": record.seed,
        "digest": record.digest,
        "failure": None if failure is None else excerpt(failure),
        "error": None if record.error is None else texts.take(f"{record.error.type}: {record.error.message}"),
        "items": [{"id": name, **_item(item)} for name, item in record.items.items()],
        "leaked_claims": list(record.leaked_claims),
        "jobs": list(_jobs(result, texts, tokenizers)),
        "lanes": list(_lanes(record)),
        "spans": [_span(span) for span in spans(record.events, () if queue is None else queue.items)],
        "transcript": [*entries],
    }


def transcript_json(trace: Sequence[Event], texts: Excerpts) -> list[dict[str, JSON]]:
    """Return the messages, executed code and answers, in order; texts as far as there is room."""
    return [_entry(seq, line, trace, texts) for seq, line in numbered(trace)]


def _item(item: Mapping[str, JSON]) -> dict[str, JSON]:
    return {key: writable(value) for key, value in item.items()}


def _jobs(
    result: ScenarioResult, texts: Excerpts, tokenizers: TokenizerRegistry | None
) -> Iterator[dict[str, JSON]]:
    record, harness = result.record, result_harness(result)
    known = curves(result, harness)
    uses = {use.name: use for use in scenario_use(result, tokenizers=tokenizers).jobs}
    created = {event.job: event for event in record.events if isinstance(event, events.JobCreated)}
    for name, job in record.jobs.items():
        yield {
            **_job(job, created.get(name), texts),
            "limits": _limits(harness),
            **_usage(known.get(name, Curve()), uses.get(name)),
            "history": [_message(message, texts) for message in job.history],
        }


def _job(job: JobRecord, created: events.JobCreated | None, texts: Excerpts) -> dict[str, JSON]:
    return {
        "name": job.name,
        "agent": job.agent,
        "model": None if created is None else created.model,
        "parent": None if created is None else created.parent,
        "exit": _result(job, texts),
        "error": None if job.error is None else texts.take(job.error),
        **record(job, "status", "stop", "turns", "exceptions", "streak", "completions"),
    }


def _result(job: JobRecord, texts: Excerpts) -> str | None:
    """Return a job's result: its exit value, or an agent's final answer."""
    given = job.answer if job.exit is None else job.exit
    return None if given is None else texts.take(_json_text(given))


def _limits(harness: LLM_Harness) -> dict[str, JSON]:
    """Return the limits before any extension, and the extension per completion."""
    figures: dict[str, JSON] = {limit.value: getattr(harness.limits, limit.value) for limit in LimitName}
    return {**figures, "limit_extension_per_completion": harness.limits.limit_extension_per_completion}


def _usage(curve: Curve, use: JobUse | None) -> dict[str, JSON]:
    return {
        "calls": [*curve.calls],
        "limit_line": [*curve.limit_line],
        "tokenizer": None if use is None else use.use.tokenizer,
        "waterfall": None if use is None else waterfall_json(use.use.waterfall),
    }


def _message(message: Message, texts: Excerpts) -> JSON:
    """Return one message of a request: its role, its text, and its other parts."""
    content = message.get("content")
    other = {key: value for key, value in message.items() if key not in ("role", "content")}
    return {
        "role": str(message.get("role")),
        "text": texts.take(
            content if isinstance(content, str) else "" if content is None else _json_text(content)
        ),
        "more": texts.take(_json_text(other)) if other else None,
    }


def _json_text(value: JSON) -> str:
    return json.dumps(writable(value), ensure_ascii=False)


def _lanes(record: RunRecord) -> Iterator[dict[str, JSON]]:
    """Yield the lifetime of each job: from its creation until it last stopped, or the run ended."""
    last = len(record.events) - 1
    reach: dict[str, list[int]] = {}
    for seq, event in enumerate(record.events):
        if event.job:
            place = reach.setdefault(event.job, [seq, last])
            if isinstance(event, events.JobStopped):
                place[1] = seq
            elif isinstance(event, events.Reactivated):
                place[1] = last
    for name, (start, end) in reach.items():
        yield {
            "job": name,
            "from": record.events[start].at,
            "to": record.events[end].at,
            "from_seq": start,
            "to_seq": end,
        }


def _entry(seq: int, line: Line, trace: Sequence[Event], texts: Excerpts) -> dict[str, JSON]:
    return {
        "seq": seq,
        "at": line.at,
        "job": line.job,
        "kind": line.who,
        "text": texts.take(line.text),
        "error": _went_wrong(trace[seq]),
    }


def _went_wrong(event: Event) -> bool:
    match event:
        case events.ConsoleLine() | events.ToolReturned() | events.SubtaskCompleted():
            return event.error is not None
        case events.RequestFailed():
            return True
        case events.HandlerRan():
            return event.failed is not None
        case events.JobStopped():
            return event.reason not in ("exit", "final")
        case _:
            return False


@dataclass(slots=True, kw_only=True)
class Span:
    """One span of a job. Times are virtual seconds, `seq` positions in the trace; it is open if `to_seq` is None."""

    job: str
    kind: str
    label: str
    from_seq: int
    start: float
    to_seq: int | None = None
    end: float | None = None


def _span(span: Span) -> dict[str, JSON]:
    return {**record(span, "job", "kind", "from_seq", "to_seq", "label"), "from": span.start, "to": span.end}


def spans(trace: Sequence[Event], items: Iterable[QueueItem] = ()) -> list[Span]:
    """Return all spans in order of their starts; `items` are the queue's at the start, possibly already claimed.

    A wait ends when its future is ready, a tool call when the tool returns, a claim when the item changes hands or
    status. A job that stops ends its waits and tool calls, but not its claims: a claim that stays open is a leak.
    """
    open_spans = _Open()
    for item in items:
        if item.status == ItemStatus.CLAIMED:
            open_spans.claim(item.id, f"{item.status} by {item.owner}", 0, 0.0, job="")
    for seq, event in enumerate(trace):
        open_spans.follow(seq, event)
    return open_spans.all


def held_item(change: str) -> bool | None:
    """Return whether a change of the world leaves a work item claimed; None if it does not concern a work item."""
    # A line of the ledger is any value that the model noted, not necessarily a text.
    status = str(change).partition(" ")[0]
    return status == ItemStatus.CLAIMED if status in ItemStatus.__members__ else None


class _Open:
    """The spans so far, and the open ones among them."""

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
        """Start a claim on an item: `change` is `CLAIMED by OWNER`."""
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
        """Return the open call that returned: by its id, else the latest with that name, as tools call tools."""
        calls = self._tools.get(event.job, [])
        for at, (call_id, span) in reversed([*enumerate(calls)]):
            if event.call_id == call_id and span.label == label(str(event.name)):
                del calls[at]
                return span
        return None

    @staticmethod
    def _close(span: Span | None, seq: int, at: float) -> None:
        if span is not None:
            span.to_seq, span.end = seq, at
