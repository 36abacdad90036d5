"""The interface between the explorer and an engine: `Player` plays variations of a scenario, `Run` is a played run."""

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
"""Takes a `Variation` or an `AgentVariation`, and returns a problem as a string, or None."""

Footprint = frozenset[str]
"""The shared objects that a step touched."""

ANY_ORDER: Final = "any-order"
"""The tag of a scenario with the same outcome in any order of execution."""

REPEATS: Final = "the-run-repeats"
"""The invariant that a repeated run is equal; it is checked for the undisturbed run and every fiftieth run."""

SURVIVES: Final = "the-runtime-survives"
"""The invariant that no deviation makes the runtime itself fail."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A violated invariant, and the problem."""

    invariant: str
    message: str


def sometimes(function: F) -> F:
    """Mark an invariant that must return a string in at least one run of a scenario, instead of in no run."""
    function.__sometimes__ = True  # type: ignore[attr-defined]  # the mark
    return function


def is_sometimes(function: object) -> bool:
    """Return whether an invariant is marked with `sometimes`."""
    return bool(getattr(function, "__sometimes__", False))


class Run(Protocol):
    """A played run. `points` and `states` are only recorded for the undisturbed run."""

    @property
    def events(self) -> Sequence[Event]:
        """The trace."""

    @property
    def digest(self) -> str:
        """SHA-256 of the trace."""

    @property
    def effects(self) -> Counter[tuple[str, str]]:
        """How often the run had each effect on the world; a crash may repeat an effect."""

    @property
    def tool_calls(self) -> Counter[str]:
        """How often each tool was called."""

    @property
    def tokens(self) -> int:
        """The measured tokens of all answers, including those that a crash lost."""

    @property
    def points(self) -> Sequence[Point]:
        """The points at which the process may die."""

    @property
    def states(self) -> Sequence[Hashable]:
        """Digests that distinguish how a new process continues from each point."""

    @property
    def choices(self) -> Sequence[Choice]:
        """The choices at which another order is possible."""

    @property
    def known(self) -> bool:
        """Whether the scenario has every requested reply; otherwise the run is checked up to the missing reply."""

    @property
    def came(self) -> str:
        """The outcome compared with the undisturbed run, as in `Cell.came`."""

    @property
    def absent(self) -> Sequence[str]:
        """The deviations of the run that never applied."""


class Picking(Protocol):
    """Makes the choices of one run, and records the choices that differ from the undisturbed run."""

    def __call__(self, choice: Choice, trace: Sequence[Event], /) -> int:
        """Return the index of the option that continues first."""

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """The choices that differ from the undisturbed run."""


class Player(Protocol):
    """Plays variations of one scenario under one profile.

    `restart` is the virtual seconds until a new process starts. `touched` returns the shared objects that an event
    touches; None if the engine does not know them. `phases` has the tool and the phase of its call (`before`, `during`
    or `after`) at each point, by point number.
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
        """Return the single deviations of these kinds that the scenario allows, in order per kind."""

    def varied(
        self, deviations: Sequence[Deviation], *, pick: Picking | None = None
    ) -> AbstractContextManager[Any]:
        """Play a variation; inside the block it can be queried."""

    def again(self) -> Run:
        """Play the undisturbed run again."""

    def crashes_after(self, first: Deviation) -> list[Deviation]:
        """Return kills at the distinct points that a run has after its first crash."""

    def refused(self, deviations: Sequence[Deviation], error: Exception) -> Violation:
        """Return the violation of a run ended by `error`; raise the error if it is not caused by the run."""

    def verdict(self, run: Any, tool: str, phase: str, wrong: Iterable[Violation]) -> str:
        """Return the verdict on a tool in a run with the violations `wrong`: safe, at least once, or leaks."""

    def two_owners(self) -> Iterable[Any]:
        """Yield runs in which a second owner does the same work."""


def ended_by(error: Exception) -> Violation:
    """Return the violation of a run that ended with an error.

    Errors that the run did not cause are raised: `Untimely`, and errors of the exploration itself.
    """
    if isinstance(error, Untimely) or (isinstance(error, StatekSimError) and not isinstance(error, BadInput)):
        raise error
    return Violation(SURVIVES, f"{type(error).__name__}: {error}")


def violations(run: Any, invariants: Mapping[str, Invariant]) -> tuple[Violation, ...]:
    """Check the invariants, except those marked with `sometimes`, and return the violations of a run."""
    found = ((name, check(run)) for name, check in invariants.items() if not is_sometimes(check))
    return tuple(Violation(name, message) for name, message in found if message is not None)
