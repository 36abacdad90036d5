"""The result of one scenario under one profile."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from statek_sim.backends.record import RunRecord
from statek_sim.scenario.schema import Scenario


class Outcome(StrEnum):
    """Whether a run met its expectations."""

    PASSED = "passed"
    FAILED = "failed"


class Absent(StrEnum):
    """Represents a missing value in a mismatch; a string, so that every report can display it."""

    ABSENT = "(absent)"


ABSENT: Final = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One failed expectation. `keypath` starts below `expect`, like `("jobs", "main", "turns")`.

    A key path that ends in a list index, like `console.contains[0]`, belongs to a condition; `actual` is then the value
    that was checked. Otherwise, `actual` is the correct value, with the same structure as `expected`.
    """

    keypath: tuple[str | int, ...]
    expected: object
    actual: object


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult:
    """The result of running one scenario under one profile. `seconds` is real time, which no report compares.

    `preset` is the preset that replaced the scenario's own, if any. The seed of the run is `record.seed`.
    """

    scenario: Scenario
    profile: str
    record: RunRecord
    mismatches: tuple[Mismatch, ...]
    seconds: float
    preset: str | None = None

    @property
    def outcome(self) -> Outcome:
        """Passed if there is no mismatch, otherwise failed."""
        return Outcome.FAILED if self.mismatches else Outcome.PASSED

    @property
    def id(self) -> str:
        """The run's id: `suite/scenario[profile]`."""
        return f"{self.scenario.suite}/{self.scenario.id}[{self.profile}]"
