"""A profile of a model: how often it fails in which way, how it writes calls, how it reacts to corrections.

All rates are assumed: nobody measured them, and each profile says why its author chose them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from statek_sim.evals.models.chance import beta_quantile, uniform
from statek_sim.evals.models.failures import FailureClass

Tier = Literal["easy", "medium", "hard"]

HEEDS: Final = "heeds_nudge"
"""How often a correction makes the model do the right thing on that turn."""
STAYS: Final = "stays_in_loop"
"""How often a model that made a call twice makes it a third time, and so on."""
INVENTS: Final = "invents_tool"
"""The share of wrong tools that do not exist."""
RENAMES: Final = "renames_argument"
"""The share of missing arguments that are there under another name."""
NATIVE: Final = "malformed_native"
"""The share of malformed calls that arrive as native calls with arguments that are no JSON, not as text."""

RATES: Final = (HEEDS, STAYS, INVENTS, RENAMES, NATIVE)
"""The single rates that a profile has, all of them."""

UNREAD: Final = "no readable call"
UNREAD_CLASSES: Final = (FailureClass.EARLY_ANSWER, FailureClass.MALFORMED)
"""Two ways to one thing, a turn without a readable call.

They are drawn together, for a scenario, which has much of both or little, and for a turn, so that each acts as often as
its own propensity says and neither hides the other.
"""

_NONE: Final[Mapping[str, Mapping[FailureClass, float]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRate:
    """How often a class acts: a `share` of a Beta(a, b) over scenarios, of all tiers or of one.

    Failures of small models are systematic: a scenario has its own propensity, and each turn is a draw with that. The
    share is below 1 where several classes divide one Beta: their shares add up to 1.
    """

    failure: FailureClass
    a: float
    b: float
    tier: Tier | None = None
    share: float = 1.0

    @property
    def mean(self) -> float:
        """The propensity of a scenario, on average."""
        return self.share * self.a / (self.a + self.b)

    @property
    def name(self) -> str:
        """As reports name it."""
        return self.failure.value if self.tier is None else f"{self.failure.value} ({self.tier})"

    def propensity(self, part: float) -> float:
        """Return the propensity that the given part of scenarios stays under, from 0 to 1."""
        return self.share * beta_quantile(part, self.a, self.b)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One simulated model.

    `assumed`: why its rates are what they are. `window`: tokens of a prompt that it takes; a longer one is refused, as
    servers do. `long_prompt`: tokens from which on `context_loss` may act. `damage`: weights of the ways in which
    malformed calls are damaged. `scenarios` have propensities of their own, in the place of draws from the Betas.
    """

    name: str
    title: str
    assumed: str
    dialect: str
    window: int
    long_prompt: int
    classes: tuple[ClassRate, ...]
    rates: Mapping[str, float]
    damage: Mapping[str, float]
    scenarios: Mapping[str, Mapping[FailureClass, float]] = field(default_factory=lambda: _NONE)

    @property
    def all_rates(self) -> dict[str, float]:
        """Return every rate by name.

        Classes are means over scenarios; `damage: KIND` is a kind's part of the malformed calls that arrive as text.
        """
        whole = sum(self.damage.values())
        return {
            **{each.name: each.mean for each in self.classes},
            **self.rates,
            **{f"damage: {kind}": weight / whole for kind, weight in self.damage.items()},
        }

    def propensity(self, failure: FailureClass, scenario: str, tier: str) -> float:
        """Return how often a class acts on a turn of a scenario: its own number, or a draw from the class's Beta.

        The draw belongs to the model's name, the scenario and the class, whatever the seed of a run.
        """
        own = self.scenarios.get(scenario)
        if own is not None:
            return own.get(failure, 0.0)
        found = self._class_rate(failure, tier)
        if found is None:
            return 0.0
        drawn = UNREAD if failure in UNREAD_CLASSES else failure.value
        return found.propensity(uniform(self.name, scenario, drawn, "propensity"))

    def _class_rate(self, failure: FailureClass, tier: str) -> ClassRate | None:
        """Return the rate of the scenario's tier, else the one for all tiers."""
        of_class = [each for each in self.classes if each.failure == failure]
        return next(
            (each for each in of_class if each.tier == tier),
            next((each for each in of_class if each.tier is None), None),
        )
