"""A run in a terminal: progress while scenarios run, then suites, failures, notes and the verdict.

If the output is not a terminal, it is plain text of at most the console's width (80 columns by default). Lines of
failures and of notes are not wrapped, so that they can be copied.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from statek_sim.reporting import report_text
from statek_sim.reporting.model import Failure, Report
from statek_sim.reporting.table import paragraph, shorten
from statek_sim.reporting.text_format import seconds
from statek_sim.suite.result import ScenarioResult

_REFRESHES: Final = 50
"""Maximum redraws of the progress in a run; each takes a millisecond."""

_PROGRESS_WIDTH: Final = 40
"""Columns of the bar and the counts."""

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters that move the cursor, change colours or the writing direction."""


class RunProgress:
    """Shows how many of `total` tasks are done, on terminals only. A context manager, which removes it."""

    def __init__(self, console: Console, total: int) -> None:
        self._every = max(total // _REFRESHES, 1)
        self._done = 0
        # No refresh thread: scenarios may replace the clocks that it would read.
        self._progress = Progress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            auto_refresh=False,
            transient=True,
            disable=not console.is_terminal or console.is_dumb_terminal or not total,
        )
        self._task = self._progress.add_task("", total=total)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def advance(self, counts: str, name: str) -> None:
        """Count one task; beside the bar are `counts` and as much of its `name` as fits."""
        self._done += 1
        room = max(self._progress.console.width - _PROGRESS_WIDTH - len(counts), 0)
        description = f"{counts}  {shorten(name, room)}".strip()
        self._progress.update(self._task, completed=self._done, description=description)
        if self._done % self._every == 0:
            self._progress.refresh()


def report_lines(
    report: Report, results: Iterable[ScenarioResult], *, width: int, quiet: bool = False
) -> Iterator[Text]:
    """Yield the report of finished scenarios, with failures and the verdict last; `quiet`: only these."""
    times: defaultdict[str, float] = defaultdict(float)
    for result in results:
        times[result.scenario.suite] += result.seconds
    if report.rows and not quiet:
        yield from report_text.suite_table(report, times).only(report_text.OUTCOMES).lines(width=width)
        yield Text()
    yield from _failures(report.failures)
    # Not wrapped: they contain commands and names to be copied.
    yield from (Text(note, "yellow") for note in report_text.notes(report))
    overall = report.overall
    style = "bold red" if overall.failed else "bold green" if overall.total else "bold yellow"
    took = f" in {seconds(sum(times.values()))}" if overall.total and not quiet else ""
    yield Text(report_text.verdict(overall), style).append(report_text.runs(report) + took, "")
    if not quiet:
        yield from paragraph(report_text.settings(report), width, "dim")
        yield Text(f"digest {report.digest}", "dim")


def _failures(failures: Sequence[Failure]) -> Iterator[Text]:
    for failure in failures:
        head, _, rest = printable(f"{failure.name}: {failure.text}").partition("\n")
        yield Text(head, "bold red")
        yield Text(f"{rest}\n" if rest else "")


def printable(text: str) -> str:
    """Return `text` with control characters escaped."""
    return _CONTROL.sub(lambda odd: ascii(odd[0])[1:-1], text)
