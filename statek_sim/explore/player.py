"""The interface between the explorer and an engine: a `Player` plays variations, a `Run` is a played run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from statek_sim.backends.deviation_plan import Choice, Point
from statek_sim.errors import BadInput, StatekSimError, Untimely
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.schema import Scenario
from statek_sim.trace import Event

F = TypeVar("F", bound=Callable[..., object])

Invariant = Callable[[Any], str | None]
"""Takes a `Variation` or an `AgentVariation` and returns None, or a string that describes the problem."""

Footprint = frozenset[str]
"""The shared objects that a step touched."""

ANY_ORDER: Final = "any-order"
"""The tag for scenarios that have the same outcome in any execution order."""

REPEATS: Final = "the-run-repeats"
"""The invariant that a repeated run is equal to the original, checked for the base run and every fiftieth run."""

SURVIVES: Final = "the-runtime-survives"
"""The invariant that no deviation causes a runtime failure."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A violated invariant and the problem."""

    invariant: str
    message: str


def sometimes(function: F) -> F:
    """Mark an invariant that must return a string in at least one run of a scenario (rather than in none)."""
    function.__sometimes__ = True  # type: ignore[attr-defined]  # the mark
    return function


def is_sometimes(function: object) -> bool:
    """Return whether an invariant is marked with `sometimes`."""
    return bool(getattr(function, "__sometimes__", False))


class Run(Protocol):
    """A played run. `points` and `states` are recorded only for the base run."""

    @property
    def events(self) -> Sequence[Event]:
        """The trace."""

    @property
    def digest(self) -> str:
        """SHA-256 of the trace."""

    @property
    def effects(self) -> Counter[tuple[str, str]]:
        """The number of times each effect on the world occurred; a crash may repeat an effect."""

    @property
    def tool_calls(self) -> Counter[str]:
        """The number of times each tool was called."""

    @property
    def tokens(self) -> int:
        """Measured tokens across all answers, including those lost in a crash."""

    @property
    def points(self) -> Sequence[Point]:
        """The points at which the process may die."""

    @property
    def states(self) -> Sequence[Hashable]:
        """Digests that distinguish how a new process continues from each point."""

    @property
    def choices(self) -> Sequence[Choice]:
        """The points at which another order is possible."""

    @property
    def known(self) -> bool:
        """Whether the scenario contains every requested reply; if not, the run is checked up to the missing reply."""

    @property
    def came(self) -> str:
        """The outcome compared with the base run, as in `Cell.came`."""

    @property
    def absent(self) -> Sequence[str]:
        """The run's deviations that never applied."""


class Picking(Protocol):
    """Makes a run's choices and records those that differ from the base run."""

    def __call__(self, choice: Choice, trace: Sequence[Event], /) -> int:
        """Return the index of the option to continue first."""

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """The choices that differ from the base run."""


class Player(Protocol):
    """Plays variations of one scenario under one profile.

    `restart` is the number of virtual seconds until a new process starts. `touched` returns the shared objects that an
    event touches, or is None if the engine cannot determine them. `phases` contains the tool and its call phase
    (`before`, `during` or `after`) at each point, by point number.
    """

    scenario: Scenario
    profile: str
    restart: float
    built_in: Mapping[str, Invariant]
    touched: Callable[[Event], Footprint] | None
    phases: dict[int, set[tuple[str, str]]]

    @property
    def base(self) -> Run:
        """The run without deviations."""

    def singles(self, kinds: Sequence[str]) -> dict[str, list[Deviation]]:
        """Return the single deviations of these kinds that the scenario allows, in order by kind."""

    def varied(
        self, deviations: Sequence[Deviation], *, pick: Picking | None = None
    ) -> AbstractContextManager[Any]:
        """Play a variation, which can be queried inside the block."""

    def again(self) -> Run:
        """Play the base run again."""

    def crashes_after(self, first: Deviation) -> list[Deviation]:
        """Return kills at the distinct points after a run's first crash."""

    def refused(self, deviations: Sequence[Deviation], error: Exception) -> Violation:
        """Return the violation for a run ended by `error`; raise the error if the run did not cause it."""

    def verdict(self, run: Any, tool: str, phase: str, wrong: Iterable[Violation]) -> str:
        """Return a tool's verdict in a run with the violations `wrong`: safe, at least once, or leaks."""

    def two_owners(self) -> Iterable[Any]:
        """Yield runs in which a second owner does the same work."""


def ended_by(error: Exception) -> Violation:
    """Return the violation for a run that ended with an error.

    Errors that the run did not cause are raised: `Untimely` and the exploration's own errors.
    """
    if isinstance(error, Untimely) or (isinstance(error, StatekSimError) and not isinstance(error, BadInput)):
        raise error
    return Violation(SURVIVES, f"{type(error).__name__}: {error}")


def violations(run: Any, invariants: Mapping[str, Invariant]) -> tuple[Violation, ...]:
    """Check invariants, except those marked with `sometimes`, and return a run's violations."""
    found = ((name, check(run)) for name, check in invariants.items() if not is_sometimes(check))
    return tuple(Violation(name, message) for name, message in found if message is not None)
