"""`report.md`: the report for people, as GitHub-flavoured Markdown. Also made for CI step summaries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from statek_sim.reporting import report_text
from statek_sim.reporting.model import Failure, Report
from statek_sim.reporting.table import as_sentence, code
from statek_sim.reporting.text_format import plural

_FAILURES: Final = 40
"""Failures told in full. GitHub shows no step summary of more than 1 MiB."""

_FAILURE_LENGTH: Final = 16_000
"""Characters of a failure's text that are shown."""

_SUITES: Final = ("scenarios", "pass", "fail")


def render(report: Report) -> str:
    """Return the whole report. Equal reports give equal text."""
    return "\n\n".join(block for block in _blocks(report) if block) + "\n"


def _blocks(report: Report) -> Iterator[str]:
    """Yield the report's blocks, an empty one where there is nothing to say."""
    yield f"# STATEK scenarios: {report_text.verdict(report.overall)}"
    yield f"{as_sentence(report_text.settings(report))}  \nDigest `{report.digest}`"
    if report.rows:
        yield report_text.suite_table(report, {}).only(_SUITES).markdown()
    yield as_sentence(report_text.unchecked(report)) if report.unchecked else ""
    yield from _failures(report.failures)
    yield from _usage(report)


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
    if not report.overall.usage.used:
        return
    yield "## Usage"
    notes = (report_text.ESTIMATE, report_text.proxies(report))
    yield " ".join(as_sentence(note) for note in notes if note)
    yield report_text.suite_table(report, {}).only(report_text.USAGE).markdown()


def _fenced(text: str) -> str:
    """Return `text` as a block that shows it letter by letter, whatever it holds."""
    if len(text) > _FAILURE_LENGTH:
        text = f"{text[:_FAILURE_LENGTH]}\n... {plural(len(text) - _FAILURE_LENGTH, 'more character')}"
    # Control characters are invisible, and lone surrogates cannot be written.
    text = re.sub(r"[^\n\t\x20-\x7e\xa0-\ud7ff\ue000-\U0010ffff]", lambda odd: ascii(odd[0])[1:-1], text)
    longest = max((len(ticks) for ticks in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}"
