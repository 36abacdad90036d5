"""Running the command line: its process's streams, search path and exit code."""

from __future__ import annotations

import errno
import gc
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

import typer

from statek_sim.cli.app import app
from statek_sim.cli.commands import as_options, load_commands, unknown
from statek_sim.cli.outputs import kept_apart
from statek_sim.errors import BadInput
from statek_sim.executors.limits import GARBAGE

_WITHOUT_DOCSTRINGS: Final = 2
_DIGITS: Final = re.compile(
    r"Exceeds the limit \(\d+ digits\) for integer string conversion(?:: value has \d+ digits)?"
    r"(?:; use sys\.set_int_max_str_digits\(\) to increase the limit)?"
)
_NESTED: Final = re.compile(
    r"maximum recursion depth exceeded while (?:de|en)coding a JSON \w+(?: from a \w+(?: \w+)?)?"
)
_GONE: Final = "the working directory does not exist any more, change to a folder that does"
_LOOP: Final = re.compile(r"Symlink loop from '(.*)'", re.DOTALL)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line (default: this process's) and exit with its code."""
    if arguments is None:
        gc.set_threshold(*GARBAGE)
    here = _working_directory()
    if here is not None and here not in sys.path:
        # Tools and replies named `module:attribute` are found where the command is run, as with `python -m`.
        sys.path.insert(0, here)
    # Closed by who started this (`>&-`, some schedulers): nobody reads, which is no reason to fail.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # as long as the process
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Agents print what they like; a terminal that cannot show it gets its escape.
            stream.reconfigure(errors="backslashreplace")
    if sys.flags.optimize >= _WITHOUT_DOCSTRINGS:
        print(
            "statek-sim: Python runs without docstrings (-OO, PYTHONOPTIMIZE=2), which are the descriptions of tools: "
            "prompts and digests differ from those of other runs",
            file=sys.stderr,
        )
    sys.exit(_exit_code(sys.argv[1:] if arguments is None else arguments))


def _exit_code(arguments: Sequence[str]) -> int | str | None:
    """Run a command and return how to exit: the one place where an error of the outside world becomes a line."""
    try:
        try:
            _check_not_empty(arguments)
            command = _command(arguments)
            commands = vars(command)["commands"]
            words = as_options(arguments, commands)
            problem = unknown(words, commands)
            if problem is not None:
                raise BadInput(problem)
            command(args=words, prog_name="statek-sim")
        except SystemExit as done:
            code = done.code
        else:
            code = 0
        # Here, where a full disk is still an error that can be told.
        sys.stdout.flush()
        return code
    except (BadInput, OSError, ValueError, RuntimeError) as error:
        line = told(error)
        if line is None:
            raise
        _drop_output()
        # A file that is none of ours, or a provider's own words, may have a key in what is quoted of them.
        from statek_sim.cassettes.redaction import without_keys  # noqa: PLC0415  # where nothing is wrong nobody waits

        if _GONE not in line and _working_directory() is None:
            line = f"{line}; {_GONE}"
        print(without_keys(_in_our_words(line)), file=sys.stderr)
        return 2


def _check_not_empty(arguments: Sequence[str]) -> None:
    """Refuse an empty word, as from a shell's variable that is not set: as a path it would be the current folder."""
    for place, word in enumerate(arguments):
        before = arguments[place - 1] if place else ""
        if not word or (word.startswith("--") and word.endswith("=")):
            subject = word.rstrip("=") or (before if before.startswith("-") else f"argument {place + 1}")
            raise BadInput(f"{subject}: the value is empty; for a path, `.` is the current folder")


def _working_directory() -> str | None:
    """Return the folder where the command is run; None when it was deleted, which `--version` can do without."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None


def told(error: BaseException) -> str | None:
    """Return what a person should read about bad input, a file, a disk or a connection; None for a bug of ours."""
    match error:
        case BadInput():
            return str(error)
        case BrokenPipeError():
            return "standard output: nobody reads it any more"
        case FileNotFoundError(filename=None) if _working_directory() is None:
            return _GONE
        case OSError(filename=None, strerror=str(reason)):
            return f"standard output: {reason}"
        case OSError(errno=errno.ELOOP, filename=place):
            return f"{place}: a symbolic link that leads to itself"
        case OSError(strerror=str(reason), filename=place):
            return f"{place}: {reason}"
        case UnicodeDecodeError(object=content, start=start):
            return f"a file is not UTF-8: byte 0x{content[start]:02x} at {start}"
        case UnicodeEncodeError(object=text, start=start):
            return f"a text cannot be written as UTF-8: {text[start]!a} at {start}"
        case RuntimeError() if _LOOP.match(str(error)):
            # Python 3.11 and 3.12 say it so where pathlib resolves a path; later ones raise OSError.
            return _LOOP.sub(r"\1: a symbolic link that leads to itself", str(error))
        case ValueError() | RecursionError() if _in_our_words(str(error)) != str(error):
            return f"the input: {_in_our_words(str(error))}"
    return None


def _in_our_words(text: str) -> str:
    """Return a message without Python's advice to those who write programs."""
    return _NESTED.sub(
        "nested deeper than any document is read", _DIGITS.sub("a number has too many digits", text)
    )


def _drop_output() -> None:
    """Let what could not be written go: Python would try again at its end, and complain in its own words."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _command(arguments: Sequence[str] = ()) -> Callable[..., object]:
    """Return the command line, which writes onto nothing that it reads, with what `arguments` need of it.

    Its help names an argument by its metavar alone, without a Python type.
    """
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
    """Say nothing about an argument's type."""
