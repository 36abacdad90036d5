"""What an explorer knows of an engine: who plays variations of one scenario, and what can be asked of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Protocol, TypeVar

from statek_sim.backends.deviation_plan import Choice, Point
from statek_sim.errors import BadInput, StatekSimError, Untimely
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.schema import Scenario
from statek_sim.trace import Event
from statek_sim.usage.pricing import PriceList

F = TypeVar("F", bound=Callable[..., object])

Invariant = Callable[[Any], str | None]
"""Returns what is wrong with a run, None when nothing is; it takes a `Variation` or an `AgentVariation`."""

Footprint = frozenset[str]
"""What a step touched that another job's step may touch too."""

ANY_ORDER: Final = "any-order"
"""The tag of scenarios whose outcome must not depend on what goes on first."""

REPEATS: Final = "the-run-repeats"
"""The invariant that two runs with the same deviations are the same: of the undisturbed one, and every fiftieth."""

SURVIVES: Final = "the-runtime-survives"
"""The invariant that no deviation makes the runtime itself fail."""


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold, and what is wrong."""

    invariant: str
    message: str


def sometimes(function: F) -> F:
    """Mark a predicate of variations: over all runs of a scenario it must hold at least once."""
    function.__sometimes__ = True  # type: ignore[attr-defined]  # the mark
    return function


def is_sometimes(function: object) -> bool:
    """Return whether it is enough that some run reaches it."""
    return bool(getattr(function, "__sometimes__", False))


class Run(Protocol):
    """A run: what happened, and what was done to the world. `points` and `states` are noted of the undisturbed one."""

    @property
    def events(self) -> Sequence[Event]:
        """The trace."""

    @property
    def digest(self) -> str:
        """SHA-256 of the trace."""

    @property
    def effects(self) -> Counter[tuple[str, str]]:
        """What was done outside of the runs, which a crash may have done again."""

    @property
    def tool_calls(self) -> Counter[str]:
        """How often each tool was called."""

    @property
    def points(self) -> Sequence[Point]:
        """Where its process may die."""

    @property
    def states(self) -> Sequence[Hashable]:
        """What tells apart how a new process goes on from each point."""

    @property
    def choices(self) -> Sequence[Choice]:
        """Where something else may go on first."""

    @property
    def known(self) -> bool:
        """Whether the scenario says everything that was asked for; else it is judged as far as it went."""

    @property
    def came(self) -> str:
        """What came of it beside the undisturbed run, as `Cell.came` says it."""

    @property
    def absent(self) -> Sequence[str]:
        """The deviations that it gave no occasion for."""


class Picking(Protocol):
    """Makes the choices of one run, and says where it made others than the undisturbed one."""

    def __call__(self, choice: Choice, trace: Sequence[Event], /) -> int:
        """Return the place of what goes on first."""

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """The choices that were made otherwise."""


class Player(Protocol):
    """Plays variations of one scenario under one profile.

    `singles` are its deviations by kind, `restart` the seconds until a new process comes. `touched` says what an event
    touches that belongs to several jobs, None: nobody knows. `phases` are the calls of tools that moments are about, by
    the numbers of the points: `before`, `during` and `after` a call.
    """

    scenario: Scenario
    profile: str
    restart: float
    built_in: Mapping[str, Invariant]
    touched: Callable[[Event], Footprint] | None
    phases: dict[int, set[tuple[str, str]]]

    @property
    def base(self) -> Run:
        """The undisturbed run."""

    def singles(self, kinds: Sequence[str]) -> dict[str, list[Deviation]]:
        """Return the single deviations of these kinds that the scenario gives occasion for, each kind's in order."""

    def varied(
        self, deviations: Sequence[Deviation], *, pick: Picking | None = None
    ) -> AbstractContextManager[Any]:
        """Play a variation; it can be asked everything inside the block."""

    def again(self) -> Run:
        """Play the undisturbed run once more."""

    def crashes_after(self, first: Deviation) -> list[Deviation]:
        """Return kills at the distinct moments that a run has after its first crash."""

    def refused(self, deviations: Sequence[Deviation], error: Exception) -> Violation:
        """Return what is wrong with a run that `error` ended; raises it where it says nothing about the run."""

    def used(self, run: Any, prices: PriceList | None) -> tuple[int, Decimal | None]:
        """Return the measured tokens and the cost of all answers of a run; None: nobody knows that."""

    def verdict(self, run: Any, tool: str, phase: str, wrong: Iterable[Violation]) -> str:
        """Return what became of a tool's effect in a run, in the words of certificates."""

    def two_owners(self) -> Iterable[Any]:
        """Yield runs in which a second owner does the same work."""


def ended_by(error: Exception) -> Violation:
    """Return what is wrong with a run that a bug ended, or that is refused as the undisturbed one was not.

    Raises an error that says nothing about the run: `Untimely`, and what is wrong with who explores.
    """
    if isinstance(error, Untimely) or (isinstance(error, StatekSimError) and not isinstance(error, BadInput)):
        raise error
    return Violation(SURVIVES, f"{type(error).__name__}: {error}")


def violations(run: Any, invariants: Mapping[str, Invariant]) -> tuple[Violation, ...]:
    """Return what is wrong with a run."""
    found = ((name, check(run)) for name, check in invariants.items() if not is_sometimes(check))
    return tuple(Violation(name, message) for name, message in found if message is not None)
