"""Renders a run report for a terminal and as `report.md`, for CI summaries.

If the output is not a terminal, it is plain text no wider than the console (80 columns by default). Failure and note
lines are not wrapped, so that they can be copied.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from statek_sim.backends.record import UsageRecord
from statek_sim.reporting.model import AS_WRITTEN, Failure, Report, Summary, is_used, usage_ratio
from statek_sim.reporting.table import Table, as_sentence, code, paragraph, shorten
from statek_sim.reporting.text_format import NOTHING, count, direction, plural, ratio, seconds
from statek_sim.suite.result import ScenarioResult

ESTIMATE: Final = "estimate: bytes // 4, as the harness counts; measured: tokens counted by a tokenizer"
"""A description of the `estimate` and `measured` columns."""

_NAMED: Final = 10
"""The maximum number of scenarios listed in a note; the rest are only counted."""


def verdict(overall: Summary) -> str:
    """Return the overall outcome, such as `178 passed, 2 failed`."""
    if not overall.total:
        return "no scenarios ran"
    return f"{count(overall.passed)} passed" + (f", {count(overall.failed)} failed" if overall.failed else "")


def runs(report: Report) -> str:
    """Return the scenario and profile counts, such as ` (2 scenarios x 3 profiles)`; empty for one profile."""
    number = len({(row.suite, row.id) for row in report.rows})
    if number == len(report.rows):
        return ""
    by = "x" if number * len(report.profiles) == len(report.rows) else "under"
    return f" ({plural(number, 'scenario')} {by} {plural(len(report.profiles), 'profile')})"


def settings(report: Report) -> str:
    """Return the scenarios' profiles, presets and seeds in one line."""
    noun = "profile" if len(report.profiles) == 1 else "profiles"
    preset = f"{'presets' if report.preset == AS_WRITTEN else 'preset'} {report.preset}"
    seed = f"seeds {AS_WRITTEN}" if report.seed is None else f"seed {report.seed}"
    return f"{noun} {', '.join(report.profiles) or 'none'}; {preset}; {seed}"


def notes(report: Report) -> list[str]:
    """Return notes on the verdict, one per line."""
    return [note for note in (unchecked(report), under_a_preset(report)) if note]


def under_a_preset(report: Report) -> str:
    """Return a note about failures under a preset that replaced the scenarios' own; empty without failures."""
    if report.preset == AS_WRITTEN or not report.overall.failed:
        return ""
    return (
        f"failures show what preset {report.preset} changes, because scenarios expect results under their own preset; "
        f"to check the preset, use `statek-sim gate {report.preset}`"
    )


def unchecked(report: Report) -> str:
    """Return a note about scenarios without expectations, which always pass; empty if there are none."""
    if not (found := report.unchecked):
        return ""
    verbs = ("has", "passes") if len(found) == 1 else ("have", "pass")
    return (
        f"{plural(len(found), 'scenario')} {verbs[0]} no expectations and always {verbs[1]}: {_listed(found)}; "
        "to add expectations, use `statek-sim run PATH --accept`"
    )


def proxies(report: Report) -> str:
    """Return a note about measurements with a tokenizer other than the model's; empty if there are none."""
    if "(proxy)" not in report.overall.usage.tokenizer:
        return ""
    return "proxy: measured with another tokenizer, because the model's own is unknown"


def _listed(names: tuple[str, ...]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest:,} more" if rest > 0 else "")


ROWS: Final = 12
"""The maximum number of rows in a long table, unless all rows are requested."""

DIRECTION_STYLES: Final[Mapping[str, str]] = {"over": "yellow", "under": "magenta", "": ""}
"""Colours for the ratio of estimated to measured tokens, by direction of error."""

OUTCOMES: Final = ("pass", "fail", "time")
"""Headers of the outcome and real-time columns."""

USAGE: Final = ("estimate", "measured", "reported", "ratio", "tokenizer")
"""Headers of the usage columns."""


def suite_table(report: Report, seconds_by_suite: Mapping[str, float]) -> Table:
    """Return a table with a row for each suite and a total: outcomes, real time and usage."""
    times = {**seconds_by_suite, report.overall.name: sum(seconds_by_suite.values())}
    rows: list[Sequence[str | Text]] = [
        [
            Text(suite.name, "bold") if suite is report.overall else suite.name,
            count(suite.total),
            Text(count(suite.passed or None), "green"),
            Text(count(suite.failed or None), "bold red" if suite.failed else ""),
            seconds(times.get(suite.name, 0.0)),
            *_figures(suite.usage),
        ]
        for suite in (*report.suites, report.overall)
    ]
    head = ("suite", "scenarios", *OUTCOMES, *USAGE)
    return Table(head=head, rows=rows, left=("ratio", "tokenizer"))


def _figures(usage: UsageRecord) -> Sequence[str | Text]:
    sizes = (usage.approx_tokens, usage.measured_tokens, usage.reported_tokens)
    return [
        *(count(size if is_used(usage) else None) for size in sizes),
        styled_ratio(usage_ratio(usage)),
        usage.tokenizer if is_used(usage) else NOTHING,
    ]


def styled_ratio(value: float | None) -> Text:
    """Return the ratio of estimated to measured tokens, coloured by direction of error."""
    return Text(ratio(value), "" if value is None else DIRECTION_STYLES[direction(value)])


_FAILURES: Final = 40
"""The maximum number of failures shown in full, because GitHub does not show step summaries larger than 1 MiB."""

_FAILURE_LENGTH: Final = 16_000
"""The maximum length of a failure's text."""

_SUITES: Final = ("scenarios", "pass", "fail")


def markdown_report(report: Report) -> str:
    """Return the report as Markdown; equal reports give equal text."""
    return "\n\n".join(block for block in _blocks(report) if block) + "\n"


def _blocks(report: Report) -> Iterator[str]:
    """Yield the report's blocks, some of which are empty."""
    yield f"# STATEK scenarios: {verdict(report.overall)}"
    yield f"{as_sentence(settings(report))}  \nDigest `{report.digest}`"
    if report.rows:
        yield suite_table(report, {}).only(_SUITES).markdown()
    yield as_sentence(unchecked(report)) if report.unchecked else ""
    yield from _failure_blocks(report.failures)
    yield from _usage(report)


def _failure_blocks(failures: Sequence[Failure]) -> Iterator[str]:
    if failures:
        yield "## Failures"
    for failure in failures[:_FAILURES]:
        yield f"### {code(failure.name)}"
        yield _fenced(failure.text)
    if len(failures) > _FAILURES:
        names = "\n".join(f"- {code(failure.name)}" for failure in failures[_FAILURES:])
        yield f"And {plural(len(failures) - _FAILURES, 'more failure')}:\n\n{names}"


def _usage(report: Report) -> Iterator[str]:
    if not is_used(report.overall.usage):
        return
    yield "## Usage"
    notes = (ESTIMATE, proxies(report))
    yield " ".join(as_sentence(note) for note in notes if note)
    yield suite_table(report, {}).only(USAGE).markdown()


def _fenced(text: str) -> str:
    """Return `text` as a code block that shows it verbatim."""
    if len(text) > _FAILURE_LENGTH:
        text = f"{text[:_FAILURE_LENGTH]}\n... {plural(len(text) - _FAILURE_LENGTH, 'more character')}"
    # Control characters are invisible, and lone surrogates cannot be written.
    text = re.sub(r"[^\n\t\x20-\x7e\xa0-\ud7ff\ue000-\U0010ffff]", lambda odd: ascii(odd[0])[1:-1], text)
    longest = max((len(ticks) for ticks in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}"


_REFRESHES: Final = 50
"""The maximum number of progress redraws in a run; each takes a millisecond."""

_PROGRESS_WIDTH: Final = 40
"""The width of the bar and the counts, in columns."""

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters that move the cursor or change colours or the writing direction."""


class RunProgress:
    """Shows how many of `total` tasks are done, on terminals only. Use in a `with` block; it is removed at the end."""

    def __init__(self, console: Console, total: int) -> None:
        self._every = max(total // _REFRESHES, 1)
        self._done = 0
        # No refresh thread, because scenarios may replace the clocks that it would read.
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
        """Count one finished task; show `counts` and as much of the task's `name` as fits next to the bar."""
        self._done += 1
        room = max(self._progress.console.width - _PROGRESS_WIDTH - len(counts), 0)
        description = f"{counts}  {shorten(name, room)}".strip()
        self._progress.update(self._task, completed=self._done, description=description)
        if self._done % self._every == 0:
            self._progress.refresh()


def report_lines(
    report: Report, results: Iterable[ScenarioResult], *, width: int, quiet: bool = False
) -> Iterator[Text]:
    """Yield the report's terminal lines, with failures and the verdict at the end; `quiet` yields only these."""
    times: defaultdict[str, float] = defaultdict(float)
    for result in results:
        times[result.scenario.suite] += result.seconds
    if report.rows and not quiet:
        yield from suite_table(report, times).only(OUTCOMES).lines(width=width)
        yield Text()
    yield from _failures(report.failures)
    # Not wrapped: they contain commands and names to be copied.
    yield from (Text(note, "yellow") for note in notes(report))
    overall = report.overall
    style = "bold red" if overall.failed else "bold green" if overall.total else "bold yellow"
    took = f" in {seconds(sum(times.values()))}" if overall.total and not quiet else ""
    yield Text(verdict(overall), style).append(runs(report) + took, "")
    if not quiet:
        yield from paragraph(settings(report), width, "dim")
        yield Text(f"digest {report.digest}", "dim")


def _failures(failures: Sequence[Failure]) -> Iterator[Text]:
    for failure in failures:
        head, _, rest = printable(f"{failure.name}: {failure.text}").partition("\n")
        yield Text(head, "bold red")
        yield Text(f"{rest}\n" if rest else "")


def printable(text: str) -> str:
    """Return `text` with control characters escaped."""
    return _CONTROL.sub(lambda odd: ascii(odd[0])[1:-1], text)
