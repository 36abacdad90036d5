"""`report.md`: the report for people, as GitHub-flavoured Markdown. Also made for CI step summaries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from statek_sim.reporting import wording
from statek_sim.reporting.artifact import write_artifact
from statek_sim.reporting.model import Failure, Report, Summary, Usage, worst_rows
from statek_sim.reporting.text_format import count, plural, ratio
from statek_sim.suite.result import Outcome

ROWS: Final = 12
"""Rows of the usage table before the rest is folded away."""

_FAILURES: Final = 40
"""Failures told in full. GitHub shows no step summary of more than 1 MiB."""

_FAILURE_LENGTH: Final = 16_000
"""Characters of a failure's text that are shown."""

_SPECIAL: Final = re.compile(r"[`*\[\]<>|~#]|(?<!\w)_|_(?!\w)|\\(?=[!-/:-@\[-`{-~])")
"""What Markdown would take for markup; inside a word an underscore is none, before a letter a backslash."""

_NUMBERS: Final = ("estimate", "measured", "reported", "estimate / measured")


def render(report: Report) -> str:
    """Return the whole report. Equal reports give equal text."""
    return "\n\n".join(block for block in _blocks(report) if block) + "\n"


def write_markdown(report: Report, path: Path) -> None:
    """Write `report.md` to `path`, whole or not at all; `BadInput` when it cannot be written."""
    write_artifact(path, render(report))


def _blocks(report: Report) -> Iterator[str]:
    """Yield the report's blocks, an empty one where there is nothing to say."""
    yield f"# STATEK scenarios: {wording.verdict(report.overall)}"
    yield f"{_sentence(wording.settings(report))}  \nDigest `{report.digest}`"
    yield _summary(report)
    yield _sentence(wording.unchecked(report)) if report.unchecked else ""
    yield from _failures(report.failures)
    yield from _usage(report)
    if report.statements is not None:
        yield "## Statements"
        yield "\n".join(f"- {_sentence(line)}" for line in wording.statements(report.statements))


def _summary(report: Report) -> str:
    if not report.rows:
        return ""
    rows = [_suite(suite) for suite in report.suites]
    return _table(("suite", "scenarios", "passed", "failed"), [*rows, _suite(report.overall, bold=True)])


def _suite(suite: Summary, *, bold: bool = False) -> list[str]:
    cells = [suite.name, count(suite.total), count(suite.passed), count(suite.failed)]
    return [f"**{cell}**" for cell in cells] if bold else cells


def _failures(failures: Sequence[Failure]) -> Iterator[str]:
    if failures:
        yield "## Failures"
    for failure in failures[:_FAILURES]:
        yield f"### {_code(failure.name)}"
        yield _fenced(failure.text)
    if len(failures) > _FAILURES:
        names = "\n".join(f"- {_code(failure.name)}" for failure in failures[_FAILURES:])
        yield f"And {plural(len(failures) - _FAILURES, 'more failure')}:\n\n{names}"


def _usage(report: Report) -> Iterator[str]:
    worst = worst_rows(report.rows)
    if not worst:
        return
    yield "## Usage"
    yield " ".join(
        _sentence(line)
        for line in (wording.ESTIMATE, wording.unmeasured(report), wording.proxies(report))
        if line
    )
    yield _usage_table("suite", [(suite.name, suite.usage) for suite in (*report.suites, report.overall)])
    yield from _offenders(report)
    yield "### Largest differences"
    if len(worst) > ROWS:
        yield f"The worst {ROWS} of {plural(len(worst), 'scenario')}, each under its worst profile."
    yield _usage_table("scenario", [(_code(row.name), row.usage) for row in worst[:ROWS]])
    if len(report.rows) > min(len(worst), ROWS):
        every = [(_outcome(row.outcome) + _code(row.name), row.usage) for row in report.rows]
        yield f"<details><summary>All {plural(len(every), 'run')}</summary>"
        yield _usage_table("scenario", every)
        yield "</details>"


def _offenders(report: Report) -> Iterator[str]:
    offenders = (*report.over, *report.under)
    if offenders:
        yield "### Worst offenders"
        yield "\n".join(
            f"- **{ratio(offender.row.usage.ratio)}** {_code(offender.row.name)}: "
            f"{_escaped(wording.explanation(offender))}"
            for offender in offenders
        )


def _usage_table(first: str, rows: Iterable[tuple[str, Usage]]) -> str:
    return _table(
        (first, *_NUMBERS, "tokenizer"),
        [
            [
                name,
                count(usage.approx_tokens),
                count(usage.measured_tokens),
                count(usage.reported_tokens),
                ratio(usage.ratio),
                _escaped(usage.tokenizer),
            ]
            for name, usage in rows
        ],
        left=("tokenizer",),
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: Sequence[str] = ()) -> str:
    """Return a table; the first column and those in `left` are text, the others are numbers."""
    rule = [":---" if at == 0 or name in left else "---:" for at, name in enumerate(head)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows))


def _outcome(outcome: Outcome) -> str:
    return "" if outcome is Outcome.PASSED else "**failed** "


def _fenced(text: str) -> str:
    """Return `text` as a block that shows it letter by letter, whatever it holds."""
    if len(text) > _FAILURE_LENGTH:
        text = f"{text[:_FAILURE_LENGTH]}\n... {plural(len(text) - _FAILURE_LENGTH, 'more character')}"
    # Control characters are invisible, and lone surrogates cannot be written.
    text = re.sub(r"[^\n\t\x20-\x7e\xa0-\ud7ff\ue000-\U0010ffff]", lambda odd: ascii(odd[0])[1:-1], text)
    longest = max((len(ticks) for ticks in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}"


def _code(name: str) -> str:
    """Return a scenario's name as code; it holds no backtick."""
    return f"`{name}`"


def _escaped(text: str) -> str:
    """Return `text` so that Markdown shows it as it is, in a table or a sentence."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def _sentence(text: str) -> str:
    """Return a sentence from words that start small and end open."""
    return f"{_escaped(text[:1].upper() + text[1:])}."
