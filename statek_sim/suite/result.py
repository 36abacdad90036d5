"""The outcome of one scenario under one profile."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from statek_sim.backends.record import RunRecord
from statek_sim.scenario.schema import Scenario


class Outcome(StrEnum):
    """Whether the run met its expectations."""

    PASSED = "passed"
    FAILED = "failed"


class Absent(StrEnum):
    """Stands for a missing value in a mismatch; a string, so that every report can show it."""

    ABSENT = "(absent)"


ABSENT: Final = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One failed expectation. `keypath` starts below `expect`, like `("jobs", "main", "turns")`.

    A key path that ends in a list position is a condition (`console.contains[0]`) whose `actual` is the value it was
    checked against. Otherwise `actual` is the correct value, in the shape of `expected`.
    """

    keypath: tuple[str | int, ...]
    expected: object
    actual: object


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult:
    """One scenario run under one profile. `seconds` is real time, for people only; no report compares it.

    `preset` is the override of the scenario's own preset, if any; its seed is `record.seed`.
    """

    scenario: Scenario
    profile: str
    record: RunRecord
    mismatches: tuple[Mismatch, ...]
    seconds: float
    preset: str | None = None

    @property
    def outcome(self) -> Outcome:
        """Passed if every expectation held."""
        return Outcome.FAILED if self.mismatches else Outcome.PASSED

    @property
    def id(self) -> str:
        """`suite/scenario[profile]`."""
        return f"{self.scenario.suite}/{self.scenario.id}[{self.profile}]"
