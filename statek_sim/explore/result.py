"""What an exploration found: values that reports are made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from statek_sim.scenario.events import Deviation

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
