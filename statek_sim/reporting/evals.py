"""Renders an experiment's summary as tables for a terminal or Markdown, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from statek_sim.agent.budget import Prices
from statek_sim.evals.arms import FULL
from statek_sim.evals.outcome import Count
from statek_sim.evals.profile import Profile
from statek_sim.evals.summary import ArmSummary, Comparison, Summary
from statek_sim.reporting.table import Table
from statek_sim.values import record


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """A table with a title and footnotes. The first column contains text, the others numbers."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    below: tuple[str, ...] = ()

    @property
    def table(self) -> Table:
        """The header and the rows as a `Table`, ready to render."""
        return Table(head=self.header, rows=self.rows, left=_WORDS)


_WORDS: Final = ("answer", "read by rescue", "corrected")
"""Headers of the other text columns."""

_UNBOUNDED: Final = 10_000
"""The table width in a terminal, large enough that tables are never cut."""


def evals_tables(summary: Summary, prices: Prices | None = None) -> Iterator[TextTable]:
    """Yield the report's tables, including the cost of the runs if there are `prices`."""
    yield arms_table(summary)
    yield tokens_table(summary, prices)
    if summary.comparisons:
        yield comparisons_table(summary.comparisons)
    yield matrix_table(summary)
    yield flow_table(summary)
    yield rates_table(summary.experiment.model)


def arms_table(summary: Summary) -> TextTable:
    """Return a table of the arms with their completion rate and score."""
    first = summary.arms[0]
    timed = any(arm.seconds is not None for arm in summary.arms)
    header = (
        *("arm", "runs", "completed", "right", "95 % by scenarios", *first.tiers, "calls", "wasted"),
        *(("seconds",) if timed else ()),
        *_powers(first),
    )
    below = [
        f"{summary.experiment.model.name}; completed: ended with an answer; right: met every requirement"
    ]
    if timed:
        below.append("seconds: real time for all of the agent's runs; the built-in harness uses virtual time")
    rows = tuple(_arm_row(arm, timed=timed) for arm in summary.arms)
    return TextTable(title="Arms", header=header, rows=rows, below=tuple(below))


def _powers(arm: ArmSummary) -> list[str]:
    return [f"pass^{k}" for k, power in arm.powers.items() if power is not None and k > 1]


def _arm_row(arm: ArmSummary, *, timed: bool) -> tuple[str, ...]:
    low, high = arm.interval
    seconds = "-" if arm.seconds is None else f"{arm.seconds:.1f}"
    return (
        arm.arm.name,
        str(arm.runs),
        percent(arm.completion),
        percent(arm.score),
        f"{percent(low)} - {percent(high)}",
        *(f"{passed}/{runs}" for passed, runs in arm.tiers.values()),
        f"{arm.calls:.1f}",
        f"{arm.wasted:.1f}",
        *((seconds,) if timed else ()),
        *(percent(power) for k, power in arm.powers.items() if power is not None and k > 1),
    )


def tokens_table(summary: Summary, prices: Prices | None) -> TextTable:
    """Return a table of mean tokens per run, measured and estimated, and the mean cost if `prices` are given."""
    header: tuple[str, ...] = ("arm", "requests", "measured", "estimated")
    below = ["mean tokens per run; estimated: bytes / 4"]
    if prices is not None:
        header = (*header, "cost measured", "cost estimated")
        below.append(
            f"US dollars per 1,000 runs at {prices.prompt} and {prices.completion} per million tokens"
        )
    return TextTable(
        title="Tokens",
        header=header,
        rows=tuple(_tokens_row(arm, prices) for arm in summary.arms),
        below=tuple(below),
    )


def _tokens_row(arm: ArmSummary, prices: Prices | None) -> tuple[str, ...]:
    ways = (arm.tokens.measured, arm.tokens.estimated)
    means = [_mean(count, arm.runs) for count in ways]
    costs = [] if prices is None else [_cost(count, arm.runs, prices) for count in ways]
    return arm.arm.name, f"{arm.model_calls:.1f}", *means, *costs


def _mean(count: Count, runs: int) -> str:
    return f"{count.total / runs:.0f}"


def _cost(count: Count, runs: int, prices: Prices) -> str:
    return f"{prices.cost(count.prompt, count.completion) * 1000 / Decimal(runs):.4f}"


def comparisons_table(comparisons: Sequence[Comparison]) -> TextTable:
    """Return a table of arm comparisons with their significance."""
    rows = tuple(
        (
            f"{comparison.first} against {comparison.second}",
            signed(comparison.seen.difference),
            f"{signed(comparison.interval[0])} - {signed(comparison.interval[1])}",
            f"{comparison.seen.first}:{comparison.seen.second}",
            _p(comparison.p),
            _p(comparison.adjusted),
            answer_words(comparison),
        )
        for comparison in comparisons
    )
    header = ("arms", "difference", "95 % by scenarios", "only one right", "p", "p (Holm)", "answer")
    below = (
        "p: exact McNemar test over pairs with the same scenario and seed, for exactly these scenarios",
        "the interval covers scenarios like these",
    )
    return TextTable(title="Is the difference real?", header=header, rows=rows, below=below)


def _p(value: float) -> str:
    return "<0.0001" if value < 0.00005 else f"{value:.4f}"


def answer_words(comparison: Comparison) -> str:
    """Return a comparison's result in words."""
    match comparison.answer:
        case "different":
            return "different"
        case "different here":
            return "different on these scenarios; more scenarios are needed to generalize"
        case "not exercised":
            return "not exercised: every run had the same result in both"
        case "cannot tell":
            return "not enough runs to tell"


def matrix_table(summary: Summary) -> TextTable:
    """Return a table with the number of right runs for each scenario in each arm."""
    names = [arm.arm.name for arm in summary.arms]
    rows = tuple(
        (
            f"{scenario.id} ({scenario.tier})",
            *(
                f"{summary.cells[scenario.id][name].passed}/{summary.cells[scenario.id][name].runs}"
                for name in names
            ),
        )
        for scenario in summary.experiment.suite
    )
    return TextTable(title="Right, by scenario and arm", header=("scenario", *names), rows=rows)


def flow_table(summary: Summary) -> TextTable:
    """Return a table of mistake classes in one arm: the user's agent, or else the full harness or the first arm."""
    first = summary.arms[0]
    of_full = next((arm_row for arm_row in summary.arms if arm_row.arm.name == FULL), first)
    arm = of_full if first.arm.agent is None else first
    rows = tuple(
        (
            row.failure,
            str(row.turns),
            _listed(row.rescued),
            _listed(row.nudged),
            str(row.runs),
            str(row.completed),
            str(row.passed),
        )
        for row in arm.flow
    )
    header = ("class", "turns", "read by rescue", "corrected", "runs with it", "completed", "right")
    return TextTable(title=f"Failures in arm {arm.arm.name}", header=header, rows=rows)


def _listed(counts: Sequence[tuple[str, int]]) -> str:
    shown = ", ".join(f"{name} {count}" for name, count in counts[:4])
    rest = sum(count for _, count in counts[4:])
    return f"{shown}, others {rest}" if rest else shown or "-"


def rates_table(profile: Profile) -> TextTable:
    """Return a table of the model's rates, with the reason why rates are assumed, if any are."""
    below = (
        f"all rates are assumed: {profile.assumed}",
        "a class's rate is its mean across scenarios, because each scenario has its own rate",
        "damage rates apply to malformed calls that arrive as text",
    )
    return TextTable(
        title=f"Rates of {profile.name}",
        header=("class", "rate"),
        rows=tuple((name, percent(rate)) for name, rate in profile.all_rates.items()),
        below=below,
    )


def percent(share: float) -> str:
    """Return a fraction as a percentage."""
    return f"{100 * share:.1f} %"


def signed(share: float) -> str:
    """Return a difference between fractions in percentage points, with its sign."""
    return f"{100 * share:+.1f}"


def table_lines(table: TextTable) -> Iterator[str]:
    """Yield a table's lines for a terminal."""
    yield table.title
    yield from (f"  {line.plain}" for line in table.table.lines(width=_UNBOUNDED))
    yield from (f"  {line}" for line in table.below)


def table_markdown(table: TextTable) -> Iterator[str]:
    """Yield a table's Markdown lines."""
    yield f"### {table.title}\n\n{table.table.markdown()}"
    for line in table.below:
        yield f"\n{line}"
    yield ""


def evals_markdown(summary: Summary, prices: Prices | None) -> str:
    """Return the report as Markdown."""
    return "\n".join(line for table in evals_tables(summary, prices) for line in table_markdown(table))


SCHEMA: Final = "statek-sim/evals@1"
DIGITS: Final = 6


def evals_json(summary: Summary) -> dict[str, Any]:
    """Return the summary as JSON that follows `evals_schema.json`."""
    experiment = summary.experiment
    return {
        "schema": SCHEMA,
        "model": experiment.model.name,
        "rates": rates_json(experiment.model),
        "arms": [_arm(arm) for arm in summary.arms],
        "scenarios": [
            {
                **record(scenario, "id", "tier", "capability"),
                "arms": {
                    name: {**record(cell, "runs", "completed", "passed"), "points": _rounded(cell.points)}
                    for name, cell in summary.cells[scenario.id].items()
                },
            }
            for scenario in experiment.suite
        ],
        "tests": [_test(comparison) for comparison in summary.comparisons],
    }


def rates_json(profile: Profile) -> list[dict[str, Any]]:
    """Return a profile's rates: class means across scenarios, single rates, and the fraction of each damage kind."""
    return [{"class": name, "rate": _rounded(rate)} for name, rate in profile.all_rates.items()]


def _arm(arm: ArmSummary) -> dict[str, Any]:
    return {
        **record(arm.arm, "name", "agent", "ideal"),
        "parts": list(arm.arm.listed),
        "runs": arm.runs,
        "completion": _rounded(arm.completion),
        "score": _rounded(arm.score),
        "interval": [_rounded(bound) for bound in arm.interval],
        "tiers": {tier: {"runs": runs, "passed": passed} for tier, (passed, runs) in arm.tiers.items()},
        "seconds": None if arm.seconds is None else round(arm.seconds, 3),
        "tokens": {name: count._asdict() for name, count in arm.tokens._asdict().items()},
    }


def _test(comparison: Comparison) -> dict[str, Any]:
    return {
        "arms": [comparison.first, comparison.second],
        "p": _rounded(comparison.p),
        "enough_runs": comparison.enough,
    }


def _rounded(number: float) -> float:
    return round(number, DIGITS)
