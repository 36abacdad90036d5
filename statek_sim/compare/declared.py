"""Differences that are known, each with its reason: one data file, checked both ways."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from statek_sim.errors import BadInput
from statek_sim.scenario.files import read_list
from statek_sim.scenario.tree import Node, node_value

DECLARED: Final = Path(__file__).parent / "declared.yaml"
"""The declarations about the built-in scenarios."""

_KEYS: Final = ("scenario", "fields", "versions", "reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """These fields of this scenario differ on these versions of STATEK, for this reason. `line` is in the file."""

    scenario: str
    fields: tuple[str, ...]
    versions: tuple[str, ...]
    reason: str
    line: int


class Declarations:
    """Declarations, found by scenario and version."""

    def __init__(self, declarations: Iterable[Declaration] = ()) -> None:
        self.all = tuple(declarations)

    def __iter__(self) -> Iterable[Declaration]:
        return iter(self.all)

    def of(self, scenario: str, version: str) -> Mapping[str, Declaration]:
        """Return the declared fields of a scenario on one version."""
        return {
            field: declaration
            for declaration in self.all
            if declaration.scenario == scenario and version in declaration.versions
            for field in declaration.fields
        }


def load_declarations(path: Path = DECLARED) -> Declarations:
    """Return the declarations in a file; raises BadInput with `path:line: message`."""
    root = read_list(path, of="declared differences")
    return Declarations(() if root is None else (_declaration(path, node) for node in root.items))


def _declaration(path: Path, node: Node) -> Declaration:
    where = f"{path}:{node.line}"
    entry = node_value(node)
    if not isinstance(entry, dict) or tuple(sorted(entry)) != tuple(sorted(_KEYS)):
        raise BadInput(f"{where}: a declared difference has exactly the keys {', '.join(_KEYS)}")
    scenario, reason = entry["scenario"], entry["reason"]
    if not (isinstance(scenario, str) and isinstance(reason, str) and reason.strip()):
        raise BadInput(f"{where}: scenario and reason are texts")
    return Declaration(
        scenario=scenario,
        fields=_words(where, "fields", entry["fields"]),
        versions=_words(where, "versions", entry["versions"]),
        reason=" ".join(reason.split()),
        line=node.line,
    )


def _words(where: str, key: str, value: object) -> tuple[str, ...]:
    """Return a list of exact names: a pattern would declare more than anybody has looked at."""
    if not isinstance(value, list) or not value:
        raise BadInput(f"{where}: {key} is a list of names")
    words = tuple(str(word) for word in value)
    for word in words:
        if "*" in word or "?" in word:
            raise BadInput(f"{where}: {key}: {word!r} is a pattern; write every name out")
    return words
