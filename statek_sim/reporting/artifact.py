"""Writes report files atomically, checks their paths before a run, and loads the report schemas."""

from __future__ import annotations

import errno
import json
import os
import sys
from importlib import resources
from pathlib import Path
from typing import Any, Final

from statek_sim.atomic_files import replace_file
from statek_sim.errors import BadInput

STANDARD_OUTPUT: Final = Path("-")
"""The path for standard output."""


def write_artifact(path: Path, text: str) -> None:
    """Write `text` to `path` as UTF-8, creating folders as needed; readers see either the old file or the new file.

    A path that is not a regular file, such as a pipe or `/dev/stdout`, is written directly; `-` is standard output.
    Raises `BadInput` if the file cannot be written.
    """
    if path == STANDARD_OUTPUT:
        sys.stdout.write(text)
        return
    try:
        if path.exists() and not path.is_file():
            with path.open("w", encoding="utf-8", newline="\n") as file:
                file.write(text)
        else:
            target = path.resolve()
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_file(target, text.encode("utf-8"))
    except OSError as error:
        raise BadInput(f"{path}: cannot write the report: {error.strerror or error}") from error


def json_text(document: object) -> str:
    """Return a document as JSON text; raises ValueError for numbers that JSON cannot represent."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


NO_REPORTS: Final = (
    *(".yaml", ".yml", ".toml", ".env", ".py"),
    *(".csv", ".db", ".gguf", ".jsonl", ".sqlite", ".sqlite3", ".whl"),
)
"""Suffixes of source and data files, which a report never replaces."""


def check_writable(path: Path) -> None:
    """Raise `BadInput` if a report cannot be written to a path, or would replace a source file.

    A source file is an existing file with a suffix in `NO_REPORTS`, such as a scenario or a preset.
    """
    if path == STANDARD_OUTPUT:
        raise BadInput(f"{path}: standard output is used for the text report; choose a file")
    problem = _problem(path)
    if problem:
        raise BadInput(f"{path}: cannot write the report: {os.strerror(problem)}")
    # `/dev/stdout` may be a file that the shell opened.
    places = (path,) if path.is_relative_to("/dev") else (path, path.resolve())
    if any(map(_is_no_report, places)):
        raise BadInput(f"{path}: file exists and is not a report; choose another file")


def _is_no_report(path: Path) -> bool:
    """Return whether a path is an existing source file; `.env.local` counts as well as `local.env`."""
    name = path.name.lower()
    return (name.endswith(NO_REPORTS) or name.startswith(".env.")) and path.is_file()


def _problem(path: Path) -> int:
    """Return the errno with which writing to `path` would fail, or 0."""
    if path.is_dir():
        return errno.EISDIR
    if path.exists() and not path.is_file():
        return 0 if os.access(path, os.W_OK) else errno.EACCES
    folder = path.resolve().parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        return errno.ENOTDIR
    return 0 if os.access(folder, os.W_OK | os.X_OK) else errno.EACCES


def published() -> tuple[str, ...]:
    """Return the names of this package's schemas, such as `report` for `report_schema.json`."""
    files = (file.name for file in resources.files("statek_sim.reporting").iterdir())
    return tuple(sorted(name.removesuffix("_schema.json") for name in files if name.endswith("_schema.json")))


def schema_named(name: str) -> dict[str, Any]:
    """Return a schema (JSON Schema draft 2020-12)."""
    text = (resources.files("statek_sim.reporting") / f"{name}_schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
