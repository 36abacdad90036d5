"""Reading the toolkit's own data files: YAML documents that are one list."""

from __future__ import annotations

from pathlib import Path

from statek_sim.errors import BadScenario
from statek_sim.scenario.files import read
from statek_sim.scenario.problem import Problem
from statek_sim.scenario.tree import Malformed, Node, parse


def read_list(path: Path, *, of: str) -> Node | None:
    """Return the list in a file, None for an empty file; raises BadScenario with `path:line: message`."""
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
