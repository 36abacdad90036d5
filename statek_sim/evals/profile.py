"""Simulated models' profiles and their TOML files: rates of mistakes, call format, reaction to corrections.

All rates are assumptions, not measurements. A file must state why its author chose the rates.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from statek_sim.agent.rescue.rendering import RENDERINGS
from statek_sim.did_you_mean import with_suggestion
from statek_sim.errors import BadInput
from statek_sim.evals.outcome import FailureClass
from statek_sim.evals.random_draws import beta as beta_draw
from statek_sim.evals.wrong_replies import DAMAGES
from statek_sim.input_files import read_text, toml_in, why_no_toml

Tier = Literal["easy", "medium", "hard"]

HEEDS: Final = "heeds_nudge"
"""The rate at which the model follows a correction and acts correctly on that turn."""
STAYS: Final = "stays_in_loop"
"""The rate at which a model that has repeated a call repeats it again."""
INVENTS: Final = "invents_tool"
"""The fraction of wrong tools that do not exist."""
RENAMES: Final = "renames_argument"
"""The fraction of missing arguments that appear under another name."""
NATIVE: Final = "malformed_native"
"""The fraction of malformed calls that arrive as native calls with invalid JSON arguments rather than as text."""

RATES: Final = (HEEDS, STAYS, INVENTS, RENAMES, NATIVE)
"""The names of the rates under `[rates]` in a profile."""

UNREAD: Final = "no readable call"
UNREAD_CLASSES: Final = (FailureClass.EARLY_ANSWER, FailureClass.MALFORMED)
"""Two classes of mistakes with the same effect: a turn without a readable call.

They share one propensity for each scenario and one draw for each turn, so that neither hides the other.
"""


Share = Annotated[float, Field(ge=0.0, le=1.0)]
Above0 = Annotated[float, Field(gt=0.0)]
_FORMAT: Final = ConfigDict(extra="forbid", frozen=True)


class ClassRate(BaseModel):
    """The rate of a class of mistakes: `share` times a Beta(a, b) distribution over scenarios, for one tier or for all.

    Small models' mistakes are systematic, so each scenario has its own propensity, drawn from the distribution. Each
    turn is a draw with that probability. If several classes divide one distribution, their shares add up to 1.
    """

    model_config = _FORMAT
    failure: FailureClass = Field(alias="name")
    beta: tuple[Above0, Above0]
    tier: Tier | None = None
    share: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0

    @property
    def mean(self) -> float:
        """The mean propensity over scenarios."""
        return self.share * self.beta[0] / sum(self.beta)

    @property
    def name(self) -> str:
        """The name used in reports: the class, and the tier if the rate is for one tier."""
        return self.failure.value if self.tier is None else f"{self.failure.value} ({self.tier})"

    def propensity(self, *words: str) -> float:
        """Return a propensity from 0 to 1; `words` state its purpose, and equal words give equal propensities."""
        return self.share * beta_draw(*self.beta, *words)


class Profile(BaseModel):
    """A simulated model's profile.

    `assumed` explains why the rates were chosen. `window` is the maximum number of prompt tokens; longer prompts are
    rejected, as by a server. `context_loss` occurs only in prompts with at least `long_prompt` tokens. `damage` weights
    the kinds of damage to malformed calls. `scenarios` contains explicit propensities, which replace the draws.
    """

    model_config = _FORMAT
    # `schema` is a method of pydantic's models.
    named: Literal["statek-sim/evals-profile/1"] = Field(alias="schema", repr=False)
    name: Annotated[str, Field(min_length=1)]
    title: Annotated[str, Field(min_length=1)]
    assumed: Annotated[str, Field(min_length=1)]
    dialect: str
    window: Annotated[int, Field(ge=256, strict=True)]
    long_prompt: Annotated[int, Field(ge=1, strict=True)]
    classes: tuple[ClassRate, ...] = Field(alias="class")
    rates: dict[str, Share]
    damage: dict[str, Annotated[float, Field(ge=0.0)]]
    scenarios: dict[str, dict[FailureClass, Share]] = Field(default_factory=dict)

    @property
    def all_rates(self) -> dict[str, float]:
        """All rates, keyed by name.

        A class's rate is its mean over scenarios. `damage: KIND` is a fraction of the malformed calls that arrive as
        text.
        """
        whole = sum(self.damage.values())
        return {
            **{each.name: each.mean for each in self.classes},
            **self.rates,
            **{f"damage: {kind}": weight / whole for kind, weight in self.damage.items()},
        }

    def propensity(self, failure: FailureClass, scenario: str, tier: str) -> float:
        """Return the probability of a class on a turn in a scenario: an explicit value, or a draw from its Beta.

        The draw depends on the model's name, the scenario and the class, but not on a run's seed.
        """
        own = self.scenarios.get(scenario)
        if own is not None:
            return own.get(failure, 0.0)
        found = self._class_rate(failure, tier)
        if found is None:
            return 0.0
        drawn = UNREAD if failure in UNREAD_CLASSES else failure.value
        return found.propensity(self.name, scenario, drawn)

    def _class_rate(self, failure: FailureClass, tier: str) -> ClassRate | None:
        """Return the class's rate for the scenario's tier, or else for all tiers."""
        of_class = [each for each in self.classes if each.failure == failure]
        return next(
            (each for each in of_class if each.tier == tier),
            next((each for each in of_class if each.tier is None), None),
        )


IDEAL: Final = Profile.model_validate(
    {
        "schema": "statek-sim/evals-profile/1",
        "name": "ideal",
        "title": "A model that never fails",
        "assumed": "nothing: every rate is 0",
        "dialect": "json",
        "window": 1_000_000,
        "long_prompt": 1_000_000,
        "class": (),
        "rates": dict.fromkeys(RATES, 0.0),
        "damage": {},
    }
)
"""The profile of a model that makes no mistakes and follows an eval's plan."""


def shipped() -> tuple[str, ...]:
    """Return the names of the built-in profiles."""
    folder = files("statek_sim.evals") / "profiles"
    return tuple(
        sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))
    )


def load_profile(name: str) -> Profile:
    """Return the built-in profile with this name, or the one in the file at this path (`.toml`).

    Raises `BadInput` for an unknown name or an invalid file.
    """
    if name.endswith(".toml"):
        return read_profile(read_text(Path(name), remedy="; expected a profile file"), name)
    known = shipped()
    if name not in known:
        problem = f"unknown profile {name!r}; expected one of {', '.join(known)}, or the path of a .toml file"
        raise BadInput(with_suggestion(problem, name, known))
    found = files("statek_sim.evals") / "profiles" / f"{name}.toml"
    return read_profile(found.read_text(encoding="utf-8"), f"{name}.toml")


def read_profile(text: str, where: str) -> Profile:
    """Return the profile in TOML text; raises `BadInput` with the file's name (`where`) and the key."""
    try:
        return _checked(Profile.model_validate(toml_in(text)))
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{where}:{why_no_toml(error, text)}") from None
    except ValidationError as error:
        problems = "; ".join(f"{_path(problem['loc'])}: {problem['msg']}" for problem in error.errors())
        raise BadInput(f"{where}: {problems}") from None
    except ValueError as error:
        raise BadInput(f"{where}: {error}") from None


def _path(keys: Iterable[object]) -> str:
    return ".".join(map(str, keys)) or "the file"


def _checked(profile: Profile) -> Profile:
    _one_of(profile.dialect, RENDERINGS, "dialect")
    for kind in profile.damage:
        _one_of(kind, DAMAGES, "damage")
    if not sum(profile.damage.values()):
        raise ValueError("damage: all rates are 0; expected at least one above 0")
    for name in profile.rates:
        _one_of(name, RATES, "rates")
    missing = [name for name in RATES if name not in profile.rates]
    if missing:
        raise ValueError(f"rates: {', '.join(missing)} is missing; every profile has {', '.join(RATES)}")
    found = Counter((row.failure, row.tier) for row in profile.classes)
    for (failure, _), count in found.items():
        if count > 1:
            raise ValueError(f"class {failure.value}: listed twice for the same tier")
    absent = [each.value for each in FailureClass if all(each != failure for failure, _ in found)]
    if absent:
        raise ValueError(f"class: {', '.join(absent)} is missing; list every class, also rates near 0")
    return profile


def _one_of(name: str, known: Iterable[str], where: str) -> None:
    options = list(known)
    if name not in options:
        problem = f"{where}: {name!r} is unknown; expected one of {', '.join(options)}"
        raise ValueError(with_suggestion(problem, name, options))
