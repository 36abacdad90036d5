"""Files that a run leaves behind, whole or not at all, and the JSON Schemas that are published with them."""

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
"""What a path is that means standard output."""


def write_artifact(path: Path, text: str) -> None:
    """Write `text` as UTF-8 to `path`, making its folders; a reader sees the old file or the new one.

    What is not a regular file, such as a pipe or `/dev/stdout`, is written to as it stands; `-` is standard output.
    `BadInput` when the file cannot be written.
    """
    if path == STANDARD_OUTPUT:
        sys.stdout.write(text)
        return
    try:
        # Asked of `path` itself: where `/dev/stdout` leads, there may be no path.
        if path.exists() and not path.is_file():
            with path.open("w", encoding="utf-8", newline="\n") as file:
                file.write(text)
        else:
            target = _resolved(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_file(target, text.encode("utf-8"))
    except (OSError, RuntimeError) as error:
        reason = os.strerror(number_of(error))
        raise BadInput(f"{path}: cannot write the report: {reason}") from error


NO_REPORTS: Final = (
    *(".yaml", ".yml", ".toml", ".env", ".py"),
    *(".csv", ".db", ".gguf", ".jsonl", ".sqlite", ".sqlite3", ".whl"),
)
"""How files end that people write or that data is kept in, and no report: one would take the place of their work."""


def check_writable(path: Path, *, ours: str = "") -> None:
    """Raise the `BadInput` that `write_artifact` would, as far as one can know beforehand; writes nothing.

    So does a file that is there and looks like one that people write, a scenario or a preset, or like data. One that
    begins with `ours` was written before by who writes it now, and may be replaced.
    """
    if path == STANDARD_OUTPUT:
        raise BadInput(f"{path}: standard output has the text for people; name a file")
    problem = _problem(path)
    if problem:
        raise BadInput(f"{path}: cannot write the report: {os.strerror(problem)}")
    # What a shell has put behind `/dev/stdout` is its own affair.
    places = (path,) if path.is_relative_to("/dev") else (path, path.resolve())
    if any(map(_is_no_report, places)) and not (ours and _begins(path, ours)):
        why = "was not written by this command" if ours else "is no report to be replaced"
        raise BadInput(f"{path}: is there already, and {why}; name another file")


def _is_no_report(path: Path) -> bool:
    """Whether a file is there that is called as no report is; `.env.local` is as good as `local.env`."""
    name = path.name.lower()
    return (name.endswith(NO_REPORTS) or name.startswith(".env.")) and path.is_file()


def _begins(path: Path, text: str) -> bool:
    """Whether a file that is there begins with a text."""
    start = text.encode("utf-8")
    try:
        with path.open("rb") as file:
            return file.read(len(start)) == start
    except OSError:
        return False


def _problem(path: Path) -> int:
    """Return the error number that writing to `path` would end with, 0 when none is foreseen."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            return 0 if os.access(path, os.W_OK) else errno.EACCES
        target = _resolved(path)
        if target.is_dir():
            return errno.EISDIR
        folder = target.parent
        while not folder.exists():
            folder = folder.parent
    except (OSError, RuntimeError) as error:
        return number_of(error)
    if not folder.is_dir():
        return errno.ENOTDIR
    return 0 if os.access(folder, os.W_OK | os.X_OK) else errno.EACCES


def _resolved(path: Path) -> Path:
    """Return where a path leads; raises OSError or RuntimeError for links that lead to themselves."""
    target = path.resolve()
    if target.is_symlink():
        # From Python 3.13 on what cannot be followed any further comes back as it is.
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return target


def number_of(error: OSError | RuntimeError) -> int:
    """Return the error number. Python 3.11 and 3.12 report a symlink loop as RuntimeError, later ones as OSError."""
    return errno.ELOOP if isinstance(error, RuntimeError) else error.errno or errno.EIO


def published() -> tuple[str, ...]:
    """Return the names of all schemas of this package: `report` for `report_schema.json`."""
    files = (file.name for file in resources.files("statek_sim.reporting").iterdir())
    return tuple(sorted(name.removesuffix("_schema.json") for name in files if name.endswith("_schema.json")))


def schema_named(name: str) -> dict[str, Any]:
    """Return a schema, which follows draft 2020-12."""
    text = (resources.files("statek_sim.reporting") / f"{name}_schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
