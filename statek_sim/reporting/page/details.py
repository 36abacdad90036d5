"""The details of a run for the page: jobs with their usage, a timeline and the transcript."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from statek_sim import trace as events
from statek_sim.analysis.run_usage import scenario_use
from statek_sim.backends import setup
from statek_sim.backends.record import JobRecord, RunRecord
from statek_sim.backends.setup import settings_of
from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.limits import LimitName, limits_in_force
from statek_sim.harness.preset import located_preset
from statek_sim.reporting.model import writable
from statek_sim.reporting.text_format import Excerpts, count, excerpt, label, plural, share
from statek_sim.scenario.schema import QueueItem
from statek_sim.semantics import profile_named
from statek_sim.suite.result import ScenarioResult
from statek_sim.suite.transcript import Line, numbered, place
from statek_sim.trace import DifficultyRaised, Event, LLMReplied, LLMRequested, Reactivated
from statek_sim.usage.breakdown import MEANINGS, STEPS, JobUse, Waterfall
from statek_sim.usage.token_usage import TurnUsage, approx_tokens
from statek_sim.usage.tokenizers import TokenizerRegistry
from statek_sim.values import JSON, Message, record
from statek_sim.world.queue import ItemStatus


@dataclass(slots=True)
class Curve:
    """A job's calls, in order, and the token limit after each call (None if there is no limit)."""

    calls: list[dict[str, JSON]] = field(default_factory=list)
    limit_line: list[int | None] = field(default_factory=list)


def result_harness(result: ScenarioResult) -> LLM_Harness:
    """Return the harness, with its limits, under which a scenario ran."""
    preset = None if result.preset is None else located_preset(result.preset)
    settings = settings_of(result.scenario, preset=preset)
    return setup.scenario_harness(result.scenario, result.profile, settings, preset=preset)


def curves(result: ScenarioResult, harness: LLM_Harness) -> Mapping[str, Curve]:
    """Return a curve for each job that received an answer, by job."""
    readers: dict[str, _Reader] = {}
    # Runs of engine two have no difficulty.
    grants = result.scenario.engine == "agent" or profile_named(result.profile).difficulty_extends_tokens
    unheard = _unheard(result.record)
    for event in result.record.events:
        reader = readers.setdefault(event.job, _Reader(harness, grants=grants))
        match event:
            case LLMRequested():
                reader.bytes_sent = event.bytes_sent
                if usage := unheard.pop((event.job, event.turn), None):
                    reader.answer(event, usage.bytes_received, usage.measured_tokens, usage.reported_tokens)
            case LLMReplied():
                measured = event.measured_prompt + event.measured_completion
                reader.answer(event, event.bytes_received, measured, _reported(event))
            case Reactivated():
                reader.completions = event.completions
            case DifficultyRaised():
                reader.raise_difficulty(event.tokens)
            case _:
                pass
    return {name: reader.curve for name, reader in readers.items() if reader.curve.calls}


def _unheard(record: RunRecord) -> dict[tuple[str, int], TurnUsage]:
    """Return the usage of answers that a job did not read because a null token count ended it (behaviour 5)."""
    heard = {(event.job, event.turn) for event in record.events if isinstance(event, LLMReplied)}
    calls = {(call.job, call.turn): call.usage for call in record.calls}
    return {place: usage for place, usage in calls.items() if place not in heard}


@dataclass(slots=True)
class _Reader:
    """Follows a job's events, tracking the usage totals and everything on which the token limit depends."""

    harness: LLM_Harness
    grants: bool
    completions: int | None = None
    granted: int = 0
    bytes_sent: int = 0
    all_bytes: int = 0
    measured: int = 0
    reported: int | None = None
    curve: Curve = field(default_factory=Curve)

    def answer(
        self, event: LLMRequested | LLMReplied, received: int, measured: int, reported: int | None
    ) -> None:
        """Add an answered call: the bytes received, and the tokens counted by the tokenizer and the provider."""
        self.all_bytes += self.bytes_sent + received
        self.measured += measured
        if reported is not None:
            self.reported = (self.reported or 0) + reported
        self.curve.calls.append(
            {
                "turn": event.turn,
                "at": event.at,
                "bytes_sent": self.bytes_sent,
                "bytes_received": received,
                "approx": approx_tokens(self.bytes_sent, received),
                "measured": measured,
                "reported": reported,
                "approx_total": approx_tokens(self.all_bytes, 0),
                "measured_total": self.measured,
                "reported_total": self.reported,
            }
        )
        self.curve.limit_line.append(self._limit())

    def raise_difficulty(self, tokens: int) -> None:
        """Extend the limit for a higher difficulty, starting with the check after the step that set it."""
        if self.grants:
            self.granted += tokens
            if self.curve.limit_line:
                self.curve.limit_line[-1] = self._limit()

    def _limit(self) -> int | None:
        # Counts are integers, so they exceed a limit exactly if they exceed the integer part of the limit.
        limits = limits_in_force(self.harness.limits, self.completions, self.harness.rule)
        base = limits.max_token_usage
        return None if base is None else math.floor(base) + self.granted


def _reported(reply: LLMReplied) -> int | None:
    if reply.reported_prompt is None and reply.reported_completion is None:
        return None
    return (reply.reported_prompt or 0) + (reply.reported_completion or 0)


LABELS: Final = {
    "history": "History sent again",
    "escaping": r"\uXXXX escapes",
    "envelope": "JSON envelope",
    "tools": "Tool definitions",
    "response": "Response envelope",
    "density": "Tokenizer density",
}
"""Short labels for the steps; descriptions are in `MEANINGS`."""

_FROM_ESTIMATE = STEPS[1:]
"""The steps from the estimate to the measured tokens; `history` leads to the estimate."""


def waterfall_json(found: Waterfall) -> dict[str, JSON]:
    """Return the waterfall in tokens: `once` plus `history` is `from`, and `from` plus all `steps` is `to`."""
    members = found._asdict()
    return {
        "once": found.once,
        "history": found.history,
        "from": found.estimate,
        "to": found.measured,
        "steps": [{"name": name, "label": LABELS[name], "tokens": members[name]} for name in _FROM_ESTIMATE],
        "why": why(found),
    }


def why(found: Waterfall) -> str:
    """Return a sentence about the estimate's error and the step that contributes most to it."""
    off = found.estimate - found.measured
    both = (
        f"The harness counts {plural(found.estimate, 'token')}, the tokenizer counts {count(found.measured)}"
    )
    if not off:
        return f"{both}."
    members = found._asdict()
    # A step down from the estimate explains an estimate that is too high, and vice versa.
    name = min(_FROM_ESTIMATE, key=lambda step: members[step] if off > 0 else -members[step])
    amount = share(abs(off), found.measured) if found.measured else plural(abs(off), "token")
    side = "high" if off > 0 else "low"
    return f"{both}: {amount} too {side}, mostly due to {MEANINGS[name]} ({plural(abs(members[name]), 'token')})."


def details_of(
    result: ScenarioResult, *, failure: str | None = None, tokenizers: TokenizerRegistry | None = None
) -> dict[str, JSON]:
    """Return a run's details as defined by the page's schema; `failure` is the report's description of a failed run.

    `tokenizers` are the tokenizers that measured the run. Very long strings are truncated, with a note.
    """
    scenario, record = result.scenario, result.record
    texts = Excerpts()
    # The transcript is taken first, because it is the most useful text and should be cut last.
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
    """Return a run's messages, executed code and answers, in order; `texts` truncates long strings."""
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
    """Return a job's exit value or an agent's final answer as text; None if there is neither."""
    given = job.answer if job.exit is None else job.exit
    return None if given is None else texts.take(_json_text(given))


def _limits(harness: LLM_Harness) -> dict[str, JSON]:
    """Return the limits before any extension and the extension per completion."""
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
    """Return a request message: its role, text and other parts."""
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
    """Yield each job's lifetime, from its creation until the job last stopped or the run ended."""
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
    """A job's wait, tool call or claim. Times are virtual seconds; `from_seq` and `to_seq` are positions in the trace.

    A span that did not end has no `to_seq`.
    """

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
    """Return a run's spans, ordered by start; `items` are the work items in the queue at the start.

    A wait ends when the future is ready, a tool call when the tool returns, and a claim when the item's owner or status
    changes. When a job stops, its waits and tool calls end, but its claims do not: a claim that stays open is a leak.
    """
    open_spans = _Open()
    for item in items:
        if item.status == ItemStatus.CLAIMED:
            open_spans.claim(item.id, f"{item.status} by {item.owner}", 0, 0.0, job="")
    for seq, event in enumerate(trace):
        open_spans.follow(seq, event)
    return open_spans.all


def held_item(change: str) -> bool | None:
    """Return whether a world change leaves a work item claimed; None if it does not affect a work item."""
    # A line of the ledger is any value that the model noted, not necessarily a string.
    status = str(change).partition(" ")[0]
    return status == ItemStatus.CLAIMED if status in ItemStatus.__members__ else None


class _Open:
    """Collects a run's spans and tracks which spans are open."""

    def __init__(self) -> None:
        self.all: list[Span] = []
        self._waits: dict[str, Span] = {}
        self._claims: dict[str, Span] = {}
        self._tools: dict[str, list[tuple[str | None, Span]]] = {}

    def follow(self, seq: int, event: Event) -> None:
        """Process the next event, which may open or close spans."""
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
        """Start a claim on an item; `change` is `CLAIMED by OWNER`."""
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
        """Remove and return the latest open call with the event's id and name."""
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
