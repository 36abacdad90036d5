"""`statek-sim evals`: the group; its commands are in modules of their own."""

from __future__ import annotations

import typer

from statek_sim.cli.app import app

evals = typer.Typer(help="Measure what a harness is worth, on simulated weak models.", no_args_is_help=True)
app.add_typer(evals, name="evals")
