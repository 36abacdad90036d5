"""What an exploration found: values that reports are made of."""

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
"""What is tried one at a time."""


@dataclass(frozen=True, slots=True)
class Count:
    """How many of how many were tried."""

    tried: int = 0
    of: int = 0

    @property
    def complete(self) -> bool:
        """Whether all of them were."""
        return self.tried >= self.of

    def __str__(self) -> str:
        """As people read it."""
        return f"{self.tried} of {self.of}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An invariant that some variation breaks: the smallest such, and how many break it."""

    invariant: str
    message: str
    deviations: tuple[Deviation, ...]
    times: int
    file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beyond:
    """What was tried beyond single deviations.

    `pairs` are combinations of two, `triples` of three that were drawn. `depth` and `probability`: bugs that need so
    many choices in the right order are found with this probability at least, where not all orders were played.
    """

    pairs: Count = Count()
    triples: int = 0
    depth: int | None = None
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One distinct place to die, for the crash map: what was done last, and what came of it.

    `came` is `same` as undisturbed, `differs`, `unknown` where no script says how it goes on, `asks` where an agent
    asks a person whether a call happened, or the invariants that do not hold, joined by commas.
    """

    event: int
    silent: int
    what: str
    job: str
    came: str
    lines: tuple[str, ...] = ()
    """What happens from the death on, where it was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCertificate:
    """What becomes of a tool's effect: `safe`, `at least once`, `leaks`, or None: not seen.

    When its worker dies `before`, `during` or `after` the call; when it is called `twice`, since its statement runs
    again; and when two `owners` do the same work.
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
    """The most that one crash adds to an undisturbed run: measured tokens and where, cost and where."""

    tokens: int = 0
    cost: float = 0.0
    where: str = ""
    cost_where: str = ""
    priced: bool = True
    """Whether the cost is known: nobody knows that of calls without a price, to which nobody reported any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """One scenario under one profile."""

    id: str
    suite: str
    profile: str
    points: int
    proven: dict[str, Count]
    beyond: Beyond = Beyond()
    failures: tuple[Failure, ...] = ()
    reached: dict[str, bool] = field(default_factory=dict)
    """Of every `sometimes` invariant, whether some run reached it."""
    unknown: int = 0
    """Runs whose jobs asked for replies that no script says: judged as far as they went."""
    repeats: int = 0
    """Runs that did something outside again that was done before the crash."""
    runs: int = 0
    cells: tuple[Cell, ...] = ()
    tools: tuple[ToolCertificate, ...] = ()
    crash: CrashCost = CrashCost()
    problem: str | None = None
    """Why it could not be explored."""
    killed: bool = False
    """Whether that is because it ended its process, or used more than the watchdog allows."""

    @property
    def explored(self) -> int:
        """Variations of one deviation that were played."""
        return sum(count.tried for count in self.proven.values())

    @property
    def failed(self) -> bool:
        """Whether an invariant does not hold, what some run must reach was never reached, or its process was killed."""
        return bool(self.failures) or not all(self.reached.values()) or self.killed


@dataclass(frozen=True, slots=True)
class Exploration:
    """Everything that was explored; `stopped` before all of it was."""

    scenarios: tuple[Explored, ...]
    stopped: bool = False

    @property
    def runs(self) -> int:
        """Runs in total."""
        return sum(one.runs for one in self.scenarios)

    @property
    def failed(self) -> bool:
        """Whether anything failed."""
        return any(one.failed for one in self.scenarios)

    @property
    def skipped(self) -> int:
        """How many scenarios could not be explored."""
        return sum(one.problem is not None for one in self.scenarios)

    @property
    def nothing(self) -> bool:
        """Whether none of the scenarios could be explored: that nothing fails then means nothing."""
        return self.skipped == len(self.scenarios)


T = TypeVar("T")


def reduced(parts: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> tuple[T, ...]:
    """Return a part of `parts`, which fail, that fails and of which no single one can be left out."""
    current, place = tuple(parts), 0
    while place < len(current) > 1:
        rest = current[:place] + current[place + 1 :]
        # What could not be left out before may be now.
        current, place = (rest, 0) if fails(rest) else (current, place + 1)
    return current


_OF_THE_FILE: Final = frozenset(
    {"suite", "path", "line", "file_digest", "proves", "expect", "expect_in", "goes_bad"}
)
"""What belongs to the place of the scenario, or to its undisturbed run."""

_UNSAFE: Final = re.compile(r"[^a-z0-9]+")


def case_name(scenario: Scenario, profile: str, invariant: str) -> str:
    """Return the name of a case's file, without its folder."""
    return f"{_slug(scenario.id)}-{_slug(profile)}-{_slug(invariant)}.yaml"


def case_text(scenario: Scenario, profile: str, failure: Failure, folder: Path) -> str:
    """Return the file of a case that will be written into `folder`."""
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
        f"# Found by `statek-sim explore`; `statek-sim explore --replay {name}` says FIXED or FAILED.\n"
        f"suite: found\n\nscenarios:\n  -{after_dash(entry)}\n"
    )


def _slug(text: str) -> str:
    return _UNSAFE.sub("-", text.casefold()).strip("-") or "case"
