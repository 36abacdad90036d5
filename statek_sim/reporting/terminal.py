"""The report in a terminal: progress while scenarios run, then suites, usage, failures and the verdict.

Where output is not a terminal it is plain ASCII text of at most the console's width (80 columns by default),
but for failures, whose lines are whole, so that they can be copied.
"""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.text import Text

from statek_sim.reporting import report_text
from statek_sim.reporting.model import Failure, Offender, Report, worst_rows
from statek_sim.reporting.table import shorten
from statek_sim.reporting.text_format import seconds
from statek_sim.suite.result import Outcome, ScenarioResult

_REFRESHES: Final = 50
"""How often progress is drawn in a whole run; drawing costs a millisecond."""

_PROGRESS_WIDTH: Final = 40
"""Columns that the bar and the counts take."""

_NARROWEST: Final = 40
"""Columns below which sentences are not wrapped further."""

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters that move the cursor, change colours or turn the writing direction."""


class TerminalReporter:
    """Tells a run to a person: `start`, then `result` for each scenario, then `finish`; or `close` on the way.

    Also a context manager, which closes. `verbose` shows every run in the usage table.
    """

    def __init__(self, console: Console, verbose: bool) -> None:
        self._console = console
        self._verbose = verbose
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._failed = 0
        self._done = 0
        self._every = 1
        self._progress: Progress | None = None
        self._task = TaskID(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self, total: int) -> None:
        """Get ready for `total` results; on a terminal, show progress until `finish` or `close`."""
        self._every = max(total // _REFRESHES, 1)
        if self._console.is_terminal and not self._console.is_dumb_terminal and total:
            # No refreshing thread: scenarios may replace the clocks it would read.
            self._progress = Progress(
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.description}", markup=False),
                console=self._console,
                auto_refresh=False,
                transient=True,
            )
            self._progress.start()
            self._task = self._progress.add_task("", total=total)

    def result(self, result: ScenarioResult) -> None:
        """Count one finished scenario."""
        self._seconds[result.scenario.suite] += result.seconds
        self._done += 1
        self._failed += result.outcome is Outcome.FAILED
        if self._progress is not None:
            self._show(self._progress, result.id)

    def finish(self, report: Report) -> None:
        """Print the report."""
        self.close()
        if report.rows:
            self._suites(report)
            self._usage(report)
            self._offenders(report)
            self._failures(report.failures)
        self._verdict(report)

    def close(self) -> None:
        """Take the progress away, if it is there."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def _show(self, progress: Progress, name: str) -> None:
        """Bring the progress up to date; draw it now and then."""
        failed = f"{self._failed} failed  " if self._failed else ""
        room = max(self._console.width - _PROGRESS_WIDTH - len(failed), 0)
        progress.update(self._task, completed=self._done, description=failed + shorten(name, room))
        if self._done % self._every == 0:
            progress.refresh()

    def _suites(self, report: Report) -> None:
        table = report_text.suite_table(report, self._seconds)
        self._print(*report_text.in_width(table, self._console.width), Text())

    def _usage(self, report: Report) -> None:
        worst = worst_rows(report.rows)
        if not worst:
            return
        rows = report.rows if self._verbose else worst[: report_text.ROWS]
        title = "Usage of every run" if self._verbose else "Largest differences"
        self._title(title, report_text.ESTIMATE)
        self._print(*report_text.in_width(report_text.usage_table(rows), self._console.width))
        notes = [report_text.unmeasured(report), report_text.proxies(report)]
        if len(worst) > len(rows):
            notes.insert(
                0, f"the worst {len(rows)} of {len(worst):,} scenarios, each under its worst profile"
            )
        self._paragraph("; ".join(note for note in notes if note), style="dim")
        self._print(Text())

    def _offenders(self, report: Report) -> None:
        offenders = (*report.over, *report.under)
        if not offenders:
            return
        self._title("Why", "+ and -: tokens that a part adds to the estimate beyond its measure")
        for offender in offenders:
            self._offender(offender)
        self._print(Text())

    def _offender(self, offender: Offender) -> None:
        head = report_text.styled_ratio(offender.row.usage.ratio)
        room = self._console.width - len(head) - 2
        self._print(Text("  ").join((head, Text(shorten(offender.row.name, room), "bold"))))
        self._paragraph(report_text.explanation(offender), indent="  ")

    def _failures(self, failures: Sequence[Failure]) -> None:
        if failures:
            self._title("Failures", "")
        for failure in failures:
            head, _, rest = self._printable(f"{failure.name}: {failure.text}").partition("\n")
            self._print(Text(head, "bold red"), *([Text(rest)] if rest else []), Text())

    def _verdict(self, report: Report) -> None:
        if report.statements is not None:
            for line in report_text.statements(report.statements):
                self._paragraph(line)
        overall = report.overall
        style = "bold red" if overall.failed else "bold green" if overall.total else "bold yellow"
        took = f" in {seconds(sum(self._seconds.values()))}" if overall.total else ""
        self._paragraph(report_text.unchecked(report), style="yellow")
        self._paragraph(report_text.under_a_preset(report))
        self._print(Text(report_text.verdict(overall), style).append(report_text.runs(report) + took, ""))
        self._paragraph(report_text.settings(report), style="dim")
        self._print(Text(f"digest {report.digest}", "dim"))

    def _title(self, title: str, subtitle: str) -> None:
        self._print(Text(title, "bold"))
        self._paragraph(subtitle, style="dim")

    def _paragraph(self, text: str, *, indent: str = "", style: str = "") -> None:
        width = max(self._console.width, _NARROWEST)
        lines = textwrap.wrap(
            self._printable(text),
            width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
            break_long_words=False,
        )
        self._print(*(Text(line, style) for line in lines))

    def _print(self, *lines: Text) -> None:
        """Print lines as they are: rich neither wraps nor colours them further."""
        for line in lines:
            self._console.print(line, soft_wrap=True, highlight=False)

    def _printable(self, text: str) -> str:
        """Return `text` without characters that the terminal would obey or cannot show."""
        harmless = _CONTROL.sub(lambda odd: ascii(odd[0])[1:-1], text)
        encoding = self._console.encoding
        return harmless.encode(encoding, "backslashreplace").decode(encoding)
