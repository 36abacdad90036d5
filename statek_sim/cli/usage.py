"""`statek-sim usage`: what scenarios use, counted five ways, and where the differences come from."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from statek_sim.cli.app import Paths, PresetOption, app
from statek_sim.cli.inputs import check_writable, loaded
from statek_sim.errors import BadInput


@app.command()
def usage(
    paths: Paths = None,
    profile: Annotated[
        str,
        typer.Option(metavar="P", help="Behaviour profile; scenarios that do not hold for it are left out."),
    ] = "docs",
    preset: PresetOption = None,
    select: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Only the scenario with this id, or else those whose suite/id[profile] has TEXT.",
        ),
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(metavar="T", help="Only scenarios with this tag (repeatable: any of them)."),
    ] = None,
    turns: Annotated[bool, typer.Option("--turns", help="Show the chosen scenarios turn by turn.")] = False,
    every: Annotated[bool, typer.Option("--all", help="List every scenario, not the worst ones.")] = False,
    prices: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of STATEK's price files (STATEK_MODEL_INFO_DIR)."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the analysis as JSON to this file.")
    ] = None,
    markdown_file: Annotated[
        Path | None,
        typer.Option("--markdown", metavar="FILE", help="Write the analysis as Markdown to this file."),
    ] = None,
) -> None:
    """Show what scenarios use: estimated, measured, reported.

    Nothing is compared with what scenarios expect: `run` does that.
    """
    from rich.console import Console

    from statek_sim.analysis.read import NO_PRICES, analyse
    from statek_sim.metering.pricing import load_prices
    from statek_sim.reporting.artifact import write_artifact
    from statek_sim.reporting.usage_json import usage_json_text
    from statek_sim.reporting.usage_markdown import usage_markdown
    from statek_sim.reporting.usage_terminal import turn_lines, usage_lines
    from statek_sim.suite.run import chosen, nothing_chosen, run_one

    check_writable(json_file=json_file, folder=None)
    check_writable(json_file=markdown_file, folder=None)
    price_list = NO_PRICES if prices is None else load_prices(prices)
    scenarios = loaded(paths)
    pairs = chosen(scenarios, profiles=[profile], select=select, tags=tag or ())
    if not pairs:
        raise BadInput(nothing_chosen(scenarios, select=select, tags=tag or ()))
    results = [run_one(scenario, name, preset=preset) for scenario, name in pairs]
    analysis = analyse(results, prices=price_list, preset=preset)
    console = Console()
    shown = (
        [line for use in analysis.scenarios for line in turn_lines(use, width=console.width)]
        if turns
        else usage_lines(analysis, width=console.width, every=every)
    )
    for line in shown:
        console.print(line, soft_wrap=True, highlight=False)
    if json_file is not None:
        write_artifact(json_file, usage_json_text(analysis))
    if markdown_file is not None:
        write_artifact(markdown_file, usage_markdown(analysis))
