"""The tables and sentences that the terminal and the Markdown report share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rich.text import Text

from statek_sim.reporting.model import AS_WRITTEN, Offender, Report, Row, Summary, Usage
from statek_sim.reporting.table import Code, Table
from statek_sim.reporting.text_format import NOTHING, count, direction, plural, ratio, seconds
from statek_sim.scenario.statements import Coverage
from statek_sim.suite.result import Outcome

ESTIMATE: Final = "estimate: bytes // 4, as the harness counts; measured: tokens, by a tokenizer"
"""What the two columns are."""

_NAMED: Final = 10
"""Statements, or scenarios, named before the rest is only counted."""


def verdict(overall: Summary) -> str:
    """Return the outcome of all scenarios: `178 passed, 2 failed`."""
    if not overall.total:
        return "no scenarios ran"
    return f"{count(overall.passed)} passed" + (f", {count(overall.failed)} failed" if overall.failed else "")


def runs(report: Report) -> str:
    """Return how many scenarios and profiles the runs are of: ` (2 scenarios x 3 profiles)`; empty for one profile."""
    number = len({(row.suite, row.id) for row in report.rows})
    if number == len(report.rows):
        return ""
    by = "x" if number * len(report.profiles) == len(report.rows) else "under"
    return f" ({plural(number, 'scenario')} {by} {plural(len(report.profiles), 'profile')})"


def settings(report: Report) -> str:
    """Return what the scenarios ran under."""
    noun = "profile" if len(report.profiles) == 1 else "profiles"
    preset = f"{'presets' if report.preset == AS_WRITTEN else 'preset'} {report.preset}"
    seed = f"seeds {AS_WRITTEN}" if report.seed is None else f"seed {report.seed}"
    return f"{noun} {', '.join(report.profiles) or 'none'}; {preset}; {seed}"


def under_a_preset(report: Report) -> str:
    """Say what failures under a preset mean that the scenarios were not written for; empty where there is none."""
    if report.preset == AS_WRITTEN or not report.overall.failed:
        return ""
    return (
        f"failures show what the preset {report.preset} would change: scenarios expect what happens under their own; "
        f"whether it is good enough says `statek-sim gate {report.preset}`"
    )


def unchecked(report: Report) -> str:
    """Name what expects nothing, and so passes whatever happens; empty when everything expects something."""
    if not (found := report.unchecked):
        return ""
    verbs = ("expects", "passes") if len(found) == 1 else ("expect", "pass")
    return (
        f"{plural(len(found), 'scenario')} {verbs[0]} nothing and {verbs[1]} whatever happens: {_listed(found)}; "
        "`statek-sim run PATH --accept` writes what happened"
    )


def explanation(offender: Offender) -> str:
    """Return both numbers and why they differ."""
    usage = offender.row.usage
    return (
        f"the harness thinks {plural(usage.approx_tokens, 'token')}, the model saw "
        f"{count(usage.measured_tokens)}, counted with {usage.tokenizer}: {offender.why}"
    )


def unmeasured(report: Report) -> str:
    """Say how many runs have nothing to compare; empty when all have."""
    number = sum(row.usage.ratio is None for row in report.rows)
    return f"{plural(number, 'run')} without LLM usage" if number else ""


def proxies(report: Report) -> str:
    """Warn of measurements with a tokenizer that is not the model's own; empty when there are none."""
    if "(proxy)" not in report.overall.usage.tokenizer:
        return ""
    return "proxy: measured with a stand-in, the model's own tokenizer is not known"


def statements(coverage: Coverage) -> list[str]:
    """Return how many normative statements are proven, and which are not."""
    proven = len(coverage.proven)
    lines = [f"{count(proven)} of {plural(proven + len(coverage.missing), 'statement')} proven"]
    if coverage.missing:
        lines.append(f"no scenario proves {_listed(coverage.missing)}")
    if coverage.unknown:
        pairs = tuple(f"{statement} (in {scenario})" for scenario, statement in coverage.unknown)
        lines.append(f"no such statement: {_listed(pairs)}")
    return lines


def _listed(names: tuple[str, ...]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest:,} more" if rest > 0 else "")


ROWS: Final = 12
"""Rows of the usage table, unless all are asked for."""

DIRECTION_STYLES: Final[Mapping[str, str]] = {"over": "yellow", "under": "magenta", "": ""}
"""Colours of a ratio: too much stops jobs early, too little lets them run on."""

_NAME: Final = 30
"""Columns that a scenario's name should have before others may take room."""

_FIGURES: Final = ("sent", "received", "estimate", "measured", "reported", "ratio", "tokenizer", "")
"""The heads of usage. The last column says that a tokenizer is a stand-in, where its label has no room."""

_OUTCOMES: Final = ("pass", "fail", "time")
_CHOICES: Final = (
    (*_OUTCOMES, "sent", "received", "estimate", "measured", "reported", "ratio", "tokenizer"),
    (*_OUTCOMES, "estimate", "measured", "reported", "ratio", "tokenizer"),
    (*_OUTCOMES, "estimate", "measured", "reported", "ratio", ""),
    (*_OUTCOMES, "estimate", "measured", "ratio", ""),
)
"""Columns from the widest table to the narrowest."""


def suite_table(report: Report, seconds_by_suite: Mapping[str, float]) -> Table:
    """Return one row per suite and one for all: outcomes, real time, usage."""
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
    return _table(("suite", "scenarios", *_OUTCOMES), rows)


def usage_table(rows: Sequence[Row]) -> Table:
    """Return one row per run, in the order given; those that failed are bold."""
    return _table(("scenario",), [[_name(row), *_figures(row.usage)] for row in rows])


def in_width(table: Table, width: int) -> list[Text]:
    """Return one of the tables in lines, with as many columns as there is room for."""
    return table.widest(_CHOICES, width=width, first=_NAME).lines(width=width)


def _table(head: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> Table:
    table = Table(head=(*head, *_FIGURES), rows=rows, left=("ratio", "tokenizer", ""))
    return table if any(str(row[-1]) for row in rows) else table.only(table.head[:-1])


def _name(row: Row) -> str | Text:
    return Text(row.name, "bold red") if row.outcome is Outcome.FAILED else Code(row.name)


def _figures(usage: Usage) -> Sequence[str | Text]:
    sizes = (
        usage.bytes_sent,
        usage.bytes_received,
        usage.approx_tokens,
        usage.measured_tokens,
        usage.reported_tokens,
    )
    return [
        *(count(size if usage.used else None) for size in sizes),
        styled_ratio(usage.ratio),
        usage.tokenizer if usage.used else NOTHING,
        "proxy" if "(proxy)" in usage.tokenizer else "",
    ]


def styled_ratio(value: float | None) -> Text:
    """Return estimate / measured, coloured by the direction of the error."""
    return Text(ratio(value), "" if value is None else DIRECTION_STYLES[direction(value)])
