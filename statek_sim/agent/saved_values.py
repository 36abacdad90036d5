"""Replies, calls and what came of them as values that a checkpoint can hold, and back."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from statek_sim.agent.effects import Parts, Saved, ToolCall, ToolOutcome, ToolStatus, WrittenCall
from statek_sim.agent.replies.reading import ModelReply
from statek_sim.errors import BadInput
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


SEAMS: Final = ("watchers", "gates", "guards")
SINGLE: Final = ("chooser", "reader", "compactor")


def saved_parts(parts: Parts) -> dict[str, list[object]]:
    """Return what the parts know, those of each seam in their order."""
    return {seam: [_known(seam, part) for part in stateful(parts, seam)] for seam in (*SEAMS, *SINGLE)}


def stateful(parts: Parts, seam: str) -> list[Any]:
    """Return the parts of a seam that say what they know."""
    found = getattr(parts, seam)
    given: Iterable[Any] = found if seam in SEAMS else () if found is None else (found,)
    # A part may stand in another one, which looks after it.
    every = [getattr(part, "inner", part) for part in given]
    return [part for part in every if not _is_stateless(seam, part)]


def _known(seam: str, part: Saved) -> object:
    return part.saved()


def _is_stateless(seam: str, part: Any) -> bool:
    """Return whether a part has nothing to save; `BadInput` where that cannot be seen."""
    if isinstance(part, Saved):
        return False
    code = part.func if isinstance(part, partial) else part
    if getattr(part, "stateless", False) is True:
        return True
    if isinstance(code, types.FunctionType) and not code.__closure__:
        return True
    raise BadInput(
        f"{seam}: {_named(code)} may know something of the run that a checkpoint would not hold; give it `saved()` and "
        "`restore(saved)`, or `stateless = True` where it knows nothing"
    )


def _named(code: Any) -> str:
    """Return what a part is called, without its place in memory."""
    name = getattr(code, "__qualname__", type(code).__qualname__)
    return f"a {name}" if isinstance(code, types.FunctionType) else f"{name!r}"
