"""What the compaction checker finds in ours and in others', as docs/context.md shows it.

python -m tools.compaction_table
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import turnsafe

from statek_sim.agent.context.contract import Compact, Finding, Limits, MakeCompact, compaction_findings
from statek_sim.agent.context.manager import ContextSettings, compacted
from statek_sim.errors import ContextOverflow
from statek_sim.values import Message


def ours(limits: Limits) -> Compact:
    """Return our own."""
    settings = ContextSettings(budget=limits.budget, reserve=0, keep=1, pinned=limits.pinned)

    def compact(messages: list[Message]) -> Sequence[Message] | None:
        made = compacted(messages, settings, _one(limits), wire=limits.wire)
        return None if made is None else made.messages

    return compact


def newest_messages(limits: Limits) -> Compact:
    """Return the usual one-liner: system prompt, and as many messages from the end as fit."""

    def compact(messages: list[Message]) -> list[Message]:
        kept: list[Message] = []
        for message in reversed(messages[1:]):
            if limits.count([messages[0], message, *kept]) > limits.budget:
                break
            kept.insert(0, message)
        return [messages[0], *kept]

    return compact


def turnsafe_fit(limits: Limits) -> Compact:
    """Return turnsafe's `fit`, told to keep the first turn; it knows no pins."""

    def compact(messages: list[Message]) -> list[Message]:
        kept = [dict(message) for message in messages]
        return list(turnsafe.fit(kept, limits.budget, "openai", counter=_one(limits), keep_first_turn=True))

    return compact


def _one(limits: Limits) -> Callable[[Message], int]:
    return lambda message: limits.count([message])


COMPACTORS: Final[Mapping[str, tuple[MakeCompact, type[Exception]]]] = {
    "ours": (ours, ContextOverflow),
    "the newest messages that fit": (newest_messages, ContextOverflow),
    "turnsafe 0.1.0, `fit`": (turnsafe_fit, turnsafe.ContextBudgetError),
}


def compaction_table() -> str:
    """Return the table in Markdown: a column for everything that is wrong with any of them."""
    found = {
        name: compaction_findings(make, overflow=overflow) for name, (make, overflow) in COMPACTORS.items()
    }
    columns = [finding for finding in Finding if any(finding in wrong for wrong in found.values())]
    rows: list[Sequence[str]] = [
        ("compactor", *(finding.value for finding in columns)),
        ("---",) * (len(columns) + 1),
    ]
    for name, wrong in found.items():
        rows.append((name, *("yes" if finding in wrong else "-" for finding in columns)))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    print(compaction_table())
