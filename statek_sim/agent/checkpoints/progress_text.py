"""`progress.txt`: how far a session is, for people (002 §4)."""

from __future__ import annotations

from statek_sim.agent.checkpoints.records import Entry


def progress_text(session: str, number: int, entry: Entry) -> str:
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
