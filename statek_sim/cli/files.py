"""`statek-sim validate`, `schema` and `suites`: look at scenario files without running them."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from statek_sim.cli.app import Paths, app
from statek_sim.cli.inputs import loaded, proven, say
from statek_sim.errors import BadInput


@app.command()
def validate(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH", show_default=False, help="Scenario files or folders.")
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON on standard output.")
    ] = False,
) -> None:
    """Check scenario files without running them.

    Tools and parts of your own are looked for, not imported. Exits 2 when something is wrong with them.
    """
    from statek_sim.scenario.load import load_paths
    from statek_sim.scenario.tool_modules import missing_tools

    found = load_paths(paths)
    wrong = (*found.problems, *missing_tools(found.scenarios))
    if as_json:
        problems = [
            {
                "path": str(problem.path),
                "line": problem.line,
                "column": problem.column,
                "message": problem.message,
            }
            for problem in wrong
        ]
        reasons = {
            "schema": "statek-sim/validation@1",
            "valid": not problems,
            "scenarios": len(found.scenarios),
            "problems": problems,
        }
        typer.echo(json.dumps(reasons, indent=2))
    else:
        say(map(str, wrong), err=True)
        if not wrong:
            typer.echo(f"{len(found.scenarios)} valid")
    if wrong:
        raise typer.Exit(2)


@app.command()
def schema(
    policy: Annotated[
        bool, typer.Option("--policy", help="Of the gate's policy files instead, which are TOML.")
    ] = False,
    baseline: Annotated[
        bool, typer.Option("--baseline", help="Of the gate's baseline files instead.")
    ] = False,
) -> None:
    """Print the JSON Schema of scenario files."""
    from statek_sim.gate.baseline_file import baseline_schema
    from statek_sim.gate.policy_text import policy_schema
    from statek_sim.scenario.jsonschema import json_schema

    if policy and baseline:
        raise BadInput("--policy and --baseline: expected one of them; each prints a schema of its own")
    made = policy_schema() if policy else baseline_schema() if baseline else json_schema()
    typer.echo(json.dumps(made, indent=2))


@app.command()
def suites(
    paths: Paths = None,
    coverage: Annotated[
        bool,
        typer.Option(
            "--coverage",
            help="List the normative statements of STATEK's documents and the scenarios that prove them; exits 1 "
            "when one has none, or when a scenario names an unknown one.",
        ),
    ] = False,
) -> None:
    """List suites with their numbers of scenarios and runs."""
    from statek_sim.suite.listing import coverage_problems, statement_lines, suite_lines

    scenarios = loaded(paths)
    if not coverage:
        say(suite_lines(scenarios))
        return
    statements, covered = proven(scenarios)
    say(statement_lines(statements, covered))
    say(coverage_problems(covered), err=True)
    if not covered.complete:
        raise typer.Exit(1)
