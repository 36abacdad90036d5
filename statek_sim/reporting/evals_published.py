"""Published counts beside simulated ones, as tables."""

from __future__ import annotations

from collections.abc import Iterator

from statek_sim.evals.published.side_by_side import Side, SideBySide
from statek_sim.reporting.evals_tables import TextTable, percent, rates_table

_HEADER = ("published completed", "simulated", "published right", "simulated", "")


def published_tables(found: SideBySide) -> Iterator[TextTable]:
    """Yield the sums, by tier, then every scenario with and without a harness, then the rates."""
    yield _sums(found)
    for harness in (False, True):
        yield _scenarios(found, harness=harness)
    yield rates_table(found.profile)


def _sums(found: SideBySide) -> TextTable:
    rows = []
    for harness in (False, True):
        for tier in (None, "easy", "medium", "hard"):
            published, simulated = found.of(harness=harness, tier=tier)
            name = f"{'with harness' if harness else 'bare'}, {tier or 'all'}"
            rows.append((name, *_sides(published, simulated), ""))
    lows, highs = zip(*[(min(column), max(column)) for column in zip(*found.drawn, strict=True)], strict=True)
    poor = [row for row in found.rows if row.poor]
    drawn = f"complete {_range(lows[0], highs[0])} of their bare runs, {_range(lows[1], highs[1])} right"
    below = (
        "the fit was made to these very counts, scenario by scenario: this shows whether the engine gives them back,",
        "not whether other work would go the same way",
        f"{len(found.drawn)} models drawn from the fitted Betas {drawn}: scenarios matter that much",
        f"poor fit in {len(poor)} of {len(found.rows)} rows, where 95 % intervals do not touch",
    )
    title = f"{found.published.model}: Forge's counts and {found.profile.name}"
    return TextTable(title=title, header=("runs", *_HEADER), rows=tuple(rows), below=below)


def _range(low: float, high: float) -> str:
    return f"{percent(low)} to {percent(high)}"


def _scenarios(found: SideBySide, *, harness: bool) -> TextTable:
    rows = tuple(
        (
            f"{row.scenario.name} ({row.scenario.tier}, {row.scenario.calls})",
            *_sides(row.published, row.simulated),
            "poor fit" if row.poor else "",
        )
        for row in found.rows
        if row.harness == harness
    )
    below: tuple[str, ...] = ("in brackets: tier (ours) and calls of an ideal run",)
    if harness:
        below = (*below, "completion with the harness is published in sum only")
    title = "With Forge's harness" if harness else "Bare"
    return TextTable(title=title, header=("scenario", *_HEADER), rows=rows, below=below)


def _sides(published: Side, simulated: Side) -> tuple[str, str, str, str]:
    return (
        _share(published.completed, published.runs),
        _share(simulated.completed, simulated.runs),
        _share(published.correct, published.runs),
        _share(simulated.correct, simulated.runs),
    )


def _share(count: int | None, of: int) -> str:
    return "-" if count is None else percent(count / of)
