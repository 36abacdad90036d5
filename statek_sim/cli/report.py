"""`statek-sim report`: run scenarios and write one page about them."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statek_sim.cli.app import Paths, PresetOption, ProfileOption, SeedOption, SelectOption, TagOption, app
from statek_sim.cli.inputs import check_writable, loaded
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.analysis.corpus.table import CorpusTable


@app.command()
def report(
    paths: Paths = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the page goes.")
    ] = Path("report.html"),
    profile: ProfileOption = None,
    preset: PresetOption = None,
    seed: SeedOption = None,
    select: SelectOption = None,
    tag: TagOption = None,
    corpus: Annotated[
        bool,
        typer.Option(
            "--corpus/--no-corpus",
            help="Show how far the estimate is off by language and kind of text, too; takes a few seconds.",
        ),
    ] = True,
) -> None:
    """Run scenarios and write one page about them.

    One HTML file that needs no other and asks no server for anything. Exits 1 when a scenario fails; the page is
    written all the same.
    """
    from statek_sim.reporting.model import build_report
    from statek_sim.reporting.page.data import page_data
    from statek_sim.reporting.page.template import write_page
    from statek_sim.reporting.wording import verdict
    from statek_sim.suite.run import chosen, nothing_chosen, run_one

    check_writable(json_file=output, folder=None)
    scenarios = loaded(paths)
    pairs = chosen(scenarios, profiles=profile or None, select=select, tags=tag or ())
    if not pairs:
        raise BadInput(nothing_chosen(scenarios, profiles=profile, select=select, tags=tag or ()))
    results = [run_one(scenario, name, preset=preset, seed=seed) for scenario, name in pairs]
    told = build_report(results, preset=preset, seed=seed, statements=None)
    write_page(page_data(results, told, corpus=_corpus() if corpus else None), output)
    typer.echo(f"{output}: {verdict(told.overall)}")
    if told.overall.failed:
        raise typer.Exit(1)


def _corpus() -> CorpusTable:
    """Run the corpus."""
    from statek_sim.analysis.corpus.scenarios import corpus_scenarios
    from statek_sim.analysis.corpus.table import corpus_table
    from statek_sim.analysis.read import analyse
    from statek_sim.suite.run import run_one

    return corpus_table(analyse(run_one(scenario, "docs") for scenario in corpus_scenarios()))
