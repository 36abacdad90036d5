"""Renders a usage analysis as tables for a terminal, as GitHub-flavoured Markdown, and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

from rich.text import Text

from statek_sim.analysis.corpus_model import CELLS, TURNS, Cell, CorpusTable
from statek_sim.reporting.report_text import DIRECTION_STYLES, ROWS, styled_ratio
from statek_sim.reporting.table import Code, Rows, Table, escaped, paragraph
from statek_sim.reporting.text_format import NOTHING, count, direction, plural, signed
from statek_sim.usage.breakdown import MEANINGS, STEPS, Group, JobUse, ScenarioUse, UsageAnalysis, Use
from statek_sim.values import JSON, record

_NAME: Final = 24
"""The minimum width of the first column; tables drop other columns to keep it."""

_COLUMNS: Final[Mapping[str, Callable[[Use], str | Text]]] = {
    "calls": lambda use: count(use.calls),
    "sent": lambda use: count(use.bytes_sent),
    "received": lambda use: count(use.bytes_received),
    "estimate": lambda use: count(use.approx_tokens),
    "chars//4": lambda use: count(use.character_tokens),
    "prompt": lambda use: count(use.measured_prompt),
    "completion": lambda use: count(use.measured_completion),
    "measured": lambda use: count(use.measured_tokens),
    "ratio": lambda use: styled_ratio(use.ratio),
    "reported": lambda use: _reported(use),  # noqa: PLW0108  # defined below
    "cost": lambda use: money(use.cost.statek),
    "tokenizer": lambda use: use.tokenizer,
}
"""A usage table's columns: each header with the function that returns its cell."""

_CHOICES: Final = (
    tuple(_COLUMNS),
    ("calls", "sent", "received", "estimate", "chars//4", "measured", "ratio", "reported", "cost"),
    ("calls", "estimate", "chars//4", "measured", "ratio", "reported", "cost"),
    ("estimate", "chars//4", "measured", "ratio", "reported"),
    ("estimate", "measured", "ratio"),
)
"""The sets of columns to choose from, widest table first."""


def usage_lines(analysis: UsageAnalysis, *, width: int, every: bool = False) -> Iterator[Text]:
    """Yield the report's terminal lines; `every` lists all scenarios instead of only the worst."""
    if not analysis.scenarios:
        yield Text("no scenario had an answered LLM call")
        return
    yield from _titled("Usage", ESTIMATE, width)
    yield from _in_width(use_table("suite", _groups(analysis)), width)
    yield Text()
    yield from _titled("Breakdown", "tokens, all scenarios combined", width)
    yield from waterfall_lines(analysis.overall.use, width=width)
    yield Text()
    worst = sorted(analysis.scenarios, key=_badness)
    rows = analysis.scenarios if every else worst[:ROWS]
    uses = [(row.name, row.use) for row in rows]
    yield from _titled("Every scenario" if every else "Largest differences", "", width)
    yield from _in_width(use_table("scenario", uses), width)
    yield Text()
    steps = step_table(uses)
    if steps.fits(width=width, first=_NAME):
        yield from steps.lines(width=width)
        yield Text()
    yield from paragraph("; ".join(_notes(analysis, len(rows))), width, "dim")
    problems = list(cost_lines(analysis))
    if problems:
        yield Text()
        yield from _titled("Cost problems", "", width)
        for line in problems:
            yield from paragraph(line, width)


def usage_markdown(analysis: UsageAnalysis) -> str:
    """Return the report as Markdown; equal analyses give equal text."""
    return "\n\n".join(_blocks(analysis)) + "\n"


def _blocks(analysis: UsageAnalysis) -> Iterator[str]:
    yield "# Usage"
    if not analysis.scenarios:
        yield "No scenario had an answered LLM call."
        return
    yield f"{ESTIMATE[:1].upper()}{ESTIMATE[1:]}. {CHARACTERS}."
    yield use_table("suite", _groups(analysis)).markdown()
    yield "## Breakdown"
    yield waterfall_table(analysis.overall.use).markdown()
    yield "## Scenarios"
    rows = [(Code(scenario.name), scenario.use) for scenario in analysis.scenarios]
    yield use_table("scenario", rows).markdown()
    yield step_table(rows).markdown()
    if "(proxy)" in analysis.overall.use.tokenizer:
        yield f"{PROXY}."
    if analysis.silent:
        yield f"Without answered calls: {plural(len(analysis.silent), 'scenario')}."
    problems = list(cost_lines(analysis))
    if problems:
        yield "## Cost problems"
        yield "\n".join(f"- {escaped(problem)}" for problem in problems)


def turn_lines(scenario: ScenarioUse, *, width: int) -> Iterator[Text]:
    """Yield a scenario's usage for each turn in each job, as terminal lines."""
    for job in scenario.jobs:
        end = f", {job.stop}" if job.stop else ""
        yield from _titled(f"{scenario.name} {job.name}", f"agent {job.agent}{end}; one line per turn", width)
        rows = [(f"turn {turn.turn}", turn.use) for turn in job.turns]
        yield from _in_width(use_table("", [*rows, ("all turns", job.use)]), width)
        yield Text()
        yield from waterfall_lines(job.use, width=width)
        yield Text()


def use_table(first: str, rows: Sequence[tuple[str, Use]]) -> Table:
    """Return a table with a row for each usage, leaving out columns without numbers."""
    cells = [[name, *(cell(use) for cell in _COLUMNS.values())] for name, use in rows]
    table = Table(head=(first, *_COLUMNS), rows=cells, left=("ratio", "tokenizer"))
    filled = [any(str(row[at]) != NOTHING for row in cells) for at in range(len(table.head))]
    return table.only([head for head, is_filled in zip(table.head, filled, strict=True) if is_filled])


def _in_width(table: Table, width: int) -> list[Text]:
    return table.widest(_CHOICES, width=width, first=_NAME).lines(width=width)


def step_table(rows: Sequence[tuple[str, Use]]) -> Table:
    """Return a table with the waterfall's steps as columns and a row for each usage."""
    cells = [[name, *(number for number, _, _ in _waterfall(use))] for name, use in rows]
    heads = ("once", "history", "= estimate", *STEPS[1:], "= measured")
    return Table(head=("scenario", *heads), rows=cells)


def waterfall_table(use: Use) -> Table:
    """Return the waterfall as a table with a row for each step: name, number and description."""
    rows: Rows = [
        [Text(name.removeprefix("= "), "bold"), Text(number, "bold"), meaning]
        if name.startswith("=")
        else [name, number, meaning]
        for number, name, meaning in _waterfall(use)
    ]
    return Table(head=("step", "tokens", ""), rows=rows, left=("",))


def waterfall_lines(use: Use, *, width: int) -> Iterator[Text]:
    """Yield the waterfall as terminal lines, one per step: number, name and description."""
    rows = _waterfall(use)
    room = max(len(number) for number, _, _ in rows)
    label = max(len(name) for _, name, _ in rows)
    for number, name, meaning in rows:
        style = "bold" if name.startswith("=") else ""
        indent = " " * (room + label + 4)
        wrapped = textwrap.wrap(meaning, max(width - len(indent), 20), break_long_words=False)
        yield Text(f"{number:>{room}}  {name:<{label}}  {wrapped[0]}", style)
        yield from (Text(indent + line, style) for line in wrapped[1:])


def _waterfall(use: Use) -> list[tuple[str, str, str]]:
    """Return each step's number, name and description, in order."""
    steps = use.waterfall
    return [
        (count(steps.once), "once", ONCE),
        (signed(steps.history), "history", MEANINGS["history"]),
        (count(steps.estimate), "= estimate", "what the harness compares with its limit"),
        *((signed(getattr(steps, step)), step, MEANINGS[step]) for step in STEPS[1:]),
        (count(steps.measured), "= measured", f"tokens counted by {use.tokenizer}"),
    ]


def _reported(use: Use) -> str:
    """Return the tokens reported by providers, with an asterisk if some calls have no report."""
    if use.reported_tokens is None:
        return NOTHING
    return count(use.reported_tokens) + ("" if use.reporting == use.calls else "*")


def cost_lines(analysis: UsageAnalysis) -> Iterator[str]:
    """Yield a sentence for each problem with costs or price files."""
    for scenario in analysis.scenarios:
        for problem in scenario.use.cost.problems:
            yield f"{scenario.name}: {problem}"
    yield from analysis.price_problems


def _groups(analysis: UsageAnalysis) -> list[tuple[str, Use]]:
    groups: Iterable[Group] = (*analysis.suites, analysis.overall)
    return [(group.name, group.use) for group in groups]


def _notes(analysis: UsageAnalysis, shown: int) -> Iterator[str]:
    if shown < len(analysis.scenarios):
        yield f"the worst {shown} of {plural(len(analysis.scenarios), 'scenario')}"
    if analysis.silent:
        yield f"{plural(len(analysis.silent), 'scenario')} without answered calls"
    yield CHARACTERS
    use = analysis.overall.use
    if use.reporting and use.reporting < use.calls:
        yield NO_REPORT.format(missing=plural(use.calls - use.reporting, "call"))
    if "(proxy)" in use.tokenizer:
        yield PROXY


def _titled(title: str, subtitle: str, width: int) -> Iterator[Text]:
    yield Text(title, "bold")
    if subtitle:
        yield from paragraph(subtitle, width, "dim")


def _badness(row: ScenarioUse) -> tuple[int, str]:
    """Return a sort key that puts the largest estimate error, in tokens, first."""
    return -abs(row.use.approx_tokens - row.use.measured_tokens), row.name


ESTIMATE: Final = (
    "estimate: (bytes sent + bytes received) // 4, as the harness counts; measured: by a tokenizer"
)
CHARACTERS: Final = "chars//4: the rule of thumb, applied to all texts, tool definitions and replies"
ONCE: Final = "without history: each message counted once, bytes // 4"
NO_REPORT: Final = "*: the provider reported no usage for {missing}"
PROXY: Final = "proxy: measured with another tokenizer, because the model's own is unknown"

_SMALLEST: Final = Decimal("0.000001")


def money(amount: Decimal | None) -> str:
    """Format an amount, such as `0.0123` or `12.50`, without a currency, because price files do not name one."""
    if amount is None:
        return NOTHING
    if amount == 0 or abs(amount) >= 10:
        return f"{amount:,.2f}"
    if abs(amount) < _SMALLEST:
        return f"{amount:.1e}"
    return f"{amount:,.6f}".rstrip("0")


SCHEMA: Final = "statek-sim/usage@1"


def usage_json(analysis: UsageAnalysis, corpus: CorpusTable | None = None) -> dict[str, JSON]:
    """Return the analysis as JSON that follows `usage_schema.json`; equal analyses give equal objects.

    `corpus` is the corpus table, or None when scenarios were analysed.
    """
    table: dict[str, JSON] = {} if corpus is None else {"corpus": _corpus(corpus)}
    return {
        "schema": SCHEMA,
        "preset": analysis.preset,
        "scenarios": [_scenario(scenario) for scenario in analysis.scenarios],
        "suites": [_group(suite) for suite in analysis.suites],
        "overall": _group(analysis.overall),
        "without_calls": list(analysis.silent),
        "price_problems": list(analysis.price_problems),
        **table,
    }


def _corpus(table: CorpusTable) -> JSON:
    return [
        {
            "text": row.key,
            "name": row.name,
            "turns": cell.turns,
            "tools": cell.tools,
            "estimate_ratio": round(row.ratio(cell), 6),
            "character_ratio": round(row.character_ratio(cell), 6),
        }
        for row in table.rows
        for cell in CELLS
    ]


def _scenario(scenario: ScenarioUse) -> JSON:
    return {
        **record(scenario, "suite", "id", "profile", "tags"),
        "jobs": [_job(job) for job in scenario.jobs],
        **use_json(scenario.use),
    }


def _job(job: JobUse) -> JSON:
    turns: list[JSON] = [
        {**record(turn, "turn", "model", "provider"), **use_json(turn.use)} for turn in job.turns
    ]
    return {**record(job, "name", "agent", "stop"), "turns": turns, **use_json(job.use)}


def _group(group: Group) -> JSON:
    return {**record(group, "name", "scenarios"), **use_json(group.use)}


_COUNTS: Final = (
    *("calls", "bytes_sent", "bytes_received", "approx_tokens", "character_tokens"),
    *("measured_prompt", "measured_completion", "measured_tokens", "tokenizer", "reported_tokens"),
)


def use_json(use: Use) -> Mapping[str, JSON]:
    """Return a turn's, job's, scenario's or group's usage as JSON; amounts are decimal strings."""
    return {
        **record(use, *_COUNTS),
        "reported_calls": use.reporting,
        "reported_prompt": use.reported.prompt if use.reporting else None,
        "reported_completion": use.reported.completion if use.reporting else None,
        "reported_cached": use.reported.cached if use.reporting else None,
        "cost": record(use.cost, "statek", "billed", "reported", "problems"),
        "waterfall": record(use.waterfall, *use.waterfall._fields, "estimate", "measured"),
    }


LONGEST: Final = Cell(TURNS[-1], tools=False)
"""The cell compared with `chars//4`: the longest dialogue without tools."""

_WITH_TOOLS: Final = Cell(TURNS[-1], tools=True)
"""The cell whose steps are shown, because it has every step."""

_RATIOS: Final = (
    "estimate / measured for the same dialogue with 1, 5 and 20 turns: above 1, the harness stops a job early; below "
    "1, late; chars//4: the same ratio for 20 turns without tools"
)
_SHARES: Final = "what each waterfall step adds, in % of measured tokens; 20 turns with tools"


def corpus_lines(table: CorpusTable, *, width: int) -> Iterator[Text]:
    """Yield the two corpus tables as terminal lines: the ratios and their causes."""
    yield Text("The same dialogue in many types of text", "bold")
    yield from paragraph(f"{_RATIOS}; measured with {table.tokenizer}", width, "dim")
    heads = [f"{cell.turns}{' + tools' if cell.tools else ''}" for cell in CELLS]
    yield from replace(_ratio_table(table), head=("turns", *heads, "chars//4")).lines(width=width)
    if "(proxy)" in table.tokenizer:
        yield from paragraph(PROXY, width, "dim")
    yield Text()
    yield Text("Where the difference comes from", "bold")
    yield from paragraph(_SHARES, width, "dim")
    yield from _share_table(table).lines(width=width)


def corpus_markdown(table: CorpusTable) -> str:
    """Return both tables as Markdown."""
    blocks = (
        "# The same dialogue in many types of text",
        f"{_RATIOS[:1].upper()}{_RATIOS[1:]}. Measured with {escaped(table.tokenizer)}.",
        _ratio_table(table).markdown(),
        f"{_SHARES[:1].upper()}{_SHARES[1:]}:",
        _share_table(table).markdown(),
    )
    return "\n\n".join(blocks) + "\n"


def _ratio_table(table: CorpusTable) -> Table:
    cells = [f"{_turns(cell)}{' with tools' if cell.tools else ''}" for cell in CELLS]
    rows: Rows = [
        [row.name, *map(_corpus_ratio, (*(row.ratio(cell) for cell in CELLS), row.character_ratio(LONGEST)))]
        for row in table.rows
    ]
    return Table(head=("text", *cells, "chars//4"), rows=rows)


def _share_table(table: CorpusTable) -> Table:
    rows = [[row.name, *_shares(table, at)] for at, row in enumerate(table.rows)]
    return Table(head=("text", *STEPS[1:]), rows=rows)


def _shares(table: CorpusTable, index: int) -> list[str]:
    use = table.rows[index].uses[_WITH_TOOLS]
    return [f"{signed(100 * getattr(use.waterfall, step) / use.measured_tokens)}%" for step in STEPS[1:]]


def _turns(cell: Cell) -> str:
    return f"{cell.turns} turn" if cell.turns == 1 else f"{cell.turns} turns"


def _corpus_ratio(value: float) -> Text:
    return Text(f"{value:.2f}", DIRECTION_STYLES[direction(value)])
