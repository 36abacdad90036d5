"""`statek-sim conformance`: run scenarios on the real statek too and compare."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from statek_sim.cli.app import AlsoPaths, ExecutorOption, Paths, app
from statek_sim.cli.inputs import check_writable, loaded, say

RandomOption = Annotated[
    int,
    typer.Option(
        metavar="COUNT",
        min=0,
        help="Compare this many random examples as well; with pytest-statek[hypothesis].",
    ),
]


@app.command()
def conformance(
    python: Annotated[
        list[str],
        typer.Option(
            metavar="PATH", show_default=False, help="An interpreter that has statek installed (repeatable)."
        ),
    ],
    paths: Paths = None,
    scenarios: AlsoPaths = None,
    random: RandomOption = 0,
    random_seed: Annotated[
        int,
        typer.Option(
            metavar="NUMBER", min=0, help="Which random examples; the same number, the same examples."
        ),
    ] = 0,
    executor: ExecutorOption = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the numbers as JSON to this file.")
    ] = None,
) -> None:
    """Run scenarios on the real statek too and compare.

    Without --executor each interpreter has a process; with one, its workers need every interpreter at the same path.
    Exits 1 when something differs that is not declared.
    """
    from statek_sim.conformance.declared import load_declarations
    from statek_sim.conformance.matrix import run_matrix
    from statek_sim.conformance.randomised import need_hypothesis, run_random
    from statek_sim.conformance.report import (
        matrix_json,
        matrix_lines,
        random_lines,
        table_lines,
        unknown_declarations,
    )
    from statek_sim.executors.choose import executor_for
    from statek_sim.reporting.artifact import write_artifact

    check_writable(json_file=json_file, folder=None)
    if random:
        need_hypothesis()
    places = [*(paths or ()), *(scenarios or ())]
    chosen = loaded(places)
    declarations = load_declarations()
    with ExitStack() as stack:
        workers = None if executor is None else stack.enter_context(executor_for(executor))
        matrices = run_matrix(python, chosen, declarations, workers)
        say(table_lines(matrices))
        say(matrix_lines(matrices))
        lost = [] if places else list(unknown_declarations(declarations, (s.id for s in chosen), matrices))
        say((f"declared.yaml: {line}" for line in lost), err=True)
        runs = run_random(python, random, random_seed, workers) if random else ()
    say(random_lines(runs))
    if json_file is not None:
        write_artifact(json_file, json.dumps(matrix_json(matrices, runs), indent=2) + "\n")
    if lost or any(matrix.failed for matrix in matrices) or any(run.differing for run in runs):
        raise typer.Exit(1)
