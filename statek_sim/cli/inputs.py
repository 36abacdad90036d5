"""Input and output that commands share: load scenarios, check files before a run, print and write results.

No command writes to a file that another of its options or arguments names; `kept_apart` checks this for all commands. A
parameter that is not among `OUTPUTS` counts as read, unless it is one of `WORDS`.
"""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from rich.text import Text

    from statek_sim.scenario.schema import Scenario


def say(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines on standard output, or with `err` on standard error, where API keys are removed."""
    for line in lines:
        typer.echo(_without_keys(line) if err else line, err=err)


def _without_keys(line: str) -> str:
    from statek_sim.cassettes.redaction import without_keys

    return without_keys(line)


def show(lines: Callable[[int], Iterable[Text]]) -> None:
    """Print the lines for the console's width, without further wrapping or colours."""
    from rich.console import Console

    console = Console()
    for line in lines(console.width):
        console.print(line, soft_wrap=True, highlight=False)


def write_outputs(*outputs: tuple[Path | None, Callable[[], object]]) -> None:
    """Write each file that was requested, texts as they are and documents as JSON; name all of them in one line."""
    from statek_sim.reporting.artifact import json_text, write_artifact

    written = []
    for path, text in outputs:
        if path is not None:
            made = text()
            write_artifact(path, made if isinstance(made, str) else json_text(made))
            written.append(str(path))
    if written:
        typer.echo(f"wrote {', '.join(written)}")


def loaded(paths: Sequence[Path] | None) -> tuple[Scenario, ...]:
    """Return the scenarios at or under `paths`, or the built-in ones."""
    from statek_sim.scenario.load import load_or_fail

    return load_or_fail(paths or [builtin_scenarios()])


def scenarios_among(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words that name no scenarios, and those that do: folders, and files that end in .yaml or .yml."""
    paths = [word for word in words if word.endswith((".yaml", ".yml")) or Path(word).is_dir()]
    return [word for word in words if word not in paths], paths


def builtin_scenarios() -> Path:
    """Return the folder of the built-in suites."""
    from statek_sim.suite.run import builtin_suites

    return builtin_suites()


def check_json(path: Path | None) -> None:
    """Raise BadInput for a file that `written_as_json` could not write."""
    from statek_sim.reporting.artifact import STANDARD_OUTPUT

    if path != STANDARD_OUTPUT:
        check_outputs({"--json": path})


def written_as_json(path: Path | None, document: Mapping[str, object]) -> bool:
    """Write a document as JSON to `path`, if given; return whether that was standard output."""
    from statek_sim.reporting.artifact import STANDARD_OUTPUT, json_text, write_artifact

    if path is not None:
        write_artifact(path, json_text(document))
    return path == STANDARD_OUTPUT


def check_once(paths: Sequence[Path]) -> None:
    """Raise BadInput for a file that is given twice, whose tasks would count twice."""
    places: dict[Path, Path] = {}
    for path in paths:
        before = places.setdefault(path.resolve(), path)
        if before is not path:
            raise BadInput(f"{path}: same file as {before}; name each file once")


def check_outputs(files: Mapping[str, Path | None]) -> None:
    """Raise BadInput for an option whose file cannot be written, and for two options with the same file."""
    options: dict[Path, str] = {}
    for option, path in files.items():
        if path is None:
            continue
        from statek_sim.reporting.artifact import check_writable

        check_writable(path)
        if path.exists() and not path.is_file():
            continue  # A pipe accepts several reports, one after the other.
        other = options.setdefault(path.resolve(), option)
        if other != option:
            raise BadInput(f"{other} and {option}: both name {path}; expected two files")


def check_required(given: Mapping[str, object], needed: object, name: str) -> None:
    """Raise BadInput for options without the one that they refine; `given` has their values by name."""
    for options, value in given.items():
        if value not in (None, False, ()) and not needed:
            raise BadInput(f"{options} {'require' if ' and ' in options else 'requires'} {name}")


def check_replaceable(path: Path, *, key: str, schema: str) -> None:
    """Raise BadInput for an existing file that is not a baseline, which the new baseline would replace.

    A baseline holds `schema`, in any version, under `key`. An empty file may be replaced.
    """
    from statek_sim.reporting.artifact import check_writable

    check_writable(path)
    kind = schema.partition("@")[0] + "@"
    if path.is_file() and path.stat().st_size and f'"{key}": "{kind}'.encode() not in path.read_bytes():
        raise BadInput(
            f"{path}: the file exists and is not a baseline (it has no {key!r} that starts with {kind!r}); "
            "name another file, or delete this one"
        )


OUTPUTS: Final = (
    "--html",
    "--journal",
    "--json",
    "--junit",
    "--markdown",
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
"""Words that are not files, even if a file has the same name: `jobs show main --json main` may repeat one."""

IN_PLACE: Final = ("--update-baseline", "--baseline")
"""Pairs of an output and an input that may be the same file, such as a baseline that is compared and then rewritten."""


def kept_apart(command: Any) -> None:
    """Make a command, and all commands of a group, refuse to overwrite their inputs before they do anything."""
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
    """Raise BadInput for an output file that is also an input; `given` has values by option or argument.

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
