"""The paths that a command is given: none is empty, and none that it writes may be one that it reads.

Here for all commands at once, so that a new one cannot forget it. A parameter that is not among `OUTPUTS` counts as
read, unless it is one of `WORDS`: presets, stores and models are texts that may name a file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatch
from functools import wraps
from pathlib import Path
from typing import Any, Final

from statek_sim.errors import BadInput
from statek_sim.reporting.artifact import STANDARD_OUTPUT

_REPORTS: Final = ("report.json", "report.md", "report.html")
_SQLITE: Final = "sqlite:"
_OF_A_STORE: Final = ("", "-wal", "-shm", "-journal")

OUTPUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "--html": (),
    "--journal": (),
    "--json": (),
    "--junit": (),
    "--markdown": (),
    "--openmetrics": (),
    "--report": _REPORTS,
    "--save": (),
    "--update-baseline": (),
    "folder": (),
}
"""What commands write, by option or argument; of a folder, the files in it that have fixed names."""

INPUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "--baseline": (),
    "--cassettes": (),
    "--card": ("config.json",),
    "--check": (),
    "--file": (),
    "--policy": (),
    "--prices": ("*.csv", "*.txt"),
    "--scenarios": (),
    "--statek": (),
    "--tools": (),
    "--what-if": (),
    "corpus": (),
    "file": (),
    "new": (),
    "old": (),
    "path": (),
    "paths": (),
}
"""What commands read, by option or argument; of a folder, what is read in it and may be written as a report, too."""

WORDS: Final = ("--eval", "--name", "--profile", "--scenario", "--select", "--tag", "job", "run")
"""What names no file, even where one is called so: `jobs show main --json main` may be said twice."""

IN_PLACE: Final = {("--update-baseline", "--baseline")}
"""An output and an input that may be one file: a baseline is held against, and then written anew."""


def kept_apart(command: Any) -> None:
    """Make a command, and all those of a group, refuse to write onto what it reads before it does anything.

    So it does an empty path, which pathlib takes for the current folder: where a shell's variable is not set, that
    would be read, or written into.
    """
    inside = vars(command).get("commands", {})
    for subcommand in inside.values():
        kept_apart(subcommand)
    if not inside and command.callback is not None:
        command.callback = _checked(command.callback, command.params)
        for parameter in command.params:
            # The method that click, and typer's own copy of it, give what was typed to; neither has a hook for it.
            vars(parameter)["process_value"] = _not_empty(parameter.process_value, parameter)


def _not_empty(
    process: Callable[[object, object], object], parameter: Any
) -> Callable[[object, object], object]:
    name = parameter.opts[0]

    def processed(context: object, value: object) -> object:
        made = process(context, value)
        is_path = name in OUTPUTS or name in INPUTS or any(isinstance(one, Path) for one in _listed(made))
        if is_path and "" in _listed(value):
            subject = name if name.startswith("-") else (parameter.metavar or name).strip("[]")
            raise BadInput(
                f"{subject}: the path is empty; expected a file or a folder, `.` is the current one"
            )
        return made

    return processed


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _checked(callback: Callable[..., object], parameters: list[Any]) -> Callable[..., object]:
    names = {parameter.name: parameter.opts[0] for parameter in parameters}

    @wraps(callback)
    def checked(**values: object) -> object:
        check_apart({names[name]: value for name, value in values.items() if name in names})
        return callback(**values)

    return checked


def check_apart(given: Mapping[str, object]) -> None:
    """Raise BadInput for a file to be written that is read; `given` has values by option or argument."""
    for option, path in _written(given):
        for source, place in _read(given):
            where = None if (option, source) in IN_PLACE else _found(path, place, INPUTS.get(source, ()))
            if where is not None:
                reader = source if source.startswith("-") else "this command"
                raise BadInput(f"{option} {path}: {reader} reads it{where}; name another file to write")


def _written(given: Mapping[str, object]) -> Iterator[tuple[str, Path]]:
    """Yield options and the files that they name, or that are put into the folders that they name."""
    for option, names in OUTPUTS.items():
        for text in _texts(given.get(option)):
            path = Path(text)
            if path != STANDARD_OUTPUT:
                yield from ((option, path / name) for name in names) if names else [(option, path)]


def _read(given: Mapping[str, object]) -> Iterator[tuple[str, Path]]:
    """Yield options and arguments, and what their values name that is there: a file may be behind `MODEL=`, too."""
    for source, value in given.items():
        if source in OUTPUTS or source in WORDS:
            continue
        for text in _texts(value):
            # os.path takes any text, and says no to one that can be no path.
            yield from (
                (source, Path(place)) for place in (text, text.partition("=")[2]) if os.path.exists(place)
            )
            if text.startswith(_SQLITE):
                # Files of a store may have yet to be made, and what was committed last is in those beside it.
                yield from ((source, Path(text.removeprefix(_SQLITE) + end)) for end in _OF_A_STORE)


def _texts(value: object) -> Iterator[str]:
    """Yield the texts and paths among an option's values."""
    for one in _listed(value):
        if isinstance(one, str | os.PathLike):
            yield os.fspath(one)


def _found(path: Path, place: Path, names: tuple[str, ...]) -> str | None:
    """Return how `path` is found at `place`, a file or a folder in which such `names` are read; None if it is not."""
    # As they will be when folders on the way have been made: `new/../file` is `file`.
    written, read = Path(os.path.realpath(path)), Path(os.path.realpath(place))
    there = written.is_file()
    if written.exists() and not there:
        return None
    if written == read or (there and read.exists() and written.samefile(read)):
        return "" if str(place) == str(path) else f" as {place}"
    inside = there and read in written.parents and any(fnmatch(written.name.lower(), name) for name in names)
    return f" in {place}" if inside else None
