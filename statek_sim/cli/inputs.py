"""Input and output functions shared by commands: load scenarios, check files before a run, print and write results."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from rich.text import Text

    from statek_sim.scenario.schema import Scenario


def say(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines to standard output or, if `err` is set, to standard error with API keys removed."""
    for line in lines:
        typer.echo(_without_keys(line) if err else line, err=err)


def _without_keys(line: str) -> str:
    from statek_sim.cassettes.redaction import without_keys

    return without_keys(line)


def show(lines: Callable[[int], Iterable[Text]]) -> None:
    """Print lines that already fit the console's width, without further wrapping or colours."""
    from rich.console import Console

    console = Console()
    for line in lines(console.width):
        console.print(line, soft_wrap=True, highlight=False)


def write_outputs(*outputs: tuple[Path | None, Callable[[], object]]) -> None:
    """Write each result whose path is not None (as JSON unless it is a string), and print the file names."""
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
    """Return the scenarios at or under `paths`, or the built-in scenarios."""
    from statek_sim.scenario.load import load_or_fail

    return load_or_fail(paths or [builtin_scenarios()])


def scenarios_among(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split words into names and scenario paths. A word is a path if it is a folder or ends in .yaml or .yml."""
    paths = [word for word in words if word.endswith((".yaml", ".yml")) or Path(word).is_dir()]
    return [word for word in words if word not in paths], paths


def builtin_scenarios() -> Path:
    """Return the folder of the built-in suites."""
    from statek_sim.suite.run import builtin_suites

    return builtin_suites()


def check_json(path: Path | None) -> None:
    """Raise BadInput if `written_as_json` could not write the file."""
    from statek_sim.reporting.artifact import STANDARD_OUTPUT

    if path != STANDARD_OUTPUT:
        check_outputs({"--json": path})


def written_as_json(path: Path | None, document: Mapping[str, object]) -> bool:
    """Write a document as JSON to `path`, if given; return whether it went to standard output."""
    from statek_sim.reporting.artifact import STANDARD_OUTPUT, json_text, write_artifact

    if path is not None:
        write_artifact(path, json_text(document))
    return path == STANDARD_OUTPUT


def check_once(paths: Sequence[Path]) -> None:
    """Raise BadInput if a file is passed twice, because its tasks would be counted twice."""
    places: dict[Path, Path] = {}
    for path in paths:
        before = places.setdefault(path.resolve(), path)
        if before is not path:
            raise BadInput(f"{path}: same file as {before}; pass each file only once")


def check_outputs(
    files: Mapping[str, Path | None], reads: Mapping[str, Iterable[Path]] | None = None
) -> None:
    """Raise BadInput if an option's output file cannot be written or is also used by another option.

    `files` maps options to output files; `reads` maps options to input files that must not be overwritten.
    """
    options: dict[Path, str] = {}
    inputs = {path.resolve(): option for option, paths in (reads or {}).items() for path in paths}
    for option, path in files.items():
        if path is None:
            continue
        from statek_sim.reporting.artifact import check_writable

        check_writable(path)
        if path.exists() and not path.is_file():
            continue  # A pipe accepts several reports, one after the other.
        if path.resolve() in inputs:
            raise BadInput(
                f"{option} {path}: {inputs[path.resolve()]} reads this file; choose a different output file"
            )
        other = options.setdefault(path.resolve(), option)
        if other != option:
            raise BadInput(f"{other} and {option}: both write {path}; choose different files")


def check_required(given: Mapping[str, object], needed: object, name: str) -> None:
    """Raise BadInput if an option in `given` is set without the option `name`, which it requires."""
    for options, value in given.items():
        if value not in (None, False, ()) and not needed:
            raise BadInput(f"{options} {'require' if ' and ' in options else 'requires'} {name}")


def check_replaceable(path: Path, *, key: str, schema: str) -> None:
    """Raise BadInput if a new baseline would replace an existing file that is not a baseline.

    A baseline contains `schema`, in any version, under `key`. Empty files may be replaced.
    """
    from statek_sim.reporting.artifact import check_writable

    check_writable(path)
    kind = schema.partition("@")[0] + "@"
    if path.is_file() and path.stat().st_size and f'"{key}": "{kind}'.encode() not in path.read_bytes():
        raise BadInput(
            f"{path}: file exists and is not a baseline (no {key!r} that starts with {kind!r}); "
            "choose another file or delete this one"
        )
