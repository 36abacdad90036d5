"""Shows which scenarios and evals prove normative statements in STATEK's documents: `python -m tools.statements`.

`scenarios/statements.yaml` contains the statements in our own words. Prints each with its proofs, and exits 1 if one is
unproven or unknown, or if an eval that proves a statement accepts a wrong script.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol

from pydantic import TypeAdapter

from statek_sim.errors import BadScenario
from statek_sim.evals.players import tells_apart
from statek_sim.evals.suite import load_suite
from statek_sim.scenario.files import STATEMENTS, find_files, is_eval_file, parsed
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.problem import Problem
from statek_sim.scenario.tree import node_value

SUITES: Final = Path(__file__).resolve().parent.parent / "scenarios"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A testable rule in a document; `source` is the document's number, like `000`; `by` is what can prove it."""

    id: str
    source: str
    section: str
    text: str
    by: Literal["scenarios", "evals"] = "scenarios"


class Proof(Protocol):
    """A proof of statements: a scenario, or an eval whose scripts have the expected results."""

    @property
    def id(self) -> str:
        """The proof's name."""

    @property
    def proves(self) -> Sequence[str]:
        """The ids of the proven statements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The ids of each statement's proofs, and pairs of a proof id and an unknown statement id."""

    proofs: Mapping[str, Sequence[str]]
    unknown: Sequence[tuple[str, str]]

    @property
    def missing(self) -> list[str]:
        """The unproven statements."""
        return [statement for statement, ids in self.proofs.items() if not ids]


def load_statements() -> list[Statement]:
    """Return the statements in file order."""
    found = parsed(SUITES / STATEMENTS)
    if isinstance(found, Problem):
        raise BadScenario(str(found))
    return TypeAdapter(list[Statement]).validate_python(found.root and node_value(found.root))


def coverage(statements: Iterable[Statement], proofs: Iterable[Proof]) -> Coverage:
    """Return which statements are proven, and by what."""
    found: dict[str, list[str]] = {statement.id: [] for statement in statements}
    unknown: list[tuple[str, str]] = []
    for proof in proofs:
        for statement in dict.fromkeys(proof.proves):
            if statement in found:
                found[statement].append(proof.id)
            else:
                unknown.append((proof.id, statement))
    return Coverage(proofs=found, unknown=unknown)


def main() -> int:
    """Print the statements with their proofs, and return the exit code."""
    evals = load_suite([file for file in find_files([SUITES])[0] if is_eval_file(file)])
    claiming = [scenario for scenario in evals if scenario.proves]
    wrong = {scenario.id: tells_apart(scenario) for scenario in claiming}
    proving = [scenario for scenario in claiming if not wrong[scenario.id]]
    statements = load_statements()
    covered = coverage(statements, [*load_or_fail([SUITES]), *proving])
    for statement in statements:
        print(f"{statement.id}  {statement.source} {statement.section}: {statement.text}")
        print(f"      {', '.join(covered.proofs[statement.id]) or 'NOT PROVEN'}")
    missing = covered.missing
    print(f"{len(statements) - len(missing)} of {len(statements)} statements proven")
    problems = [line for lines in wrong.values() for line in lines]
    problems += [
        f"{name}: proves {statement}, which is not a statement" for name, statement in covered.unknown
    ]
    problems += [f"nothing proves {', '.join(missing)}"] if missing else []
    print("\n".join(problems), end="\n" if problems else "", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
