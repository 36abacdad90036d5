"""The normative statements of STATEK's documents, in our own words, and which scenarios and evals prove them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, Protocol

from pydantic import Field, TypeAdapter, ValidationError

from statek_sim.errors import BadScenario
from statek_sim.scenario.files import problem_at, read_list
from statek_sim.scenario.locate import findings_of
from statek_sim.scenario.part import Items, Part
from statek_sim.scenario.problem import Problem
from statek_sim.scenario.schema import Scenario
from statek_sim.scenario.tree import find, node_value

_Line = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\n]*$")]


class _StatementText(Part):
    """One entry of the file."""

    id: Annotated[str, Field(pattern=r"^[A-Z]-[0-9]{2}$")]
    source: _Line
    section: _Line
    text: _Line
    by: Literal["scenarios", "evals"] = "scenarios"


_ENTRIES: Final = TypeAdapter(Items[_StatementText])


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A testable rule that a document states; `document` is its number, like `000`, `by` what can prove it."""

    id: str
    document: str
    section: str
    text: str
    by: Literal["scenarios", "evals"] = "scenarios"


class Proof(Protocol):
    """What proves statements: a scenario, or an eval whose scripts come out as they should."""

    @property
    def id(self) -> str:
        """Its name."""

    @property
    def proves(self) -> Sequence[str]:
        """The ids of statements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Which scenarios prove which statement.

    `proven` maps every statement that has a scenario to the scenarios' ids; `missing` are statements without
    one; `unknown` are pairs of scenario id and an id that no statement has.
    """

    proven: Mapping[str, tuple[str, ...]]
    missing: tuple[str, ...]
    unknown: tuple[tuple[str, str], ...]

    @property
    def complete(self) -> bool:
        """Return whether every statement is proven and every proof is of a statement."""
        return not self.missing and not self.unknown


def load_statements(path: Path) -> tuple[Statement, ...]:
    """Return the statements in a file, in its order; raises BadScenario with `path:line: message` lines."""
    root = read_list(path, of="statements")
    if root is None:
        raise BadScenario(f"{path}:1: expected a list of statements")
    entries = node_value(root)
    try:
        texts = _ENTRIES.validate_python(entries)
    except ValidationError as error:
        findings = findings_of(error, entries, prefix=())
        lines = [f"{path}:{find(root, finding.keypath)[0].line}: {finding.message}" for finding in findings]
        raise BadScenario("\n".join(lines)) from None
    statements = {text.id: text for text in texts}
    if len(statements) < len(texts):
        places = [(node.line, text.id) for node, text in zip(root.items, texts, strict=True)]
        raise BadScenario("\n".join(_repeated(path, places)))
    return tuple(
        Statement(id=text.id, document=text.source, section=text.section, text=text.text, by=text.by)
        for text in texts
    )


def coverage(statements: Iterable[Statement], scenarios: Iterable[Proof]) -> Coverage:
    """Return which of `statements` the `scenarios`, and evals among them, prove."""
    proofs: dict[str, list[str]] = {statement.id: [] for statement in statements}
    unknown: list[tuple[str, str]] = []
    for scenario in scenarios:
        for statement_id in dict.fromkeys(scenario.proves):
            if statement_id in proofs:
                proofs[statement_id].append(scenario.id)
            else:
                unknown.append((scenario.id, statement_id))
    return Coverage(
        proven={statement_id: tuple(ids) for statement_id, ids in proofs.items() if ids},
        missing=tuple(statement_id for statement_id, ids in proofs.items() if not ids),
        unknown=tuple(unknown),
    )


def unknown_proofs(statements: Iterable[Statement], scenarios: Iterable[Scenario]) -> Iterator[Problem]:
    """Yield a problem for each id under a scenario's `proves` that no statement has."""
    known = {statement.id for statement in statements}
    for scenario in scenarios:
        for position, statement_id in enumerate(scenario.proves):
            if statement_id not in known:
                why = f"proves {statement_id}, which is no statement; `statek-sim list suites --coverage` lists them"
                yield problem_at(scenario, ("proves", position), why)


def _repeated(path: Path, places: Iterable[tuple[int, str]]) -> list[str]:
    first: dict[str, int] = {}
    return [
        f"{path}:{line}: duplicate id {statement_id!r}, first at line {first[statement_id]}"
        for line, statement_id in places
        if first.setdefault(statement_id, line) != line
    ]
