"""`statek-sim usage`: show the token usage of scenarios, counted in five ways, and explain the differences."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statek_sim.cli import options
from statek_sim.cli.app import app
from statek_sim.cli.inputs import check_outputs, loaded, say, show, write_outputs
from statek_sim.cli.options import flag, option
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from rich.text import Text

    from statek_sim.analysis.corpus_model import CorpusTable
    from statek_sim.scenario.schema import Profile, Scenario
    from statek_sim.suite.result import ScenarioResult
    from statek_sim.usage.breakdown import UsageAnalysis
    from statek_sim.usage.tokenizers import TokenizerRegistry


CorpusOption = Annotated[
    bool,
    flag("Instead of scenarios, use a dialogue that is written in 15 languages and text types.", "--corpus"),
]
ModelOption = Annotated[
    str | None,
    option("NAME", "With --corpus: the agent's model, which selects the tokenizer. Default: gpt-4o."),
]
ProfileOption = Annotated[str, option("P", "Behaviour profile; scenarios that do not list it are skipped.")]
TurnsOption = Annotated[bool, flag("Show each turn in the chosen scenarios.", "--turns")]
EveryOption = Annotated[
    bool, flag("List every scenario, not only those with the largest differences.", "--all")
]


@app.command()
def usage(
    paths: options.Paths = None,
    corpus: CorpusOption = False,
    model: ModelOption = None,
    profile: ProfileOption = "docs",
    preset: options.PresetOption = None,
    watchdog: options.WatchdogOption = options.WATCHDOG,
    select: options.SelectOption = None,
    tag: options.TagOption = None,
    turns: TurnsOption = False,
    every: EveryOption = False,
    prices: options.PricesOption = None,
    tokenizer: options.TokenizerOption = None,
    json_file: options.JsonFileOption = None,
    markdown_file: options.MarkdownFileOption = None,
) -> None:
    """Show estimated, measured and reported tokens for scenarios.

    Does not check the scenarios' expectations; use `run` for that. Exits 1 if the watchdog kills a run.

    Example: statek-sim usage --corpus
    """
    if corpus and (paths or select or tag or preset):
        raise BadInput(
            "--corpus: remove PATH, --select, --tag and --preset; the corpus has its own scenarios and limits"
        )
    if model is not None and not model.strip():
        raise BadInput("--model: expected a model name, found only spaces")
    if model is not None and not corpus:
        raise BadInput("--model requires --corpus; scenarios name their own models")
    check_outputs({"--json": json_file, "--markdown": markdown_file})
    from statek_sim.analysis.corpus_model import corpus_table
    from statek_sim.analysis.run_usage import NO_PRICES, analyse
    from statek_sim.reporting.usage import corpus_markdown, usage_json, usage_markdown
    from statek_sim.usage.pricing import load_prices
    from statek_sim.usage.tokenizers import registry_of

    price_list = NO_PRICES if prices is None else load_prices(prices)
    registry = registry_of(tokenizer or ())
    pairs = _corpus(model or "gpt-4o", profile) if corpus else _chosen(paths, profile, select, tag or ())
    results = _results(pairs, preset, registry, watchdog)
    failed = next((result.record.error for result in results if result.record.error is not None), None)
    if corpus and failed is not None:
        raise BadInput(f"--model {model!r}: {failed.message.splitlines()[0]}")
    analysis = analyse(results, prices=price_list, tokenizers=registry, preset=preset)
    table = corpus_table(analysis) if corpus else None
    show(lambda width: _lines(analysis, table, width, turns=turns, every=every))
    above = "" if table is None else f"{corpus_markdown(table)}\n"
    write_outputs(
        (json_file, lambda: usage_json(analysis, table)),
        (markdown_file, lambda: above + usage_markdown(analysis)),
    )
    killed = _killed(results)
    if killed:
        say(killed, err=True)
        raise typer.Exit(1)


def _results(
    pairs: Sequence[tuple[Scenario, Profile]],
    preset: str | None,
    registry: TokenizerRegistry | None,
    watchdog: str,
) -> list[ScenarioResult]:
    """Run the scenarios without checking expectations."""
    from statek_sim.executors.limits import parse_watchdog
    from statek_sim.suite.run import run_one
    from statek_sim.suite.watched import run_watched

    run = partial(run_one, preset=preset, tokenizers=registry)
    return list(run_watched(pairs, run, parse_watchdog(watchdog)))


def _killed(results: Sequence[ScenarioResult]) -> list[str]:
    """Return a line for each scenario killed by the watchdog."""
    from statek_sim.suite.watched import KILLED

    errors = {result.id: result.record.error for result in results}
    return [f"{name}: {error.message}" for name, error in errors.items() if error and error.type == KILLED]


def _chosen(
    paths: Sequence[Path] | None, profile: str, select: str | None, tags: Sequence[str]
) -> tuple[tuple[Scenario, Profile], ...]:
    from statek_sim.suite.run import chosen, nothing_chosen, profile_known

    scenarios = loaded(paths)
    everything = chosen(scenarios, select=select, tags=tags)
    known = profile_known(profile)
    pairs = tuple(pair for pair in everything if pair[0].under(known) == pair[1])
    if not pairs:
        of_profile = [profile] if everything else None
        raise BadInput(nothing_chosen(scenarios, profiles=of_profile, select=select, tags=tags))
    return pairs


def _corpus(model: str, profile: str) -> tuple[tuple[Scenario, Profile], ...]:
    from statek_sim.analysis.corpus_model import corpus_scenarios
    from statek_sim.suite.run import profile_known

    known = profile_known(profile)
    return tuple((scenario, known) for scenario in corpus_scenarios(model))


def _lines(
    analysis: UsageAnalysis, table: CorpusTable | None, width: int, *, turns: bool, every: bool
) -> Iterable[Text]:
    from statek_sim.reporting.usage import corpus_lines, turn_lines, usage_lines

    if table is not None:
        return corpus_lines(table, width=width)
    if turns:
        return [line for use in analysis.scenarios for line in turn_lines(use, width=width)]
    return usage_lines(analysis, width=width, every=every)
