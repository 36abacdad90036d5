"""Two sets of facts, held against each other field by field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from statek_sim.conformance.normal import normal, normal_local
from statek_sim.values import JSON

FIRST: Final = ("error", "worker", "jobs")
"""What is told first when it differs: the rest follows from it."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that differs: `field` like `jobs.main.turns`, and the values of both sides."""

    field: str
    reference: JSON
    installed: JSON


def differences(reference: dict[str, JSON], installed: dict[str, JSON]) -> tuple[Difference, ...]:
    """Return what differs, the most telling first. Job facts are fields of their own, other facts as a whole."""
    return tuple(_differences(_fields(reference), _fields(installed)))


_MISSING: Final = "(absent)"


def _differences(reference: dict[str, JSON], installed: dict[str, JSON]) -> Iterator[Difference]:
    for field in dict.fromkeys((*reference, *installed)):
        ours, theirs = reference.get(field, _MISSING), installed.get(field, _MISSING)
        if ours != theirs:
            yield Difference(field, ours, theirs)


def _fields(facts: dict[str, JSON]) -> dict[str, JSON]:
    fields: dict[str, JSON] = {}
    for name in (*FIRST, *(name for name in facts if name not in FIRST)):
        value = facts.get(name)
        if name != "jobs" or not isinstance(value, dict):
            fields[name] = normal(value)
            continue
        fields["jobs"] = list(value)
        for job, job_facts in value.items():
            if isinstance(job_facts, dict):
                fields.update(
                    {f"jobs.{job}.{key}": normal(_job_fact(key, fact)) for key, fact in job_facts.items()}
                )
    return fields


_SHOWN: Final = ("locals", "tool_calls")
"""Facts that hold values as texts that no agent ever sees."""


def _job_fact(key: str, fact: JSON) -> JSON:
    return normal_local(fact) if key in _SHOWN else fact
