"""What a session consists of: checkpoints and receipts, as values, and the texts that people read of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from statek_sim.agent.effects import Receipt

SCHEMA: Final = 1
"""The version of what a checkpoint's state looks like; a newer one is refused."""

SessionStatus = Literal["running", "paused", "completed", "failed"]
"""What a session is, in the words of 002 section 4."""

STATUSES: Final[tuple[SessionStatus, ...]] = ("running", "paused", "completed", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is saved at one commit.

    `progress` is what people read: which steps are done and open, tokens, cost. `results` are outputs of steps, by
    name, in their order, for stores that write them for people; the state has them too, and they are not read back.
    `at` is in seconds of the session's own clock.
    """

    point: str
    status: SessionStatus
    at: float
    state: Mapping[str, Any]
    progress: Mapping[str, Any] = field(default_factory=dict)
    results: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One that was saved: `number` counts a session's from 1, `plan` is the hash of what the session is about."""

    session: str
    number: int
    plan: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class Kept:
    """A session as a store has it: its newest checkpoint, and the receipts that came after it."""

    checkpoint: Checkpoint
    receipts: tuple[Receipt, ...] = ()


def session_notes(session: str, number: int, entry: Entry) -> dict[str, str]:
    """Return the texts for people by their paths in the session's folder."""
    results = {
        f"results/step-{at:02}-output.md": f"# {name}\n\n{text}\n"
        for at, (name, text) in enumerate(entry.results, start=1)
    }
    return {**results, "progress.txt": _progress(session, number, entry)}


def _progress(session: str, number: int, entry: Entry) -> str:
    """Return the lines of the document's progress file, with the session's status; `Updated` is its own second."""
    progress = entry.progress
    lines = {
        "Session": session,
        "Status": entry.status,
        "Step": number,
        "Current": progress.get("current", ""),
        "Completed": ", ".join(progress.get("completed", ())),
        "Remaining": ", ".join(progress.get("remaining", ())),
        "Tokens used": progress.get("tokens", 0),
        "Cost": f"${float(progress.get('cost', 0)):.4f}",
        "Updated": f"{entry.at:g} s",
    }
    return "\n".join(f"{name}: {_one_line(value)}" for name, value in lines.items()) + "\n"


def _one_line(value: object) -> str:
    """Return a value that cannot pass for another line."""
    return " ".join(str(value).split())
