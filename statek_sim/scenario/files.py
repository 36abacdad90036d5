"""Finds and reads scenario files without trusting their contents."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from statek_sim.input_files import why_unreadable
from statek_sim.scenario.problem import Finding, Keypath, Problem, shown
from statek_sim.scenario.tree import Malformed, Node, find, node_value, parse

if TYPE_CHECKING:
    from statek_sim.scenario.schema import Scenario

MAX_BYTES: Final = 5_000_000
"""Maximum size of a scenario file, in bytes; larger files are rejected before being read."""

SUFFIXES: Final = (".yaml", ".yml")
STATEMENTS: Final = "statements.yaml"
"""The file name of the list of normative statements, which is in the suites folder but is not a scenario file."""

_EVALS_KEY: Final = re.compile(r"""^["']?evals["']?\s*:|\A\s*\{\s*["']?evals["']?\s*:""", re.MULTILINE)
"""Matches the key in eval files, which may be in the same folders; `statek_sim.evals.suite` loads them."""

_NOT_OURS: Final = ("node_modules", "site-packages", "__pycache__")
"""Names of folders that belong to other programs and are skipped."""


def find_files(paths: Iterable[Path]) -> tuple[tuple[Path, ...], tuple[Problem, ...]]:
    """Return the scenario files at or under `paths`, each once and in a fixed order, and the problems."""
    files: dict[Path, Path] = {}
    problems: list[Problem] = []
    for path in paths:
        try:
            found = [path] if not path.is_dir() else list(_walk(path, seen=set()))
        except (OSError, RuntimeError) as error:
            problems.append(Problem(path, 0, 0, why_unreadable(error, path)))
            continue
        for file in found:
            try:
                files.setdefault(file.resolve(strict=True), file)
            except (OSError, RuntimeError) as error:
                problems.append(Problem(file, 0, 0, why_unreadable(error, file) + _one_of_a_file(file)))
        if not found:
            expected = " or ".join(f"*{suffix}" for suffix in SUFFIXES)
            problems.append(Problem(path, 0, 0, f"no scenario files found, expected {expected}"))
    return tuple(files.values()), tuple(problems)


def _one_of_a_file(path: Path) -> str:
    """Return advice if the path has the form `FILE::ID` (pytest's name for a scenario), otherwise an empty string."""
    file, separator, scenario = str(path).partition("::")
    name = scenario.rpartition("/")[2].partition("[")[0]
    return (
        f"; to select one scenario in a file: {file} --select {name}"
        if separator and Path(file).is_file()
        else ""
    )


@dataclass(frozen=True, slots=True)
class SourceText:
    """A file's text; `digest` is the SHA-256 of its bytes."""

    text: str
    digest: str


def read(path: Path) -> SourceText | Problem:
    """Return the text of a regular UTF-8 file of at most `MAX_BYTES`, or the problem with the file."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return Problem(path, 0, 0, "not a regular file")
        if status.st_size > MAX_BYTES:
            return Problem(path, 0, 0, f"{status.st_size} bytes, expected at most {MAX_BYTES}")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, RuntimeError) as error:
        return Problem(path, 0, 0, why_unreadable(error, path))
    if len(content) > MAX_BYTES:
        return Problem(path, 0, 0, f"grew while it was read, expected at most {MAX_BYTES} bytes")
    text = _decode(path, content)
    return text if isinstance(text, Problem) else SourceText(text, hashlib.sha256(content).hexdigest())


@dataclass(frozen=True, slots=True)
class Parsed:
    """The only YAML document in a file, or None if the file is empty; `digest` is the SHA-256 of its bytes."""

    root: Node | None
    digest: str


def parsed(path: Path) -> Parsed | Problem:
    """Return the YAML document in a file, or the problem with the file."""
    source = read(path)
    if isinstance(source, Problem):
        return source
    try:
        return Parsed(parse(source.text), source.digest)
    except Malformed as error:
        return Problem(path, error.line, error.column, error.message)


def mapping_in(path: Path, key: str) -> tuple[Node, str] | Problem:
    """Return the mapping in a YAML file and the file's digest, or a problem that mentions the expected `key`."""
    found = parsed(path)
    if isinstance(found, Problem):
        return found
    root = found.root
    if root is not None and root.kind == "mapping":
        return root, found.digest
    got = "an empty file" if root is None else shown(node_value(root))
    line = 1 if root is None else root.line
    return Problem(path, line, 1, f"expected a mapping with the key {key!r}, got {got}")


def located(path: Path, root: Node, finding: Finding) -> Problem:
    """Return a finding as a problem with a line and column; `root` is the mapping in the file."""
    node, _ = find(root, finding.keypath)
    return Problem(path, node.line, node.column, finding.message)


def is_eval_file(path: Path) -> bool:
    """Return whether a file has the key `evals`; a file that `read` rejects does not count as an eval file."""
    source = read(path)
    # Nearly all files lack this word; searching for the key itself takes 30 times as long.
    return (
        isinstance(source, SourceText)
        and "evals" in source.text
        and _EVALS_KEY.search(source.text) is not None
    )


def _decode(path: Path, content: bytes) -> str | Problem:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        column = error.start - before.rfind(b"\n")
        return Problem(
            path, before.count(b"\n") + 1, column, f"byte 0x{content[error.start]:02x} is not UTF-8"
        )


def _walk(folder: Path, *, seen: set[Path]) -> Iterator[Path]:
    """Yield the scenario files under `folder`; symbolic links to folders are followed, each folder once."""
    real = folder.resolve(strict=True)
    if real in seen:
        return
    seen.add(real)
    for name in sorted(os.listdir(folder)):
        path = folder / name
        if name.startswith(".") or name in (STATEMENTS, *_NOT_OURS):
            continue
        if path.is_dir():
            yield from _walk(path, seen=seen)
        elif path.suffix in SUFFIXES:
            yield path


def problem_at(scenario: Scenario, keypath: Keypath, problem: str) -> Problem:
    """Return a problem in a loaded scenario, with its line.

    The line is that of the value at `keypath`, in the scenario or its file's defaults. If there is none, it is the
    scenario's line.
    """
    line, column = _place(scenario, keypath)
    return Problem(scenario.path, line, column, f"scenario {scenario.id!r}: {problem}")


def _place(scenario: Scenario, keypath: Keypath) -> tuple[int, int]:
    source = read(scenario.path)
    root = None if isinstance(source, Problem) else parse(source.text)
    listed = None if root is None else root.child("scenarios")
    if root is None or listed is None:
        return scenario.line, 1
    for position, node in enumerate(listed.items):
        if node.line == scenario.line:
            own, found = find(root, ("scenarios", position, *keypath))
            shared, deep = find(root, ("defaults", *keypath))
            place = shared if deep - 1 > found - 2 else own
            return place.line, place.column
    return scenario.line, 1
