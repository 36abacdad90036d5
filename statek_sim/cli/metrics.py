"""`statek-sim metrics`: compute agent health metrics from scenarios and traces."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statek_sim.cli import options
from statek_sim.cli.app import app
from statek_sim.cli.inputs import check_once, check_outputs, loaded, show, write_outputs
from statek_sim.cli.options import argument, flag, option
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.telemetry.facts import Cost, TaskFacts

_TRACES = ".jsonl"

MetricsPaths = Annotated[
    list[Path] | None,
    argument(
        "PATH",
        "Scenario files or folders, and traces (.jsonl files from the `trace` command), oldest first. Default: the "
        "built-in suites.",
    ),
]
WindowOption = Annotated[int, option("N", "The number of tasks per window, for metrics over time.")]
WorthOption = Annotated[
    str | None, option("USD", "The value of a completed task in US dollars; alert if a task costs more.")
]
FailOption = Annotated[bool, flag("Exit 1 if there is an alert.", "--fail-on-alert")]


@app.command()
def metrics(
    paths: MetricsPaths = None,
    profile: options.ProfileOption = None,
    select: options.SelectOption = None,
    tag: options.TagOption = None,
    watchdog: options.WatchdogOption = options.WATCHDOG,
    window: WindowOption = 20,
    worth: WorthOption = None,
    prices: options.PricesOption = None,
    json_file: options.JsonFileOption = None,
    fail: FailOption = False,
) -> None:
    """Show ten agent health metrics, with alerts.

    Does not check the scenarios' expectations; use `run` for that.

    Example: statek-sim metrics scenarios/agent-steps
    """
    from statek_sim.reporting.metrics import metric_lines
    from statek_sim.telemetry.report import Bands, metrics_json, metrics_report

    check_outputs({"--json": json_file})
    if window < 1:
        raise BadInput(f"--window {window}: expected 1 or more")
    bands = Bands(value_per_task=None if worth is None else _dollars(worth))
    tasks = _tasks(paths or (), profile, select, tag or (), watchdog, _cost(prices))
    report = metrics_report(tasks, size=window, bands=bands)
    show(lambda width: metric_lines(report, width=width))
    write_outputs((json_file, lambda: metrics_json(report)))
    if fail and report.alerts:
        raise typer.Exit(1)


def _dollars(text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(0)
    if not amount.is_finite() or amount <= 0:
        raise BadInput(f"--worth {text!r}: expected US dollars above 0, like 0.25")
    return amount


def _cost(prices: Path | None) -> Cost | None:
    if prices is None:
        return None
    from statek_sim.analysis.run_usage import cost_by
    from statek_sim.usage.pricing import load_prices

    return cost_by(load_prices(prices))


def _tasks(
    paths: Sequence[Path],
    profiles: Sequence[str] | None,
    select: str | None,
    tags: Sequence[str],
    watchdog: str,
    cost: Cost | None,
) -> list[TaskFacts]:
    from statek_sim.telemetry.files import groups_of, tasks_of_file

    files = [path for path in paths if path.suffix == _TRACES]
    scenarios = [path for path in paths if path.suffix != _TRACES]
    if report := next((path for path in scenarios if path.suffix == ".json"), None):
        raise BadInput(
            f"{report}: expected scenarios or a trace (.jsonl); a report contains no events to measure"
        )
    check_once(files)
    groups = groups_of(files)
    found = [task for path in files for task in tasks_of_file(path, cost=cost, group=groups[path])]
    if scenarios or not paths:
        found += _of_scenarios(scenarios, profiles, select, tags, watchdog, cost)
    if not found:
        raise BadInput("no task in these files; expected at least one run with a job")
    return found


def _of_scenarios(
    paths: Sequence[Path],
    profiles: Sequence[str] | None,
    select: str | None,
    tags: Sequence[str],
    watchdog: str,
    cost: Cost | None,
) -> list[TaskFacts]:
    from statek_sim.analysis.run_usage import tasks_of
    from statek_sim.executors.limits import parse_watchdog
    from statek_sim.suite.run import chosen_or_fail, run_one
    from statek_sim.suite.watched import run_watched

    limits = parse_watchdog(watchdog)
    pairs = chosen_or_fail(loaded(paths), profiles=profiles, select=select, tags=tags)
    return tasks_of(run_watched(pairs, run_one, limits), cost=cost)
