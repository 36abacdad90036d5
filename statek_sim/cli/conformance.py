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
    from statek_sim.conformance.report import (
        matrix_json,
        matrix_lines,
        table_lines,
        unknown_declarations,
    )
    from statek_sim.executors.choose import executor_for
    from statek_sim.reporting.artifact import write_artifact

    check_writable(json_file=json_file, folder=None)
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
    if json_file is not None:
        write_artifact(json_file, json.dumps(matrix_json(matrices), indent=2) + "\n")
    if lost or any(matrix.failed for matrix in matrices):
        raise typer.Exit(1)
