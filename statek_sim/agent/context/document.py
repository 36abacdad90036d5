"""Document 004's `ContextManager`, to the letter: what its code does, where it breaks, and how it counts.

The two methods that its code calls and does not have stay missing: `_truncate_to_budget` always, `_summarise` where no
summary model is given, which stands for a reader who wrote that one.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from statek_sim.agent.context.settings import ContextSettings
from statek_sim.agent.context.units import NOTE_OPENING
from statek_sim.agent.effects import Compaction, TextWanted
from statek_sim.errors import CompactionFailed
from statek_sim.values import Message


def counted(messages: Sequence[Message]) -> int:
    """Return `sum(len(m.get("content", "")) for m in messages) // 4`; `CompactionFailed` for a content of null."""
    total = 0
    for message in messages:
        content: Any = message.get("content", "")
        try:
            total += len(content)
        except TypeError as error:
            raise CompactionFailed(f"TypeError: {error}") from error
    return total // 4


def document_compaction(
    messages: Sequence[Message], settings: ContextSettings
) -> Generator[TextWanted, str | None, Compaction | None] | None:
    """Return what `maybe_compact` does with a history, None where it gives it back as it is."""
    if counted(messages) <= settings.room:
        return None
    return _compaction(list(messages), settings)


def _compaction(
    messages: list[Message], settings: ContextSettings
) -> Generator[TextWanted, str | None, Compaction | None]:
    # With keep = 0 both slices are at 0: everything is recent and nothing is left to compress.
    recent = messages[-(settings.keep * 2) :]
    older = messages[: -(settings.keep * 2)]
    if not older:
        raise CompactionFailed(
            "AttributeError: 'ContextManager' object has no attribute '_truncate_to_budget'"
        )
    if settings.summary is None:
        raise CompactionFailed("AttributeError: 'ContextManager' object has no attribute '_summarise'")
    transcript = "\n".join(f"{message.get('role')}: {message.get('content')}" for message in older)
    ask: Message = {"role": "system", "content": settings.summary.prompt}
    text = yield TextWanted(
        by=settings.summary,
        messages=(ask, {"role": "user", "content": transcript}),
        max_tokens=settings.max_summary,
    )
    if text is None:
        raise CompactionFailed("the model that summarises failed, and nothing catches it")
    note: Message = {"role": "system", "content": f"{NOTE_OPENING}\n{text}"}
    return Compaction(messages=[note, *recent], strategy="document", summarised=len(older))
