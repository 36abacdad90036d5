"""The command-line application: commands, standard streams and exit codes."""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn, Protocol

import typer
from typer.core import TyperGroup

from statek_sim.cli.options import flag
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.executors.limits import GARBAGE

HEADINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "Scenarios": ("init", "run", "validate", "list", "trace"),
    "Limits, tokens and costs": ("usage", "limits", "gate"),
    "Exploration, upgrades and stored jobs": ("explore", "compare", "jobs"),
    "Agents that call tools": (
        "evals",
        "guards",
        "rescue",
        "metrics",
    ),
    "Models and clients": ("cassette", "serve"),
}
"""The headings in `statek-sim --help`, each with its commands."""

_MODULES: Final[Mapping[str, str]] = {"list": "listing"}
"""Modules whose names differ from their commands'."""


class HelpText(Protocol):
    """The methods of click's help formatter that `Commands` uses."""

    width: int

    def section(self, name: str) -> AbstractContextManager[None]:
        """Start a section with a heading."""

    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None:
        """Write rows of names and descriptions."""


class Commands(TyperGroup):
    """A command group that lists its commands under headings in the help; commands without a heading come last."""

    def format_commands(self, ctx: object, formatter: HelpText) -> None:
        """Add the command list to the help."""
        listed = {name for names in HEADINGS.values() for name in names}
        rest = tuple(name for name in self.commands if name not in listed)
        widest = max(map(len, self.commands))
        for heading, names in (*HEADINGS.items(), *([("More", rest)] if rest else [])):
            with formatter.section(heading):
                formatter.write_dl(
                    [(name.ljust(widest), self._summary(name, widest, formatter)) for name in names]
                )

    def _summary(self, name: str, widest: int, formatter: HelpText) -> str:
        return self.commands[name].get_short_help_str(formatter.width - widest - 6)


def load_commands(arguments: Sequence[str] = ()) -> None:
    """Import the module for the command in `arguments[0]`, or all command modules if it is not a command."""
    names = [name for listed in HEADINGS.values() for name in listed]
    for name in arguments[:1] if arguments and arguments[0] in names else names:
        importlib.import_module(f"statek_sim.cli.{_MODULES.get(name, name)}")


def as_options(arguments: Sequence[str], commands: Mapping[str, object]) -> list[str]:
    """Return the arguments with `help` replaced by `--help`, and `version` by `--version`."""
    match arguments:
        case ["help", *words]:
            return [*words, "--help"]
        case [group, "help", *words] if _inside(commands.get(group)):
            return [group, *words, "--help"]
        case ["version"] | ["-V"]:
            return ["--version"]
        case _:
            return list(arguments)


def unknown(words: Sequence[str], commands: Mapping[str, Any]) -> str | None:
    """Return the error message for the first word that is not a command, or None if all words are commands."""
    group = ""
    for word in words:
        if word.startswith("-") or not commands:
            return None
        if word not in commands:
            meant = suggestion(word, commands) if group else _meant(word, commands)
            listing = f"statek-sim help {group}".strip()
            return f"No such command {group + word!r}.{meant} `{listing}` lists them all"
        group, commands = f"{group}{word} ", _inside(commands[word])
    return None


def _inside(command: object) -> Mapping[str, Any]:
    """Return a group's commands, or an empty mapping if the command is not a group."""
    return getattr(command, "commands", {})


def _meant(word: str, commands: Mapping[str, object]) -> str:
    if Path(word).exists():
        return f" To run the file: `statek-sim run {word}`."
    for group, command in commands.items():
        if word in _inside(command):
            return f" Did you mean '{group} {word}'?"
    return suggestion(word, commands)


_DISTRIBUTION: Final = "pytest-statek"

app = typer.Typer(
    name="statek-sim",
    cls=Commands,
    help="Test LLM agents with a scripted LLM and a deterministic runtime.",
    epilog="`statek-sim help COMMAND` shows the options of a command. Exit codes: 0 success, 1 a check failed, "
    "2 bad input.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        try:
            version = importlib.metadata.version(_DISTRIBUTION)
        except importlib.metadata.PackageNotFoundError:
            version = "(not installed)"
        typer.echo(f"{_DISTRIBUTION} {version}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, flag("Show the version and exit.", "--version", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Test LLM agents with a scripted LLM and a deterministic runtime."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code; by default, use `sys.argv`."""
    if arguments is None:
        gc.set_threshold(*GARBAGE)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Agents may print any character; one that the terminal cannot show is escaped.
            stream.reconfigure(errors="backslashreplace")
    sys.exit(_exit_code(sys.argv[1:] if arguments is None else arguments))


def _exit_code(arguments: Sequence[str]) -> int | str | None:
    """Run a command and return its exit code; print bad input and system errors as one line."""
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
            # Flush here, where a full disk still gives an error message.
            sys.stdout.flush()
            return done.code
        return 0
    except (BadInput, OSError) as error:
        _drop_output()
        # The error may quote a file or a provider's answer, which may contain a key.
        from statek_sim.cassettes.redaction import without_keys  # noqa: PLC0415  # only needed after an error

        print(without_keys(error_line(error)), file=sys.stderr)
        return 2


def _check_not_empty(arguments: Sequence[str]) -> None:
    """Reject empty arguments, which come from unset shell variables. An empty path would mean the current folder."""
    for place, word in enumerate(arguments):
        before = arguments[place - 1] if place else ""
        if not word or (word.startswith("--") and word.endswith("=")):
            subject = word.rstrip("=") or (before if before.startswith("-") else f"argument {place + 1}")
            raise BadInput(f"{subject}: empty value; use `.` for the current folder")


def error_line(error: BadInput | OSError) -> str:
    """Return a one-line description of a bad input, file or connection error."""
    match error:
        case BrokenPipeError():
            return "standard output: the reader closed the pipe"
        case OSError(strerror=str(reason)):
            return f"{error.filename or 'standard output'}: {reason}"
    return str(error)


def _drop_output() -> None:
    """Discard output that cannot be written; otherwise Python retries at exit and prints a traceback."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _command(arguments: Sequence[str] = ()) -> Callable[..., object]:
    """Return the command line, with the modules that `arguments` need loaded and Python types hidden in the help."""
    load_commands(arguments)
    command = typer.main.get_command(app)
    _name_only(command)
    return command


def _name_only(command: object) -> None:
    for subcommand in vars(command).get("commands", {}).values():
        _name_only(subcommand)
        for parameter in subcommand.params:
            if parameter.param_type_name == "argument":
                # typer (0.29) calls this method, and has no setting for it.
                vars(parameter)["display_type_rich"] = _no_type


def _no_type(ctx: object) -> None:
    """Hide an argument's type."""
