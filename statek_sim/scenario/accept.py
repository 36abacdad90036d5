"""Rewriting expectations in the file that states them, touching nothing else.

Only the characters of a changed value are replaced, so comments, quoting, order and layout of everything
else stay as they were. The result is parsed again and compared before it is written.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from statek_sim.atomic_files import replace_file
from statek_sim.errors import BadInput
from statek_sim.scenario.edit import CannotEdit, set_value
from statek_sim.scenario.files import SourceText, read
from statek_sim.scenario.problem import Keypath, Problem, dotted
from statek_sim.scenario.tree import Malformed, Node, node_value, parse
from statek_sim.values import JSON

_EXPECTATIONS = ("expect", "expect_in")
_ALONE: Final = "scenarios:\n"
_DASH: Final = re.compile(r" *-[ ]+")
"""What stands before an entry on its first line."""


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
    rewritten = _rewritten(path, source.text, changes)
    if rewritten == source.text:
        return ""
    _replace(path, target, rewritten, expected=source.digest)
    return _diff(path, source.text, rewritten)


def _rewritten(path: Path, text: str, changes: Sequence[Change]) -> str:
    """Return the text with all changes.

    Each is made in its scenario's own lines, so that one of many scenarios takes no longer than one alone.
    """
    try:
        root = parse(text)
    except Malformed as error:
        raise BadInput(f"{path}:{error.line}: {error.message}") from error
    scenarios = root.child("scenarios") if root else None
    nodes = scenarios.items if scenarios else []
    positions = {own.value: n for n, node in enumerate(nodes) if (own := node.child("id")) is not None}
    by_position: dict[int, list[Change]] = {}
    for change in changes:
        if change.scenario_id not in positions:
            raise BadInput(f"{path}: no scenario {change.scenario_id!r} in this file")
        by_position.setdefault(positions[change.scenario_id], []).append(change)
    starts = _entry_starts(text, nodes)
    if starts is None:
        for position, wanted in by_position.items():
            text = _applied(path, text, position, wanted)
        return text
    expected = _entries(root)
    for position, wanted in sorted(by_position.items(), reverse=True):
        start, end = starts[position], starts[position + 1]
        # The entry alone is a file too: its lines, which keep their columns, below the same key.
        alone = _applied(path, _ALONE + text[start:end], 0, wanted)
        text = text[:start] + alone.removeprefix(_ALONE) + text[end:]
        expected[position] = _entries(parse(alone))[0]
    if _entries(parse(text)) != expected:
        raise BadInput(f"{path}: cannot be rewritten: the file would not say what was asked for")
    return text


def _entries(root: Node | None) -> list[JSON]:
    whole = node_value(root) if root else None
    found = whole["scenarios"] if isinstance(whole, dict) else None
    return found if isinstance(found, list) else []


def _entry_starts(text: str, nodes: Sequence[Node]) -> list[int] | None:
    """Return where the lines of each entry begin, and the last one's end; None unless each has lines of its own."""
    starts = [text.rfind("\n", 0, node.start) + 1 for node in nodes]
    between = [text[start : node.start] for start, node in zip(starts, nodes, strict=True)]
    if not all(_DASH.fullmatch(before) for before in between):
        return None
    end = text.find("\n", nodes[-1].end - 1) if nodes else -1
    # What follows the list is not the last entry's.
    return [*starts, len(text) if end == -1 else end + 1]


def _applied(path: Path, text: str, position: int, changes: Sequence[Change]) -> str:
    for change in changes:
        where = f"scenario {change.scenario_id!r}: {dotted(change.keypath)}"
        if not change.keypath or change.keypath[0] not in _EXPECTATIONS:
            raise BadInput(f"{path}: {dotted(change.keypath)!r} is no expectation")
        try:
            text = set_value(text, ("scenarios", position, *change.keypath), change.value)
        except (Malformed, CannotEdit) as error:
            raise BadInput(f"{path}: {where} cannot be rewritten: {error}") from error
    return text


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
    """Put `text` in the place of the file in one step, unless it has changed since it was read."""

    def unchanged() -> None:
        if _read(target).digest != expected:
            raise BadInput(f"{path}: changed while it was rewritten; run again")

    try:
        replace_file(target, text.encode("utf-8"), check=unchanged)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from error


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
