"""Finds and reads scenario files, and data files that are one list, without trusting their contents."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from statek_sim.errors import BadScenario
from statek_sim.input_files import why_unreadable
from statek_sim.scenario.problem import Finding, Keypath, Problem, shown
from statek_sim.scenario.tree import Malformed, Node, find, node_value, parse

if TYPE_CHECKING:
    from statek_sim.scenario.schema import Scenario

MAX_BYTES: Final = 5_000_000
"""Maximum size of a scenario file, in bytes; larger ones are refused before they are read."""

_START_BYTES: Final = 65_536
"""How much of a refused file is read to determine its kind."""

SUFFIXES: Final = (".yaml", ".yml")
STATEMENTS: Final = "statements.yaml"
"""The list of normative statements; it is in the folder of the suites but is not a scenario file."""

_EVALS_KEY: Final = re.compile(r"""^["']?evals["']?\s*:|\A\s*\{\s*["']?evals["']?\s*:""", re.MULTILINE)
"""The key of eval files, which may be in folders of suites and are loaded by `statek_sim.evals.suite`."""

_NOT_OURS: Final = ("node_modules", "site-packages", "__pycache__")
"""Names of folders of other programs, which are skipped."""


def find_files(paths: Iterable[Path]) -> tuple[tuple[Path, ...], tuple[Problem, ...]]:
    """Return the scenario files at or under `paths`, each once, in a fixed order, and the problems."""
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
    """Return the advice for a scenario that is named as in pytest, `FILE::ID`."""
    file, separator, scenario = str(path).partition("::")
    name = scenario.rpartition("/")[2].partition("[")[0]
    return f"; one scenario of a file: {file} --select {name}" if separator and Path(file).is_file() else ""


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text of a file; `digest` is the SHA-256 of its bytes."""

    text: str
    digest: str


def read(path: Path) -> SourceText | Problem:
    """Return the text of a regular UTF-8 file of at most MAX_BYTES, or why it cannot be used."""
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
    """The only document of a file, None for an empty one; `digest` is the SHA-256 of the file's bytes."""

    root: Node | None
    digest: str


def parsed(path: Path) -> Parsed | Problem:
    """Return the document in a YAML file, or the problem."""
    source = read(path)
    if isinstance(source, Problem):
        return source
    try:
        return Parsed(parse(source.text), source.digest)
    except Malformed as error:
        return Problem(path, error.line, error.column, error.message)


def mapping_in(path: Path, key: str) -> tuple[Node, str] | Problem:
    """Return the mapping in a YAML file, and the file's digest, or the problem; it should have `key`."""
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
    """Return a finding in the file with this root as a problem with its place."""
    node, _ = find(root, finding.keypath)
    return Problem(path, node.line, node.column, finding.message)


def is_eval_file(path: Path) -> bool:
    """Return whether a file is an eval file, by its key.

    One that is too large, or not UTF-8, also counts if it starts like one: its loader reports the problem.
    """
    source = read(path)
    text = _start(path) if isinstance(source, Problem) else source.text
    # Nearly all files lack this word; searching for the key itself takes 30 times as long.
    return "evals" in text and _EVALS_KEY.search(text) is not None


def _start(path: Path) -> str:
    """Return the first bytes of a regular file that `read` refuses, as far as they are text, or an empty string."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(_START_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


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
    """Yield the scenario files under `folder`; linked folders are followed, each folder once."""
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


def read_list(path: Path, *, of: str) -> Node | None:
    """Return the list in a file, or None for an empty file; raises BadScenario with `path:line: message`."""
    source = read(path)
    if isinstance(source, Problem):
        raise BadScenario(str(source))
    try:
        root = parse(source.text)
    except Malformed as error:
        raise BadScenario(f"{path}:{error.line}: {error.message}") from None
    if root is not None and root.kind != "list":
        raise BadScenario(f"{path}:1: expected a list of {of}")
    return root


def problem_at(scenario: Scenario, keypath: Keypath, problem: str) -> Problem:
    """Return a problem of a loaded scenario with its line.

    It is the line of the value at `keypath` in the scenario or in the defaults of its file, otherwise that of the
    scenario.
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
