"""Exploration results for reports."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from statek_sim.harness.preset import BUILT_IN
from statek_sim.scenario.edit import after_dash, block
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.schema import FORMAT, Scenario
from statek_sim.values import JSON

KINDS: Final = ("crashes", "orders", "limits", "faults", "moves", "commits")
"""The kinds of deviation."""


@dataclass(frozen=True, slots=True)
class Count:
    """The number of variations tried and the total number of variations."""

    tried: int = 0
    of: int = 0

    @property
    def complete(self) -> bool:
        """Whether all variations were tried."""
        return self.tried >= self.of

    def __str__(self) -> str:
        """Return the count, such as `3 of 4`."""
        return f"{self.tried} of {self.of}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A violated invariant, the smallest variation that violates it, and the number of variations that violate it."""

    invariant: str
    message: str
    deviations: tuple[Deviation, ...]
    times: int
    file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beyond:
    """Runs with more than one deviation, and runs with random orders.

    `pairs` are combinations of two deviations. If not all orders were played, bugs that need
    `depth` ordered choices are found with at least this `probability`.
    """

    pairs: Count = Count()
    depth: int | None = None
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """A crash map cell: a point at which the worker was killed, the last action before it, and the outcome.

    `came` is `same` if the run ended like the base run, `differs` if not, `unknown` if the script does not cover the
    run, `asks` if an agent asks a person whether a call happened, or the violated invariants, joined by commas.
    """

    event: int
    silent: int
    what: str
    job: str
    came: str
    lines: tuple[str, ...] = ()
    """The events after the kill, one per line, if requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCertificate:
    """How disturbances affect a tool: `safe`, `at least once`, `leaks`, or None if not observed.

    The disturbances are a worker crash `before`, `during` or `after` the call, a call made `twice` because its
    statement runs again, and two `owners` doing the same work.
    """

    tool: str
    own: bool
    before: str | None
    during: str | None
    after: str | None
    twice: str | None = None
    owners: str | None = None


@dataclass(frozen=True, slots=True)
class CrashCost:
    """The largest number of measured tokens that a single crash adds to the base run, and the crash that adds them."""

    tokens: int = 0
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """The result of exploring one scenario under one profile."""

    id: str
    suite: str
    profile: str
    points: int
    proven: dict[str, Count]
    beyond: Beyond = Beyond()
    failures: tuple[Failure, ...] = ()
    reached: dict[str, bool] = field(default_factory=dict)
    """Whether each `sometimes` invariant held in some run."""
    unknown: int = 0
    """The number of runs that requested a reply missing from the script; they are checked up to that request."""
    repeats: int = 0
    """The number of runs that affected the world more often than the base run."""
    runs: int = 0
    cells: tuple[Cell, ...] = ()
    tools: tuple[ToolCertificate, ...] = ()
    crash: CrashCost = CrashCost()
    problem: str | None = None
    """The reason why the scenario could not be explored, or None."""
    killed: bool = False
    """Whether the scenario ended its process or exceeded the watchdog's limits."""

    @property
    def explored(self) -> int:
        """The number of variations played with a single deviation."""
        return sum(count.tried for count in self.proven.values())

    @property
    def failed(self) -> bool:
        """Whether an invariant was violated, a required condition was never reached, or the process was killed."""
        return bool(self.failures) or not all(self.reached.values()) or self.killed


@dataclass(frozen=True, slots=True)
class Exploration:
    """The results for all scenarios; `stopped` is True if the exploration was interrupted."""

    scenarios: tuple[Explored, ...]
    stopped: bool = False

    @property
    def runs(self) -> int:
        """The total number of runs."""
        return sum(one.runs for one in self.scenarios)

    @property
    def failed(self) -> bool:
        """Whether any scenario failed."""
        return any(one.failed for one in self.scenarios)

    @property
    def skipped(self) -> int:
        """The number of scenarios that could not be explored."""
        return sum(one.problem is not None for one in self.scenarios)

    @property
    def nothing(self) -> bool:
        """Whether no scenario could be explored, so the absence of failures means nothing."""
        return self.skipped == len(self.scenarios)


T = TypeVar("T")


def reduced(parts: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> tuple[T, ...]:
    """Return a minimal failing subset of `parts`: removing any one part makes it pass."""
    current, place = tuple(parts), 0
    while place < len(current) > 1:
        rest = current[:place] + current[place + 1 :]
        # A part that was needed before may be removable now.
        current, place = (rest, 0) if fails(rest) else (current, place + 1)
    return current


_OF_THE_FILE: Final = frozenset(
    {"suite", "path", "line", "file_digest", "proves", "expect", "expect_in", "goes_bad"}
)
"""Scenario keys that a saved case does not copy, because they apply only to the original file or the base run."""

_UNSAFE: Final = re.compile(r"[^a-z0-9]+")


def case_name(scenario: Scenario, profile: str, invariant: str) -> str:
    """Return a saved case's file name, without a folder."""
    return f"{_slug(scenario.id)}-{_slug(profile)}-{_slug(invariant)}.yaml"


def case_text(scenario: Scenario, profile: str, failure: Failure, folder: Path) -> str:
    """Return the scenario file text for a failure; `folder` is that file's folder."""
    written: dict[str, Any] = scenario.model_dump(mode="json", exclude_unset=True, exclude=set(_OF_THE_FILE))
    written.pop("deviations", None)
    text: dict[str, JSON] = {
        "id": f"{_slug(scenario.id)}-{_slug(failure.invariant)}",
        "title": f"{failure.invariant}: {failure.message}",
        **{key: value for key, value in written.items() if key not in ("id", "title", "profiles")},
        "profiles": [profile],
        "deviations": [one.model_dump(mode="json", exclude_unset=True) for one in failure.deviations],
        "violates": failure.invariant,
    }
    preset = written.get("preset")
    if preset is not None and (scenario.path.parent / preset).is_file() and preset not in BUILT_IN:
        text["preset"] = os.path.relpath(scenario.path.parent / preset, folder)
    name = case_name(scenario, profile, failure.invariant)
    entry = block(text, indent=4, column=3, spread=True)
    return (
        f"# {FORMAT}\n"
        f"# Found by `statek-sim explore`; `statek-sim explore --replay {name}` prints FIXED or FAILED.\n"
        f"suite: found\n\nscenarios:\n  -{after_dash(entry)}\n"
    )


def _slug(text: str) -> str:
    return _UNSAFE.sub("-", text.casefold()).strip("-") or "case"
