"""Replies, calls and what came of them as values that a checkpoint can hold, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from statek_sim.agent.effects import ToolCall, ToolOutcome, ToolStatus, WrittenCall
from statek_sim.agent.replies.reading import ModelReply
from statek_sim.providers.wire.reply import ReportedUsage


def saved_reply(reply: ModelReply) -> dict[str, object]:
    """Return a reply as values."""
    return {
        "text": reply.text,
        "calls": [written_values(call) for call in reply.calls],
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


def outcome_from(status: str, text: str) -> ToolOutcome:
    """Return an outcome from its two texts."""
    return ToolOutcome(ToolStatus(status), text)


def calls_from(saved: Mapping[str, Any]) -> tuple[WrittenCall, ...]:
    """Return the calls of a saved batch, as they were written."""
    return tuple(WrittenCall(*call) for call in saved["calls"])


def written_values(call: WrittenCall) -> tuple[str, str, str]:
    """Return a call as it was written, as values."""
    return call.id, call.name, call.arguments


def call_values(call: ToolCall) -> tuple[str, str, dict[str, object]]:
    """Return a parsed call as values."""
    return call.id, call.name, dict(call.arguments)


def outcome_values(outcome: ToolOutcome) -> tuple[str, str]:
    """Return what came of a call as values."""
    return outcome.status.value, outcome.text
