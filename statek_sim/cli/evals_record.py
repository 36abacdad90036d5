"""`statek-sim evals record`: let a real model work on evals once, and keep the conversations."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from statek_sim.cli.cassette_record import live_transport
from statek_sim.cli.evals import EvalOption, EvalPaths, evals, loaded_evals
from statek_sim.errors import BadInput

_ARMS: Final = ("full", "bare")

ModelOption = Annotated[str, typer.Option(metavar="NAME", help="The model, as the endpoint calls it.")]
FolderOption = Annotated[Path, typer.Option(metavar="FOLDER", help="Where the recordings go.")]
ArmsOption = Annotated[
    list[str] | None,
    typer.Option(metavar="ARM", help="As for evals run (repeatable); default: full and bare."),
]
SeedsOption = Annotated[int, typer.Option(metavar="N", min=1, help="Runs of each eval in each arm.")]
ModeOption = Annotated[
    str, typer.Option(metavar="once|all|rewrite", help="What to do with recordings that are there already.")
]


@evals.command()
def record(
    model: ModelOption,
    cassettes: FolderOption,
    paths: EvalPaths = None,
    arms: ArmsOption = None,
    seeds: SeedsOption = 1,
    only: EvalOption = None,
    mode: ModeOption = "once",
) -> None:
    """Let a real model work on evals, and keep what it said.

    OPENAI_API_URL is the whole address of a chat endpoint that speaks OpenAI's format, OPENAI_API_KEY its key.
    `evals run --cassettes FOLDER` replays them.
    """
    from statek_sim.cassettes.session import RecordMode, record_mode
    from statek_sim.evals.arms import parse_arms
    from statek_sim.evals.recorded import RecordedModel, recorded_run

    chosen = record_mode(mode)
    if chosen is RecordMode.NONE:
        raise BadInput("--mode none: nothing would be recorded; replay with statek-sim evals run --cassettes")
    live = live_transport()
    heard = RecordedModel(model, cassettes)
    for scenario in loaded_evals(paths, only):
        for seed in range(seeds):
            for arm in parse_arms(arms or _ARMS):
                outcome, exchanges = recorded_run(
                    scenario, seed, arm, heard, mode=chosen, environment=os.environ, live=live
                )
                right = "right" if outcome.passed else "; ".join(outcome.problems) or outcome.stop
                typer.echo(f"{scenario.id} [{arm.name}] seed {seed}: {exchanges} recorded; {right}")
