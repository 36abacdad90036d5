"""Forge's `TieredCompact` on messages in OpenAI's shape (antoinezambelli/forge, `context/strategies.py`).

Its messages know their iteration and what they are; here an iteration is a turn of the model with what follows it, and
a turn with calls is a tool call whose text, if it has one, is its reasoning.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Final

from statek_sim.agent.context.settings import ContextSettings
from statek_sim.agent.context.units import NUDGE_OPENING
from statek_sim.agent.effects import Compaction, TextWanted
from statek_sim.providers.wire.request import text_in
from statek_sim.values import Message

_CHARACTERS: Final = 200
"""Characters of a result that the first phase leaves (`TRUNCATE_CHARS`)."""
_HEADER: Final = 2
"""Messages at the beginning that are never touched."""


def counted(messages: Sequence[Message]) -> int:
    """Return the characters of all contents, divided by four (`_estimate_tokens`); arguments weigh nothing."""
    return sum(len(text_in(message.get("content"))) for message in messages) // 4


def forge_compaction(
    messages: Sequence[Message], settings: ContextSettings
) -> Generator[TextWanted, str | None, Compaction | None] | None:
    """Return what `maybe_compact` does with a history, None where it gives it back as it is."""
    trigger = int(settings.budget * 0.75)
    if counted(messages) < trigger:
        return None
    return _compaction(list(messages), settings.keep, trigger)


def _compaction(
    messages: list[Message], keep: int, trigger: int
) -> Generator[TextWanted, str | None, Compaction | None]:
    yield from ()
    end = _eligible_end(messages, keep)
    made = messages
    for phase in (1, 2, 3):
        made = [
            shorter
            for at, message in enumerate(messages)
            for shorter in ([message] if not _HEADER <= at < end else _phase(message, phase))
        ]
        if counted(made) < trigger:
            break
    if made == messages:
        return None
    return Compaction(messages=made, strategy=f"phase {phase}", dropped=len(messages) - len(made))


def _eligible_end(messages: Sequence[Message], keep: int) -> int:
    """Return where the newest `keep` iterations begin. With 0 it is the oldest: `seen_steps[-0]` is the first one."""
    turns = [
        at for at, message in enumerate(messages) if at >= _HEADER and message.get("role") == "assistant"
    ]
    return _HEADER if len(turns) <= keep else turns[-keep]


def _phase(message: Message, phase: int) -> list[Message]:
    """Return what a phase leaves of an older message."""
    role, text = message.get("role"), text_in(message.get("content"))
    if role == "user" and text.startswith(NUDGE_OPENING):
        return []
    if role == "tool":
        if phase > 1:
            return []
        if len(text) > _CHARACTERS:
            mark = f"\n[Truncated — {len(text) - _CHARACTERS} chars removed]"
            return [{**message, "content": text[:_CHARACTERS] + mark}]
    if role == "assistant" and phase > 2:
        return [{**message, "content": None}] if message.get("tool_calls") else []
    return [message]
