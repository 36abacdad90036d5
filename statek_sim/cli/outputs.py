"""No command writes onto a file that another of its options or arguments names.

Here for all commands at once, so that a new one cannot forget it. A parameter that is not among `OUTPUTS` counts as
read, unless it is one of `WORDS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, Final

from statek_sim.errors import BadInput

OUTPUTS: Final = (
    "--html",
    "--journal",
    "--json",
    "--junit",
    "--markdown",
    "--openmetrics",
    "--update-baseline",
)
"""Options that name a file to be written."""

WORDS: Final = (
    "--eval",
    "--name",
    "--profile",
    "--scenario",
    "--select",
    "--tag",
    "job",
    "run",
    "folder",
    "--save",
)
"""What names no file that is read, even where one is called so: `jobs show main --json main` may be said twice."""

IN_PLACE: Final = ("--update-baseline", "--baseline")
"""An output and an input that may be one file: a baseline is held against, and then written anew."""


def kept_apart(command: Any) -> None:
    """Make a command, and all those of a group, refuse to write onto what it reads before it does anything."""
    for subcommand in vars(command).get("commands", {}).values():
        kept_apart(subcommand)
        if subcommand.callback is not None:
            subcommand.callback = _checked(subcommand.callback, subcommand.params)


def _checked(callback: Callable[..., object], parameters: Sequence[Any]) -> Callable[..., object]:
    names = {parameter.name: parameter.opts[0] for parameter in parameters}

    @wraps(callback)
    def checked(**values: object) -> object:
        check_apart({names[name]: value for name, value in values.items() if name in names})
        return callback(**values)

    return checked


def check_apart(given: Mapping[str, object]) -> None:
    """Raise BadInput for a file to be written that is read; `given` has values by option or argument.

    Links are followed. A file inside a folder that is read may be written, and so may a pipe.
    """
    read = {
        os.path.realpath(text): source
        for source, value in given.items()
        if source not in (*OUTPUTS, *WORDS)
        for text in _texts(value)
        if os.path.isfile(text)
    }
    for option in OUTPUTS:
        for text in _texts(given.get(option)):
            source = read.get(os.path.realpath(text))
            if source is not None and (option, source) != IN_PLACE:
                reader = source if source.startswith("-") else "this command"
                raise BadInput(f"{option} {text}: {reader} reads it; name another file to write")


def _texts(value: object) -> Iterator[str]:
    """Yield the texts and paths among an option's values."""
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, str | os.PathLike):
            yield os.fspath(one)
