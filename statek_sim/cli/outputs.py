"""No command writes onto a file that it was given to read.

Here for all commands at once, so that a new one cannot forget it. A parameter that is not among `OUTPUTS` counts as
read, unless it is one of `WORDS`: presets, stores and models are texts that may name a file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Final

from statek_sim.errors import BadInput
from statek_sim.reporting.artifact import STANDARD_OUTPUT

OUTPUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "--html": (),
    "--journal": (),
    "--json": (),
    "--junit": (),
    "--markdown": (),
    "--openmetrics": (),
    "--report": ("report.json", "report.md", "report.html"),
    "--save": (),
    "--update-baseline": (),
    "folder": (),
}
"""What commands write, by option or argument; of a folder, the files in it that have fixed names."""

WORDS: Final = ("--eval", "--name", "--profile", "--scenario", "--select", "--tag", "job", "run")
"""What names no file, even where one is called so: `jobs show main --json main` may be said twice."""

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
    """Raise BadInput for a file to be written that is read; `given` has values by option or argument."""
    read = [
        (source, place)
        for source, value in given.items()
        if source not in OUTPUTS and source not in WORDS
        for text in _texts(value)
        for place in (text, text.partition("=")[2], text.removeprefix("sqlite:"))
        if os.path.exists(place) or text.startswith("sqlite:")
    ]
    for option, path in _written(given):
        for source, place in read:
            if (option, source) != IN_PLACE and _same(path, place):
                reader = source if source.startswith("-") else "this command"
                where = "" if place == str(path) else f" as {place}"
                raise BadInput(f"{option} {path}: {reader} reads it{where}; name another file to write")


def _written(given: Mapping[str, object]) -> Iterator[tuple[str, Path]]:
    """Yield options and the files that they name, or that are put into the folders that they name."""
    for option, names in OUTPUTS.items():
        for path in map(Path, _texts(given.get(option))):
            if path != STANDARD_OUTPUT:
                yield from ((option, path / name) for name in names) if names else [(option, path)]


def _texts(value: object) -> Iterator[str]:
    """Yield the texts and paths among an option's values."""
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, str | os.PathLike):
            yield os.fspath(one)


def _same(written: Path, read: str) -> bool:
    """Return whether both are one file; a pipe or a device may be read and written, and a store may yet be made."""
    # As they will be when folders on the way have been made: `new/../file` is `file`.
    path = Path(os.path.realpath(written))
    if path.exists() and not path.is_file():
        return False
    return path == Path(os.path.realpath(read)) or (
        path.exists() and os.path.exists(read) and path.samefile(read)
    )
