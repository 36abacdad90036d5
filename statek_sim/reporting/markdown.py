"""`report.md`: the report for people, as GitHub-flavoured Markdown. Also made for CI step summaries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from statek_sim.reporting import report_text
from statek_sim.reporting.artifact import write_artifact
from statek_sim.reporting.model import Failure, Report, worst_rows
from statek_sim.reporting.table import as_sentence, code, escaped
from statek_sim.reporting.text_format import plural, ratio

_FAILURES: Final = 40
"""Failures told in full. GitHub shows no step summary of more than 1 MiB."""

_FAILURE_LENGTH: Final = 16_000
"""Characters of a failure's text that are shown."""

_SUITES: Final = ("scenarios", "pass", "fail")
_FIGURES: Final = ("estimate", "measured", "reported", "ratio", "tokenizer")


def render(report: Report) -> str:
    """Return the whole report. Equal reports give equal text."""
    return "\n\n".join(block for block in _blocks(report) if block) + "\n"


def write_markdown(report: Report, path: Path) -> None:
    """Write `report.md` to `path`, whole or not at all; `BadInput` when it cannot be written."""
    write_artifact(path, render(report))


def _blocks(report: Report) -> Iterator[str]:
    """Yield the report's blocks, an empty one where there is nothing to say."""
    yield f"# STATEK scenarios: {report_text.verdict(report.overall)}"
    yield f"{as_sentence(report_text.settings(report))}  \nDigest `{report.digest}`"
    if report.rows:
        yield report_text.suite_table(report, {}).only(_SUITES).markdown()
    yield as_sentence(report_text.unchecked(report)) if report.unchecked else ""
    yield from _failures(report.failures)
    yield from _usage(report)
    if report.statements is not None:
        yield "## Statements"
        yield "\n".join(f"- {as_sentence(line)}" for line in report_text.statements(report.statements))


def _failures(failures: Sequence[Failure]) -> Iterator[str]:
    if failures:
        yield "## Failures"
    for failure in failures[:_FAILURES]:
        yield f"### {code(failure.name)}"
        yield _fenced(failure.text)
    if len(failures) > _FAILURES:
        names = "\n".join(f"- {code(failure.name)}" for failure in failures[_FAILURES:])
        yield f"And {plural(len(failures) - _FAILURES, 'more failure')}:\n\n{names}"


def _usage(report: Report) -> Iterator[str]:
    worst = worst_rows(report.rows)
    if not worst:
        return
    yield "## Usage"
    notes = (report_text.ESTIMATE, report_text.unmeasured(report), report_text.proxies(report))
    yield " ".join(as_sentence(note) for note in notes if note)
    yield report_text.suite_table(report, {}).only(_FIGURES).markdown()
    yield from _offenders(report)
    yield "### Largest differences"
    if len(worst) > report_text.ROWS:
        yield (
            f"The worst {report_text.ROWS} of {plural(len(worst), 'scenario')}, each under its worst profile."
        )
    yield report_text.usage_table(worst[: report_text.ROWS]).only(_FIGURES).markdown()
    if len(report.rows) > min(len(worst), report_text.ROWS):
        yield f"<details><summary>All {plural(len(report.rows), 'run')}</summary>"
        yield report_text.usage_table(report.rows).only(_FIGURES).markdown()
        yield "</details>"


def _offenders(report: Report) -> Iterator[str]:
    offenders = (*report.over, *report.under)
    if offenders:
        yield "### Worst offenders"
        yield "\n".join(
            f"- **{ratio(offender.row.usage.ratio)}** {code(offender.row.name)}: "
            f"{escaped(report_text.explanation(offender))}"
            for offender in offenders
        )


def _fenced(text: str) -> str:
    """Return `text` as a block that shows it letter by letter, whatever it holds."""
    if len(text) > _FAILURE_LENGTH:
        text = f"{text[:_FAILURE_LENGTH]}\n... {plural(len(text) - _FAILURE_LENGTH, 'more character')}"
    # Control characters are invisible, and lone surrogates cannot be written.
    text = re.sub(r"[^\n\t\x20-\x7e\xa0-\ud7ff\ue000-\U0010ffff]", lambda odd: ascii(odd[0])[1:-1], text)
    longest = max((len(ticks) for ticks in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}"
