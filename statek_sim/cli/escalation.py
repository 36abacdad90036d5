"""`statek-sim escalation`: what every other ladder would have cost and solved."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statek_sim.cli.app import WATCHDOG, WatchdogOption, app
from statek_sim.cli.inputs import check_once, check_writable, loaded
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.agent.escalation.what_if import Outcomes, WhatIf


@app.command()
def escalation(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            show_default=False,
            help='Traces (.jsonl, as `trace` prints them), lines {"task", "level", "solved", "tokens", "cost"} '
            "(.jsonl, too), or scenarios.",
        ),
    ],
    watchdog: WatchdogOption = WATCHDOG,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the ladders as JSON, too.")
    ] = None,
) -> None:
    """Show what every other ladder would have cost and solved.

    What was not recorded is not guessed: a task that needs it is unknown.
    """
    from statek_sim.agent.escalation.what_if import Outcomes, add_lines, what_if, what_if_json
    from statek_sim.reporting.artifact import write_artifact

    check_writable(json_file=json_file, folder=None)
    outcomes = Outcomes()
    check_once(paths)
    files = [path for path in paths if path.suffix == ".jsonl"]
    scenarios = [path for path in paths if path.suffix != ".jsonl"]
    for path in files:
        if _is_trace(path):
            _add_traces(outcomes, path)
        else:
            add_lines(outcomes, path)
    if scenarios:
        _add_scenarios(outcomes, scenarios, watchdog)
    found = what_if(outcomes)
    _show(found)
    if json_file is not None:
        write_artifact(json_file, json.dumps(what_if_json(found), indent=2, allow_nan=False) + "\n")


def _is_trace(path: Path) -> bool:
    from statek_sim.agent.telemetry.files import text_of_file

    first = next((line for line in text_of_file(path).split("\n") if line.strip()), "")
    return first.lstrip().startswith('{"trace":')


def _add_traces(outcomes: Outcomes, path: Path) -> None:
    from statek_sim.agent.escalation.what_if import add_trace
    from statek_sim.agent.telemetry.files import runs_of_file

    for run, events in runs_of_file(path):
        add_trace(outcomes, events, run)


def _add_scenarios(outcomes: Outcomes, paths: Sequence[Path], watchdog: str) -> None:
    from statek_sim.agent.escalation.what_if import add_trace
    from statek_sim.executors.limits import parse_watchdog
    from statek_sim.suite.run import chosen, run_one
    from statek_sim.suite.watched import run_watched

    scenarios = loaded(paths)
    pairs = chosen(scenarios, profiles=["hardened"])
    if not pairs:
        raise BadInput(
            f"none of {len(scenarios)} scenarios has an agent; expected scenarios of "
            "`engine: agent`, whose harness has a ladder"
        )
    for result in run_watched(pairs, run_one, parse_watchdog(watchdog)):
        add_trace(outcomes, result.record.events, result.id)


def _show(found: Sequence[WhatIf]) -> None:
    from rich.console import Console
    from rich.text import Text

    from statek_sim.agent.escalation.what_if import what_if_rows
    from statek_sim.reporting.grid import lay_out

    rows = [
        [Text(cell, justify="left" if at == 0 else "right") for at, cell in enumerate(row)]
        for row in what_if_rows(found)
    ]
    for line in lay_out(rows, width=max(Console().width, 110)):
        typer.echo(line.plain)
