"""What people read of a session in a store of files: `progress.txt` and the outputs of steps (002 section 4)."""

from __future__ import annotations

from statek_sim.agent.checkpoints.records import Entry


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
