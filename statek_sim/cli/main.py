"""Running the command line: its process's streams, search path and exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

import typer

from statek_sim.cli.app import app
from statek_sim.errors import BadInput


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line (default: this process's) and exit with its code."""
    here = os.getcwd()
    if here not in sys.path:
        # Tools and replies named `module:attribute` are found where the command is run, as with `python -m`.
        sys.path.insert(0, here)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Agents print what they like; a terminal that cannot show it gets its escape.
            stream.reconfigure(errors="backslashreplace")
    try:
        _command()(args=None if arguments is None else list(arguments), prog_name="statek-sim")
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    sys.exit(0)


def _command() -> Callable[..., object]:
    """Return the command line; its help names an argument by its metavar alone, without a Python type."""
    command = typer.main.get_command(app)
    _name_only(command)
    return command


def _name_only(command: object) -> None:
    for subcommand in vars(command).get("commands", {}).values():
        _name_only(subcommand)
        for parameter in subcommand.params:
            if parameter.param_type_name == "argument":
                # typer (0.29) asks this method, and has no setting for it.
                vars(parameter)["display_type_rich"] = _no_type


def _no_type(ctx: object) -> None:
    """Say nothing about an argument's type."""
