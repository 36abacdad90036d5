"""`statek-sim validate`: check files without running them."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statek_sim.cli import options
from statek_sim.cli.app import app
from statek_sim.cli.inputs import check_json, say, written_as_json
from statek_sim.cli.options import argument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statek_sim.scenario.problem import Problem


@app.command()
def validate(
    paths: Annotated[list[Path], argument("PATH", "Scenario and eval files, or folders.")],
    json_file: options.JsonOption = None,
) -> None:
    """Check scenario and eval files without running them.

    Checks that your own tools and plugins exist, without importing them. Exits 2 if a file has a problem.

    Example: statek-sim validate tests/scenarios
    """
    from statek_sim.scenario.load import LoadResult, load_paths
    from statek_sim.scenario.tool_modules import missing_tools

    check_json(json_file)
    evals, bad_evals, others = _evals_among(paths)
    found = load_paths(others) if others else LoadResult((), ())
    wrong = (*found.problems, *missing_tools(found.scenarios), *bad_evals)
    problems = [
        {
            "path": str(problem.path),
            "line": problem.line,
            "column": problem.column,
            "message": problem.message,
        }
        for problem in wrong
    ]
    document = {
        "schema": "statek-sim/validation@1",
        "valid": not problems,
        "scenarios": len(found.scenarios),
        "evals": evals,
        "problems": problems,
    }
    if not written_as_json(json_file, document):
        say(map(str, wrong), err=True)
        if not wrong:
            typer.echo(f"{len(found.scenarios)} valid{f', {evals} evals' if evals else ''}")
    if wrong:
        raise typer.Exit(2)


def _evals_among(paths: Sequence[Path]) -> tuple[int, Sequence[Problem], list[Path]]:
    """Return the number of evals at or under the paths, the problems found, and the paths that contain other files."""
    from statek_sim.scenario.files import find_files, is_eval_file

    files = [(path, find_files([path])[0]) for path in paths]
    evals = [file for _, inside in files for file in inside if is_eval_file(file)]
    others = [path for path, inside in files if not inside or not set(inside) <= set(evals)]
    if not evals:
        return 0, (), others
    from statek_sim.evals.suite import load_paths

    loaded = load_paths(evals)
    return len(loaded.evals), loaded.problems, others
