"""The two tables of the terminal report. They show as many columns as there is room for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from rich.text import Text

from statek_sim.reporting.model import Report, Row, Summary, Usage
from statek_sim.reporting.text_format import NOTHING, count, direction, fits, lay_out, ratio, seconds
from statek_sim.suite.result import Outcome

DIRECTION_STYLES: Final[Mapping[str, str]] = {"over": "yellow", "under": "magenta", "": ""}
"""Colours of a ratio: too much stops jobs early, too little lets them run on."""

_NAME: Final = 30
"""Columns that a scenario's name should have before others may take room."""


def suite_table(report: Report, seconds_by_suite: Mapping[str, float], *, width: int) -> list[Text]:
    """Return one line per suite and one for all: outcomes, real time, usage."""
    suites = (*report.suites, report.overall)
    times = {**seconds_by_suite, report.overall.name: sum(seconds_by_suite.values())}
    names = [_left("suite", "bold"), *(_left(suite.name) for suite in report.suites), _left("all", "bold")]
    outcomes = [_head("pass", "fail", "time"), *(_outcomes(suite, times) for suite in suites)]
    usages = [suite.usage for suite in suites]
    return _widest(names, outcomes, usages, width=width)


def usage_table(rows: Sequence[Row], *, width: int) -> list[Text]:
    """Return one line per row, in the order given."""
    names = [_left("scenario", "bold"), *(_left(row.name, _failed(row)) for row in rows)]
    return _widest(names, [[] for _ in names], [row.usage for row in rows], width=width)


class _Shown(NamedTuple):
    """Which optional columns a table has: bytes, the provider's report, the tokenizer's whole label."""

    sizes: bool
    reported: bool
    labels: bool


_CHOICES: Final = (
    _Shown(sizes=True, reported=True, labels=True),
    _Shown(sizes=False, reported=True, labels=True),
    _Shown(sizes=False, reported=True, labels=False),
    _Shown(sizes=False, reported=False, labels=False),
)
"""From the widest table to the narrowest."""


def _widest(
    names: Sequence[Text], middle: Sequence[Sequence[Text]], usages: Sequence[Usage], *, width: int
) -> list[Text]:
    """Return the table with the most columns that leaves names their room."""
    table: list[list[Text]] = []
    for shown in _CHOICES:
        columns = [_heads(usages, shown), *(_cells(usage, usages, shown) for usage in usages)]
        table = [[name, *mid, *cells] for name, mid, cells in zip(names, middle, columns, strict=True)]
        if fits(table, width=width, first=_NAME):
            break
    return lay_out(table, width=width)


def _heads(usages: Sequence[Usage], shown: _Shown) -> list[Text]:
    names = ["sent", "received"] if shown.sizes else []
    names += ["estimate", "measured", *(["reported"] if shown.reported else [])]
    heads = [*_head(*names), _left("ratio", "bold")]
    if shown.labels:
        return [*heads, _left("tokenizer", "bold")]
    return [*heads, Text()] if _has_proxy(usages) else heads


def _cells(usage: Usage, usages: Sequence[Usage], shown: _Shown) -> list[Text]:
    """Return one row. A stand-in tokenizer shows, whether or not there is room for its label."""
    figures: list[int | None] = [usage.bytes_sent, usage.bytes_received] if shown.sizes else []
    figures += [usage.approx_tokens, usage.measured_tokens]
    figures += [usage.reported_tokens] if shown.reported else []
    value = usage.ratio
    style = "" if value is None else DIRECTION_STYLES[direction(value)]
    cells = [*(Text(count(figure if usage.used else None)) for figure in figures), _left(ratio(value), style)]
    if shown.labels:
        return [*cells, _left(usage.tokenizer if usage.used else NOTHING)]
    return [*cells, _left("proxy" if _has_proxy([usage]) else "")] if _has_proxy(usages) else cells


def _has_proxy(usages: Sequence[Usage]) -> bool:
    return any("(proxy)" in usage.tokenizer for usage in usages)


def _outcomes(suite: Summary, times: Mapping[str, float]) -> list[Text]:
    return [
        Text(count(suite.passed or None), "green"),
        Text(count(suite.failed or None), "bold red" if suite.failed else ""),
        Text(seconds(times.get(suite.name, 0.0))),
    ]


def _head(*names: str) -> list[Text]:
    return [Text(name, "bold") for name in names]


def _left(text: str, style: str = "") -> Text:
    return Text(text, style, justify="left")


def _failed(row: Row) -> str:
    return "red" if row.outcome is Outcome.FAILED else ""
