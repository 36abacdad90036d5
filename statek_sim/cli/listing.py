"""`statek-sim list`: list suites, tools, presets, profiles and file formats."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import json
from typing import Annotated

import typer

from statek_sim.cli import options
from statek_sim.cli.app import app
from statek_sim.cli.inputs import loaded, say
from statek_sim.cli.options import flag
from statek_sim.errors import BadInput

listing = typer.Typer(
    invoke_without_command=True,
)
app.add_typer(listing, name="list")


@listing.callback()
def overview(context: typer.Context) -> None:
    """List suites, tools, presets, profiles and JSON Schemas.

    Without a subcommand, shows a summary.

    Example: statek-sim list suites
    """
    if context.invoked_subcommand is None:
        from statek_sim.suite.listing import overview_lines

        say(overview_lines(loaded(None)))


@listing.command()
def suites(paths: options.Paths = None) -> None:
    """List suites with their scenario and run counts.

    Example: statek-sim list suites scenarios/claims
    """
    from statek_sim.suite.listing import suite_lines

    say(suite_lines(loaded(paths)))


@listing.command()
def tools() -> None:
    """List the built-in tools that scenarios can use.

    Example: statek-sim list tools
    """
    from statek_sim.suite.listing import tool_lines

    say(tool_lines())


@listing.command()
def presets() -> None:
    """List the built-in presets with their settings.

    Example: statek-sim list presets
    """
    from statek_sim.suite.listing import preset_lines

    say(preset_lines())


@listing.command()
def profiles() -> None:
    """List the rules that differ between behaviour profiles.

    Shows the value of each rule in every profile.

    Example: statek-sim list profiles
    """
    from statek_sim.suite.listing import profile_lines

    say(profile_lines())


@listing.command()
def schema(
    policy: Annotated[bool, flag("Print the schema of gate policy files (TOML).", "--policy")] = False,
    baseline: Annotated[bool, flag("Print the schema of gate baseline files.", "--baseline")] = False,
    evals: Annotated[bool, flag("Print the schema of eval files.", "--evals")] = False,
) -> None:
    """Print a file format's JSON Schema.

    Default: the scenario format.

    Example: statek-sim list schema > scenario.schema.json
    """
    from statek_sim.evals.schema import evals_schema
    from statek_sim.gate.baseline import baseline_schema
    from statek_sim.gate.policy import policy_schema
    from statek_sim.scenario.locate import json_schema

    schemas = {
        "--policy": (policy, policy_schema),
        "--baseline": (baseline, baseline_schema),
        "--evals": (evals, evals_schema),
    }
    options = [name for name, (wanted, _) in schemas.items() if wanted]
    if len(options) > 1:
        raise BadInput(f"{' and '.join(options)}: use only one of these options")
    made = schemas[options[0]][1]() if options else json_schema()
    typer.echo(json.dumps(made, indent=2))
