"""The usage analysis as text: tables that fit a terminal, and GitHub-flavoured Markdown, also for CI step summaries."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from rich.text import Text

from statek_sim.reporting.tables import DIRECTION_STYLES
from statek_sim.reporting.text_format import (
    NOTHING,
    count,
    direction,
    fits,
    lay_out,
    plural,
    ratio,
    shorten,
    signed,
)
from statek_sim.usage.analysis import Group, ScenarioUse, UsageAnalysis, Use
from statek_sim.usage.waterfall import MEANINGS, STEPS, Waterfall

_NAME: Final = 24
"""Columns that a name should have before further columns may take room."""

ROWS: Final = 12
"""Scenarios listed unless all are asked for."""


def reported(use: Use) -> str:
    """Return what the provider reported; a star when it did not for every call."""
    if use.reported_tokens is None:
        return NOTHING
    return count(use.reported_tokens) + ("" if use.reporting == use.calls else "*")


class _Column(NamedTuple):
    """One column: its head, its cell of a use, and whether numbers stand right."""

    head: str
    cell: Callable[[Use], str]
    left: bool = False


_COLUMNS: Final = (
    _Column("calls", lambda use: count(use.calls)),
    _Column("sent", lambda use: count(use.bytes_sent)),
    _Column("received", lambda use: count(use.bytes_received)),
    _Column("estimate", lambda use: count(use.approx_tokens)),
    _Column("chars//4", lambda use: count(use.character_tokens)),
    _Column("prompt", lambda use: count(use.measured_prompt)),
    _Column("completion", lambda use: count(use.measured_completion)),
    _Column("measured", lambda use: count(use.measured_tokens)),
    _Column("ratio", lambda use: ratio(use.ratio), left=True),
    _Column("reported", reported),
    _Column("cost", lambda use: money(use.cost.statek)),
    _Column("tokenizer", lambda use: use.tokenizer, left=True),
)

_CHOICES: Final = (
    tuple(column.head for column in _COLUMNS),
    ("calls", "sent", "received", "estimate", "chars//4", "measured", "ratio", "reported", "cost"),
    ("calls", "estimate", "chars//4", "measured", "ratio", "reported", "cost"),
    ("estimate", "chars//4", "measured", "ratio", "reported"),
    ("estimate", "measured", "ratio"),
)
"""Columns from the widest table to the narrowest."""


def usage_lines(analysis: UsageAnalysis, *, width: int, every: bool = False) -> Iterator[Text]:
    """Yield the whole report; `every` lists all scenarios instead of the worst."""
    if not analysis.scenarios:
        yield Text("no scenario had an answered LLM call")
        return
    yield from _titled("Usage", ESTIMATE, width)
    yield from use_table("suite", _groups(analysis), width=width)
    yield Text()
    yield from _titled("Where it comes from", "tokens, all scenarios together", width)
    yield from waterfall_lines(analysis.overall.use, width=width)
    yield Text()
    worst = sorted(analysis.scenarios, key=_badness)
    rows = analysis.scenarios if every else worst[:ROWS]
    yield from _titled("Every scenario" if every else "Largest differences", "", width)
    yield from use_table("scenario", [(row.name, row.use) for row in rows], width=width)
    yield Text()
    yield from step_table("scenario", [(row.name, row.use.waterfall) for row in rows], width=width)
    yield from paragraph("; ".join(_notes(analysis, len(rows))), width, "dim")
    problems = list(cost_lines(analysis))
    if problems:
        yield Text()
        yield from _titled("Costs to look at", "", width)
        for line in problems:
            yield from paragraph(line, width)


def turn_lines(scenario: ScenarioUse, *, width: int) -> Iterator[Text]:
    """Yield a scenario turn by turn, job by job."""
    for job in scenario.jobs:
        end = f", {job.stop}" if job.stop else ""
        yield from _titled(f"{scenario.name} {job.name}", f"agent {job.agent}{end}; one line per turn", width)
        rows = [(f"turn {turn.turn}", turn.use) for turn in job.turns]
        yield from use_table("", [*rows, ("all turns", job.use)], width=width)
        yield Text()
        yield from waterfall_lines(job.use, width=width)
        yield Text()


def use_table(first: str, rows: Sequence[tuple[str, Use]], *, width: int) -> list[Text]:
    """Return one line per row with as many columns as there is room for; columns without any number are left out."""
    table: list[list[Text]] = []
    for heads in _CHOICES:
        columns = [column for column in _COLUMNS if column.head in heads and _says(column, rows)]
        table = [[_left(first, "bold"), *(_head(column) for column in columns)]]
        table += [[_left(name), *(_cell(column, use) for column in columns)] for name, use in rows]
        if fits(table, width=width, first=_NAME):
            break
    return lay_out(table, width=width)


def step_table(first: str, rows: Sequence[tuple[str, Waterfall]], *, width: int) -> list[Text]:
    """Return the steps of each row side by side, or nothing when there is no room for them."""
    heads = ["once", "history", "= estimate", *STEPS[1:], "= measured"]
    table = [[_left(first, "bold"), *(Text(head, "bold") for head in heads)]]
    for name, steps in rows:
        figures = [count(steps.once), signed(steps.history), count(steps.estimate)]
        figures += [signed(getattr(steps, step)) for step in STEPS[1:]]
        table.append([_left(name), *map(Text, [*figures, count(steps.measured)])])
    if not fits(table, width=width, first=_NAME):
        return []
    return [*lay_out(table, width=width), Text()]


def waterfall_lines(use: Use, *, width: int) -> Iterator[Text]:
    """Yield the waterfall downwards: a number, a name and what it is, per line."""
    steps = use.waterfall
    rows = [(count(steps.once), "once", ONCE)]
    rows.append((signed(steps.history), "history", MEANINGS["history"]))
    rows.append((count(steps.estimate), "= estimate", "what the harness holds against its limit"))
    rows += [(signed(getattr(steps, step)), step, MEANINGS[step]) for step in STEPS[1:]]
    rows.append((count(steps.measured), "= measured", f"what {use.tokenizer} counts"))
    room = max(len(number) for number, _, _ in rows)
    label = max(len(name) for _, name, _ in rows)
    for number, name, meaning in rows:
        style = "bold" if name.startswith("=") else ""
        indent = " " * (room + label + 4)
        wrapped = textwrap.wrap(meaning, max(width - len(indent), 20), break_long_words=False)
        yield Text(f"{number:>{room}}  {name:<{label}}  {wrapped[0]}", style)
        yield from (Text(indent + line, style) for line in wrapped[1:])


def cost_lines(analysis: UsageAnalysis) -> Iterator[str]:
    """Yield what is wrong with costs and price files, a sentence each."""
    for scenario in analysis.scenarios:
        for problem in scenario.use.cost.problems:
            yield f"{scenario.name}: {problem}"
    yield from analysis.price_problems


def paragraph(text: str, width: int, style: str = "") -> Iterator[Text]:
    """Yield a text in lines of at most `width` columns."""
    for line in textwrap.wrap(text, max(width, 40), break_on_hyphens=False, break_long_words=False):
        yield Text(line, style)


def _groups(analysis: UsageAnalysis) -> list[tuple[str, Use]]:
    groups: Iterable[Group] = (*analysis.suites, analysis.overall)
    return [(group.name, group.use) for group in groups]


def _notes(analysis: UsageAnalysis, shown: int) -> Iterator[str]:
    if shown < len(analysis.scenarios):
        yield f"the worst {shown} of {plural(len(analysis.scenarios), 'scenario')}"
    if analysis.silent:
        yield f"{plural(len(analysis.silent), 'scenario')} without an answered call"
    yield CHARACTERS
    use = analysis.overall.use
    if use.reporting and use.reporting < use.calls:
        yield NO_REPORT.format(missing=plural(use.calls - use.reporting, "call"))
    if "(proxy)" in use.tokenizer:
        yield PROXY


def _says(column: _Column, rows: Sequence[tuple[str, Use]]) -> bool:
    return any(column.cell(use) != NOTHING for _, use in rows)


def _cell(column: _Column, use: Use) -> Text:
    text = column.cell(use)
    if column.head == "ratio" and use.ratio is not None:
        return _left(text, DIRECTION_STYLES[direction(use.ratio)])
    return _left(text) if column.left else Text(text)


def _head(column: _Column) -> Text:
    return _left(column.head, "bold") if column.left else Text(column.head, "bold")


def _titled(title: str, subtitle: str, width: int) -> Iterator[Text]:
    yield Text(shorten(title, width), "bold")
    if subtitle:
        yield from paragraph(subtitle, width, "dim")


def _left(text: str, style: str = "") -> Text:
    return Text(text, style, justify="left")


def _badness(row: ScenarioUse) -> tuple[int, str]:
    """Order by the tokens that the estimate is off, the worst first."""
    return -abs(row.use.approx_tokens - row.use.measured_tokens), row.name


ESTIMATE: Final = (
    "estimate: (bytes sent + bytes received) // 4, as the harness counts; measured: by a tokenizer"
)
CHARACTERS: Final = "chars//4: the rule of thumb, over all texts, tool definitions and replies"
ONCE: Final = "without history: each message only the first time, bytes // 4"
NO_REPORT: Final = "*: the provider said nothing about {missing}"
PROXY: Final = "proxy: measured with a stand-in, the model's own tokenizer is not known"

_SMALLEST: Final = Decimal("0.000001")


def money(amount: Decimal | None) -> str:
    """Return an amount without a currency, which price files do not say: `0.0123`, `-0.002631`, `12.50`."""
    if amount is None:
        return NOTHING
    if amount == 0 or abs(amount) >= 10:
        return f"{amount:,.2f}"
    if abs(amount) < _SMALLEST:
        return f"{amount:.1e}"
    return f"{amount:,.6f}".rstrip("0")


_SPECIAL: Final = re.compile(r"[`*\[\]<>|~#\\]|(?<!\w)_|_(?!\w)")


def usage_markdown(analysis: UsageAnalysis) -> str:
    """Return the whole report. Equal analyses give equal text."""
    return "\n\n".join(_blocks(analysis)) + "\n"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first column is text and whose others are numbers."""
    rule = [":---", *("---:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows))


def escaped(text: str) -> str:
    """Return `text` so that Markdown shows it as it is."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def _blocks(analysis: UsageAnalysis) -> Iterator[str]:
    yield "# Usage"
    if not analysis.scenarios:
        yield "No scenario had an answered LLM call."
        return
    yield f"{ESTIMATE[:1].upper()}{ESTIMATE[1:]}. {CHARACTERS}."
    yield _uses("suite", [(group.name, group.use) for group in (*analysis.suites, analysis.overall)])
    yield "## Where it comes from"
    yield _waterfall(analysis.overall.use)
    yield "## Scenarios"
    yield _uses("scenario", [(f"`{scenario.name}`", scenario.use) for scenario in analysis.scenarios])
    yield _steps([(f"`{scenario.name}`", scenario.use) for scenario in analysis.scenarios])
    if "(proxy)" in analysis.overall.use.tokenizer:
        yield f"{PROXY}."
    if analysis.silent:
        yield f"Without an answered call: {plural(len(analysis.silent), 'scenario')}."
    problems = list(cost_lines(analysis))
    if problems:
        yield "## Costs to look at"
        yield "\n".join(f"- {escaped(problem)}" for problem in problems)


def _uses(first: str, rows: Sequence[tuple[str, Use]]) -> str:
    head = (first, "calls", "sent", "received", "estimate", "chars//4", "measured", "estimate / measured")
    return markdown_table(
        (*head, "reported", "cost", "tokenizer"),
        [
            (
                name,
                count(use.calls),
                count(use.bytes_sent),
                count(use.bytes_received),
                count(use.approx_tokens),
                count(use.character_tokens),
                count(use.measured_tokens),
                ratio(use.ratio),
                escaped(reported(use)),
                money(use.cost.statek),
                escaped(use.tokenizer),
            )
            for name, use in rows
        ],
    )


def _waterfall(use: Use) -> str:
    steps = use.waterfall
    rows = [("said once", count(steps.once), ONCE)]
    rows.append(("history", signed(steps.history), MEANINGS["history"]))
    rows.append(("**estimate**", f"**{count(steps.estimate)}**", "what the harness holds against its limit"))
    rows += [(step, signed(getattr(steps, step)), escaped(MEANINGS[step])) for step in STEPS[1:]]
    rows.append(("**measured**", f"**{count(steps.measured)}**", f"what {escaped(use.tokenizer)} counts"))
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (("step", "tokens", ""), _RULE, *rows))


_RULE: Final = (":---", "---:", ":---")


def _steps(rows: Sequence[tuple[str, Use]]) -> str:
    return markdown_table(
        ("scenario", "once", "history", "= estimate", *STEPS[1:], "= measured"),
        [
            (
                name,
                count(use.waterfall.once),
                signed(use.waterfall.history),
                count(use.waterfall.estimate),
                *(signed(getattr(use.waterfall, step)) for step in STEPS[1:]),
                count(use.waterfall.measured),
            )
            for name, use in rows
        ],
    )
