"""What Forge publishes of its own evaluation: how many of 50 runs of each scenario ended, and how many were right."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput

SOURCE: Final = "Forge dashboard"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedScenario:
    """One of Forge's scenarios: `calls` are those of an ideal run, the terminal one included.

    `fails_first`: its first tool call fails, whoever makes it, which ends a bare run.
    """

    name: str
    calls: int
    kind: str
    tier: str
    fails_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The counts of one model, scenario by scenario, of `runs` each; with the harness, ends are known in sum only."""

    model: str
    label: str
    runs: int
    scenarios: tuple[PublishedScenario, ...]
    bare_completed: tuple[int, ...]
    bare_correct: tuple[int, ...]
    harness_completed_in_all: int
    harness_correct: tuple[int, ...]

    @property
    def in_all(self) -> int:
        """Runs of all scenarios."""
        return self.runs * len(self.scenarios)


@cache
def published() -> tuple[Published, ...]:
    """Return all configurations whose counts are kept here."""
    document = json.loads((files("statek_sim.evals.published") / "forge.json").read_text(encoding="utf-8"))
    scenarios = tuple(PublishedScenario(**entry) for entry in document["scenarios"])
    return tuple(_published(entry, document["runs"], scenarios) for entry in document["configurations"])


def _published(
    configuration: dict[str, Any], runs: int, scenarios: tuple[PublishedScenario, ...]
) -> Published:
    return Published(
        model=configuration["model"],
        label=configuration["label"],
        runs=runs,
        scenarios=scenarios,
        bare_completed=tuple(configuration["bare"]["completed"]),
        bare_correct=tuple(configuration["bare"]["correct"]),
        harness_completed_in_all=configuration["reforged"]["completed_in_all"],
        harness_correct=tuple(configuration["reforged"]["correct"]),
    )


def published_of(model: str) -> Published:
    """Return the counts of a model; `BadInput` for one that is not kept here."""
    known = {entry.model: entry for entry in published()}
    if model not in known:
        hint = suggestion(model, known)
        raise BadInput(
            f"no counts of {model!r} are kept; expected one of {', '.join(known)}.{hint}".removesuffix(".")
        )
    return known[model]
