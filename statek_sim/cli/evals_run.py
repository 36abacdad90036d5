"""`statek-sim evals run`: which parts of a harness earn their keep, for a model, and whether the difference is real."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import json
import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statek_sim.cli.app import ExecutorOption
from statek_sim.cli.evals import EvalOption, EvalPaths, evals, loaded_evals
from statek_sim.cli.inputs import check_outputs, say
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from statek_sim.agent.budget import Prices
    from statek_sim.evals.summary import Summary

ModelOption = Annotated[
    str,
    typer.Option(
        metavar="PROFILE", help="A shipped profile (see evals models), or the path of a .toml file."
    ),
]
ArmsOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ARM",
        help="ablation (default: all parts, each one taken away, none), all (every set of parts, with Shapley shares), "
        "full, bare, no-PART, or parts joined by +; @VARIANT behind it for document or forge (repeatable).",
    ),
]
SeedsOption = Annotated[int, typer.Option(metavar="N", help="Runs of each scenario in each arm.")]
JsonOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON, too.")
]
MarkdownOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the report as Markdown, too.")
]
JunitOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a test case per scenario and arm.")
]
PriceOption = Annotated[
    str | None,
    typer.Option(
        metavar="IN:OUT", help="US dollars per million tokens of prompts and completions: 0.15:0.6."
    ),
]
BaselineOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Exit 1 when scenarios that this baseline had right are right less often."
    ),
]
UpdateOption = Annotated[
    Path | None, typer.Option("--update-baseline", metavar="FILE", help="Write the runs down as a baseline.")
]
DEFAULT_MODEL = "ministral-3-8b-instruct"


@evals.command()
def run(
    paths: EvalPaths = None,
    model: ModelOption = DEFAULT_MODEL,
    arms: ArmsOption = None,
    seeds: SeedsOption = 10,
    only: EvalOption = None,
    json_file: JsonOption = None,
    markdown: MarkdownOption = None,
    junit: JunitOption = None,
    price: PriceOption = None,
    baseline: BaselineOption = None,
    update_baseline: UpdateOption = None,
    executor: ExecutorOption = None,
) -> None:
    """Run the suite in several arms and say what differs.

    All arms share their random numbers: the same scenario and seed meet the same model. Equal inputs give equal bytes,
    with any executor. Exits 1 when a baseline is not held.
    """
    from statek_sim.evals.arms import parse_arms
    from statek_sim.evals.baseline import baseline_text, held_against, read_baseline
    from statek_sim.evals.experiment import Experiment, run_experiment
    from statek_sim.evals.models.profile_file import load_profile
    from statek_sim.evals.summary import summarised
    from statek_sim.executors.choose import executor_for
    from statek_sim.reporting.artifact import write_artifact

    check_outputs(
        {"--json": json_file, "--markdown": markdown, "--junit": junit, "--update-baseline": update_baseline}
    )
    before = None if baseline is None else read_baseline(baseline)
    prices = _prices(price)
    experiment = Experiment(
        suite=loaded_evals(paths, only),
        profile=load_profile(model),
        arms=parse_arms(arms or ["ablation"]),
        seeds=seeds,
    )
    with executor_for(executor) as working:
        outcomes = run_experiment(experiment, working, progress())
    summary = summarised(experiment, outcomes)
    _print(summary, prices)
    _write(summary, prices, json_file=json_file, markdown=markdown, junit=junit)
    if update_baseline is not None:
        write_artifact(update_baseline, baseline_text(experiment, outcomes))
    if before is not None:
        broken = held_against(before, experiment, outcomes, name=str(baseline))
        say(broken.lines)
        if broken.failed:
            raise typer.Exit(1)


@evals.command()
def schema() -> None:
    """Print the JSON Schema of what `evals run --json` writes."""
    from statek_sim.reporting.evals_json import evals_schema

    typer.echo(json.dumps(evals_schema(), indent=2))


def progress() -> Callable[[int, int], None]:
    """Return what shows how far an experiment is, where somebody looks."""
    if not sys.stderr.isatty():
        return lambda _done, _of: None

    def show(done: int, of: int) -> None:
        text = f"\r{done:,} of {of:,} runs" if done < of else "\r" + " " * 40 + "\r"
        typer.echo(text, nl=False, err=True)

    return show


def _prices(text: str | None) -> Prices | None:
    from statek_sim.agent.budget import Prices

    if text is None:
        return None
    prompt, colon, completion = text.partition(":")
    try:
        found = Prices(prompt=Decimal(prompt), completion=Decimal(completion))
    except InvalidOperation:
        found = None
    amounts = () if found is None else (found.prompt, found.completion)
    if found is None or not colon or not all(one.is_finite() and one >= 0 for one in amounts):
        raise BadInput(
            f"--price {text!r}: expected two numbers of dollars per million tokens, such as 0.15:0.6"
        )
    return found


def _print(summary: Summary, prices: Prices | None) -> None:
    from statek_sim.reporting.evals_tables import evals_tables, table_lines

    for table in evals_tables(summary, prices):
        say([*table_lines(table), ""])


def _write(
    summary: Summary,
    prices: Prices | None,
    *,
    json_file: Path | None,
    markdown: Path | None,
    junit: Path | None,
) -> None:
    from statek_sim.reporting.artifact import write_artifact
    from statek_sim.reporting.evals_json import evals_json_text
    from statek_sim.reporting.evals_junit import evals_junit
    from statek_sim.reporting.evals_tables import evals_tables, table_markdown

    if json_file is not None:
        write_artifact(json_file, evals_json_text(summary))
    if markdown is not None:
        lines = [line for table in evals_tables(summary, prices) for line in table_markdown(table)]
        write_artifact(markdown, "\n".join(lines))
    if junit is not None:
        write_artifact(junit, evals_junit(summary))
