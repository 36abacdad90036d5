"""A search for what nobody thought of: how far it is, what it found, and both as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from statek_sim.fuzz.search import Report
from statek_sim.reporting.numbers import plural

SCHEMA: Final = "statek-sim/fuzz-report@1"


class FuzzProgress:
    """Shows runs per second, new traces and finds, and what is left; on terminals only.

    The end is after `seconds` or after `examples`, whichever is said.
    """

    def __init__(self, seconds: float | None, examples: int | None, console: Console | None = None) -> None:
        self._seconds = seconds
        self._progress: Progress | None = None
        self._task = TaskID(0)
        console = console or Console(stderr=True)
        if console.is_terminal and not console.is_dumb_terminal:
            columns = (
                BarColumn(bar_width=24),
                TimeRemainingColumn(),
                TextColumn("{task.description}", markup=False),
            )
            self._progress = Progress(*columns, console=console, transient=True)
            self._progress.start()
            self._task = self._progress.add_task("", total=examples if seconds is None else seconds)

    def update(self, report: Report, passed: float) -> None:
        """Show how far it is after so many seconds."""
        if self._progress is not None:
            done = report.played if self._seconds is None else passed
            self._progress.update(self._task, completed=done, description=_words(report, passed))

    def close(self) -> None:
        """Take it away."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def _words(report: Report, passed: float) -> str:
    rate = report.runs / passed if passed > 0 else 0.0
    return (
        f"{plural(report.played, 'example')}, {plural(report.runs, 'run')} ({rate:.0f} per second), "
        f"{len(report.corpus.shapes):,} shapes of traces, {plural(len(report.corpus.kept), 'example')} kept, "
        f"{plural(len(report.finds), 'find')}"
    )


def fuzz_lines(report: Report, passed: float) -> Iterator[str]:
    """Yield each find with the command that shows it again, what ended workers, and the verdict."""
    for find in report.finds:
        yield f"FOUND {find.invariant}: {find.message}"
        yield from (f"  {deviation}" for deviation in find.deviations)
        yield f"  {find.command}"
    for death in report.killed:
        yield f"FOUND {death}"
    if report.stopped:
        yield "stopped: what follows is what was covered so far"
    yield _words(report, passed)


def fuzz_json_text(report: Report, passed: float) -> str:
    """Return the result as JSON, schema `statek-sim/fuzz-report@1`."""
    corpus = report.corpus
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "seed": corpus.seed,
        "examples": report.played,
        "runs": report.runs,
        "seconds": round(passed, 3),
        "shapes": len(corpus.shapes),
        "kept": len(corpus.kept),
        "rounds": corpus.rounds,
        "finds": [
            {
                "invariant": find.invariant,
                "message": find.message,
                "deviations": [
                    deviation.model_dump(mode="json", exclude_unset=True) for deviation in find.deviations
                ],
                "file": find.file,
                "command": find.command,
            }
            for find in report.finds
        ],
        "killed": report.killed,
        "stopped": report.stopped,
    }
    return json.dumps(document, indent=2) + "\n"
