"""A batch of calls as values that a checkpoint can hold, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from statek_sim.agent.effects import Ask, ToolCall, ToolOutcome, ToolStatus, WrittenCall
from statek_sim.agent.replies.calls import Refusal
from statek_sim.agent.replies.nudges import Failure
from statek_sim.agent.replies.reading import ModelReply
from statek_sim.providers.wire.reply import ReportedUsage

if TYPE_CHECKING:
    from statek_sim.agent.batch import Batch


def saved_reply(reply: ModelReply) -> dict[str, object]:
    """Return a reply as values."""
    return {
        "text": reply.text,
        "calls": [_written(call) for call in reply.calls],
        "usage": asdict(reply.usage),
        "truncated": reply.truncated,
        "native": None if reply.native is None else dict(reply.native),
    }


def reply_from(saved: Mapping[str, Any]) -> ModelReply:
    """Return the reply that `saved_reply` made values of."""
    return ModelReply(
        saved["text"],
        tuple(WrittenCall(*call) for call in saved["calls"]),
        ReportedUsage(**saved["usage"]),
        truncated=saved["truncated"],
        native=saved["native"],
    )


def saved_batch(batch: Batch) -> dict[str, object]:
    """Return a batch between two of its waves, or before one is executed, as values."""
    return {
        "reply": saved_reply(batch.reply),
        "text": batch.text,
        "calls": [_written(call) for call in batch.calls],
        "results": list(batch.results),
        "ready": [(at, _call(call)) for at, call in batch.ready],
        "refusals": [
            (refusal.failure.value, refusal.reason, dict(refusal.details)) for refusal in batch.refusals
        ],
        "asks": [(at, ask.text, ask.seconds) for at, ask in batch.asks],
        "wave": [(at, _call(call)) for at, call in batch.wave],
        "outcomes": [None if result is None else _outcome(result) for result in batch.outcomes],
        "first_record": batch.first_record,
        "done": [(_call(call), _outcome(outcome)) for call, outcome in batch.done],
        "failed": batch.failed,
        "progress": batch.progress,
        "open_before": batch.open_before,
    }


def restore_batch(batch: Batch, saved: Mapping[str, Any]) -> None:
    """Give a new batch what `saved_batch` made values of."""
    batch.results = list(saved["results"])
    batch.ready = [(at, ToolCall(*call)) for at, call in saved["ready"]]
    batch.refusals = [Refusal(Failure(name), reason, details) for name, reason, details in saved["refusals"]]
    batch.asks = [(at, Ask(text=text, seconds=seconds)) for at, text, seconds in saved["asks"]]
    batch.wave = [(at, ToolCall(*call)) for at, call in saved["wave"]]
    batch.outcomes = [None if result is None else outcome_from(*result) for result in saved["outcomes"]]
    batch.first_record = saved["first_record"]
    batch.done = [(ToolCall(*call), outcome_from(*outcome)) for call, outcome in saved["done"]]
    batch.failed, batch.progress = saved["failed"], saved["progress"]
    # Versions before this one did not say it.
    batch.open_before = saved.get("open_before", batch.open_before)


def outcome_from(status: str, text: str) -> ToolOutcome:
    """Return an outcome from its two texts."""
    return ToolOutcome(ToolStatus(status), text)


def calls_from(saved: Mapping[str, Any]) -> tuple[WrittenCall, ...]:
    """Return the calls of a saved batch, as they were written."""
    return tuple(WrittenCall(*call) for call in saved["calls"])


def _written(call: WrittenCall) -> tuple[str, str, str]:
    return call.id, call.name, call.arguments


def _call(call: ToolCall) -> tuple[str, str, dict[str, object]]:
    return call.id, call.name, dict(call.arguments)


def _outcome(outcome: ToolOutcome) -> tuple[str, str]:
    return outcome.status.value, outcome.text
