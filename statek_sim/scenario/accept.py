"""Rewriting expectations in the file that states them, touching nothing else.

Only the characters of a changed value are replaced, so comments, quoting, order and layout of everything
else stay as they were. The result is parsed again and compared before it is written.
"""

from __future__ import annotations

import difflib
import os
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from statek_sim.errors import BadInput
from statek_sim.scenario.edit import CannotEdit, set_value
from statek_sim.scenario.files import SourceText, read
from statek_sim.scenario.problem import Keypath, Problem, dotted
from statek_sim.scenario.tree import Malformed, Node, parse
from statek_sim.values import JSON

_EXPECTATIONS = ("expect", "expect_in")


@dataclass(frozen=True, slots=True)
class Change:
    """One expectation to rewrite; `keypath` starts with `expect` or `expect_in`."""

    scenario_id: str
    keypath: Keypath
    value: JSON


def rewrite_expectations(path: Path, changes: Sequence[Change], *, file_digest: str | None = None) -> str:
    """Rewrite expectations in the scenario file `path`; return the unified diff, empty when nothing changed.

    With `file_digest` (`Scenario.file_digest`) the file must still be what was loaded. A key path that the
    scenario does not have yet is added to it. Raises BadInput, and then leaves the file as it was, when the
    file changed, is not writable or has no such scenario.
    """
    target = path.resolve()
    source = _read(target)
    if file_digest is not None and source.digest != file_digest:
        raise BadInput(f"{path}: changed since it was loaded; run again")
    _refuse_read_only(path, target)
    rewritten = source.text
    for change in changes:
        rewritten = _apply(path, rewritten, change)
    if rewritten == source.text:
        return ""
    _replace(path, target, rewritten, expected=source.digest)
    return _diff(path, source.text, rewritten)


def _apply(path: Path, text: str, change: Change) -> str:
    if not change.keypath or change.keypath[0] not in _EXPECTATIONS:
        raise BadInput(f"{path}: {dotted(change.keypath)!r} is no expectation")
    try:
        root = parse(text)
        position = _position(root, change.scenario_id)
        if root is None or position is None:
            raise BadInput(f"{path}: no scenario {change.scenario_id!r} in this file")
        return set_value(text, ("scenarios", position, *change.keypath), change.value)
    except (Malformed, CannotEdit) as error:
        where = f"scenario {change.scenario_id!r}: {dotted(change.keypath)}"
        raise BadInput(f"{path}: {where} cannot be rewritten: {error}") from error


def _position(root: Node | None, scenario_id: str) -> int | None:
    scenarios = root.child("scenarios") if root else None
    for position, node in enumerate(scenarios.items if scenarios else []):
        own = node.child("id")
        if own is not None and own.value == scenario_id:
            return position
    return None


def _read(path: Path) -> SourceText:
    source = read(path)
    if isinstance(source, Problem):
        raise BadInput(str(source))
    return source


def _refuse_read_only(path: Path, target: Path) -> None:
    # The mode is asked too: for an administrator every file counts as accessible.
    if not os.access(target, os.W_OK) or not target.stat().st_mode & (
        stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
    ):
        raise BadInput(f"{path}: not writable")


def _replace(path: Path, target: Path, text: str, *, expected: str) -> None:
    """Put `text` in the place of the file in one step, keeping its mode."""
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
        if _read(target).digest != expected:
            raise BadInput(f"{path}: changed while it was rewritten; run again")
        os.replace(temporary, target)
        temporary = ""
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)


def _diff(path: Path, before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"{path} (before)",
        f"{path} (after)",
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
