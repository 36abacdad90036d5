"""Running the command line: its process's streams, search path and exit code."""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

import typer

from statek_sim.cli.app import app, as_options, load_commands, unknown
from statek_sim.cli.inputs import kept_apart
from statek_sim.errors import BadInput
from statek_sim.executors.limits import GARBAGE


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line (default: this process's) and exit with its code."""
    if arguments is None:
        gc.set_threshold(*GARBAGE)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Agents print any character; a terminal that cannot show one gets its escape.
            stream.reconfigure(errors="backslashreplace")
    sys.exit(_exit_code(sys.argv[1:] if arguments is None else arguments))


def _exit_code(arguments: Sequence[str]) -> int | str | None:
    """Run a command and return its exit code; bad input and errors of the operating system become one line."""
    try:
        here = os.getcwd()
        if here not in sys.path:
            # Tools and replies named `module:attribute` are found where the command is run, as with `python -m`.
            sys.path.insert(0, here)
        _check_not_empty(arguments)
        command = _command(arguments)
        commands = vars(command)["commands"]
        words = as_options(arguments, commands)
        problem = unknown(words, commands)
        if problem is not None:
            raise BadInput(problem)
        try:
            command(args=words, prog_name="statek-sim")
        except SystemExit as done:
            # Flushed here, where a full disk is still an error with a message.
            sys.stdout.flush()
            return done.code
        return 0
    except (BadInput, OSError, UnicodeDecodeError) as error:
        _drop_output()
        # The error may quote a file or a provider's answer, and these may hold a key.
        from statek_sim.cassettes.redaction import without_keys  # noqa: PLC0415  # only needed after an error

        print(without_keys(error_line(error)), file=sys.stderr)
        return 2


def _check_not_empty(arguments: Sequence[str]) -> None:
    """Refuse an empty argument, as an unset shell variable gives: as a path it would be the current folder."""
    for place, word in enumerate(arguments):
        before = arguments[place - 1] if place else ""
        if not word or (word.startswith("--") and word.endswith("=")):
            subject = word.rstrip("=") or (before if before.startswith("-") else f"argument {place + 1}")
            raise BadInput(f"{subject}: the value is empty; for a path, `.` is the current folder")


def error_line(error: BadInput | OSError | UnicodeDecodeError) -> str:
    """Return the line that describes bad input, or a problem with a file or a connection."""
    match error:
        case BrokenPipeError():
            return "standard output: the reader closed the pipe"
        case OSError(strerror=str(reason)):
            return f"{error.filename or 'standard output'}: {reason}"
        case UnicodeDecodeError(object=content, start=start):
            return f"a file is not UTF-8: byte 0x{content[start]:02x} at {start}"
    return str(error)


def _drop_output() -> None:
    """Discard output that cannot be written; otherwise Python tries again at exit and prints a traceback."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _command(arguments: Sequence[str] = ()) -> Callable[..., object]:
    """Return the command line with the modules that `arguments` need; help shows metavars without Python types."""
    load_commands(arguments)
    command = typer.main.get_command(app)
    _name_only(command)
    kept_apart(command)
    return command


def _name_only(command: object) -> None:
    for subcommand in vars(command).get("commands", {}).values():
        _name_only(subcommand)
        for parameter in subcommand.params:
            if parameter.param_type_name == "argument":
                # typer (0.29) asks this method, and has no setting for it.
                vars(parameter)["display_type_rich"] = _no_type


def _no_type(ctx: object) -> None:
    """Show nothing about an argument's type."""
