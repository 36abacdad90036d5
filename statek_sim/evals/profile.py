"""Profiles of models, and their TOML files: failure rates, how a model writes calls, how it reacts to corrections.

All rates are assumptions, not measurements. A file must state why its author chose them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError

from statek_sim.agent.rescue.rendering import RENDERINGS
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.evals.chance import beta
from statek_sim.evals.mistakes import DAMAGES
from statek_sim.evals.outcome import FailureClass
from statek_sim.input_files import Unreadable, text_of, toml_in, why_no_toml, why_unreadable

Tier = Literal["easy", "medium", "hard"]

HEEDS: Final = "heeds_nudge"
"""How often a correction makes the model right on that turn."""
STAYS: Final = "stays_in_loop"
"""How often a model that repeated a call repeats it once more, and so on."""
INVENTS: Final = "invents_tool"
"""The share of wrong tools that do not exist."""
RENAMES: Final = "renames_argument"
"""The share of missing arguments that are given under another name."""
NATIVE: Final = "malformed_native"
"""The share of malformed calls that arrive as native calls with invalid JSON arguments, not as text."""

RATES: Final = (HEEDS, STAYS, INVENTS, RENAMES, NATIVE)
"""All single rates of a profile."""

UNREAD: Final = "no readable call"
UNREAD_CLASSES: Final = (FailureClass.EARLY_ANSWER, FailureClass.MALFORMED)
"""Two causes of the same failure, a turn without a readable call.

They are drawn together, per scenario, which has much of both or little, and per turn, so that each acts as often as its
propensity says and neither hides the other.
"""

_NONE: Final[Mapping[str, Mapping[FailureClass, float]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRate:
    """How often a class acts: a `share` of a Beta(a, b) over scenarios, for all tiers or for one.

    Failures of small models are systematic: a scenario has its own propensity, and each turn is a draw with that
    probability. The share is below 1 if several classes divide one Beta: their shares add up to 1.
    """

    failure: FailureClass
    a: float
    b: float
    tier: Tier | None = None
    share: float = 1.0

    @property
    def mean(self) -> float:
        """The mean propensity of scenarios."""
        return self.share * self.a / (self.a + self.b)

    @property
    def name(self) -> str:
        """Its name in reports."""
        return self.failure.value if self.tier is None else f"{self.failure.value} ({self.tier})"

    def propensity(self, *words: str) -> float:
        """Return the propensity for these words, from 0 to 1."""
        return self.share * beta(self.a, self.b, *words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One simulated model.

    `assumed`: why its rates were chosen. `window`: maximum prompt tokens; a longer prompt is refused, as servers do.
    `long_prompt`: tokens from which on `context_loss` may act. `damage`: weights of the kinds of damage to malformed
    calls. `scenarios` have explicit propensities instead of draws from the Betas.
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

        Classes are means over scenarios; `damage: KIND` is a kind's share of the malformed calls that arrive as text.
        """
        whole = sum(self.damage.values())
        return {
            **{each.name: each.mean for each in self.classes},
            **self.rates,
            **{f"damage: {kind}": weight / whole for kind, weight in self.damage.items()},
        }

    def propensity(self, failure: FailureClass, scenario: str, tier: str) -> float:
        """Return how often a class acts on a turn of a scenario: its explicit value, or a draw from the class's Beta.

        The draw depends on the model's name, the scenario and the class, but not on the seed of a run.
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
        """Return the rate of the scenario's tier, else the one for all tiers."""
        of_class = [each for each in self.classes if each.failure == failure]
        return next(
            (each for each in of_class if each.tier == tier),
            next((each for each in of_class if each.tier is None), None),
        )


IDEAL: Final = Profile(
    name="ideal",
    title="A model that never fails",
    assumed="nothing: every rate is 0",
    dialect="json",
    window=1_000_000,
    long_prompt=1_000_000,
    classes=(),
    rates=dict.fromkeys(RATES, 0.0),
    damage={},
)
"""The model that follows the plan of an eval."""

SCHEMA: Final = "statek-sim/evals-profile/1"
_STRICT: Final = ConfigDict(extra="forbid", strict=True)
Share = Annotated[float, Field(ge=0.0, le=1.0, strict=False)]
Above0 = Annotated[float, Field(gt=0.0, strict=False)]


class _Class(BaseModel):
    model_config = _STRICT
    name: FailureClass = Field(strict=False)
    beta: tuple[Above0, Above0] = Field(strict=False)
    share: float = Field(default=1.0, gt=0.0, le=1.0, strict=False)
    tier: Tier | None = None


class _File(BaseModel):
    model_config = _STRICT
    schema_: Literal["statek-sim/evals-profile/1"] = Field(alias="schema")
    name: str = Field(min_length=1)
    title: str = Field(min_length=1)
    assumed: str = Field(min_length=1)
    dialect: str
    window: int = Field(ge=256)
    long_prompt: int = Field(ge=1)
    classes: list[_Class] = Field(alias="class")
    rates: dict[str, Share]
    damage: dict[str, Annotated[float, Field(ge=0.0, strict=False)]]
    scenarios: dict[str, dict[Annotated[FailureClass, Strict(False)], Share]] = {}


def shipped() -> tuple[str, ...]:
    """Return the names of the profiles that come with the package."""
    folder = files("statek_sim.evals") / "profiles"
    return tuple(
        sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))
    )


def load_profile(name: str) -> Profile:
    """Return a shipped profile by name, or one from a file by path; `BadInput` says what is wrong with it."""
    if name.endswith(".toml"):
        path = Path(name)
        try:
            return read_profile(text_of(path), name)
        except Unreadable as error:
            raise BadInput(f"{name}: {why_unreadable(error, path)}; expected a profile file") from None
    known = shipped()
    if name not in known:
        raise BadInput(
            f"no profile is called {name!r}; expected one of {', '.join(known)}, or the path of a .toml file"
            f".{suggestion(name, known)}".removesuffix(".")
        )
    found = files("statek_sim.evals") / "profiles" / f"{name}.toml"
    return read_profile(found.read_text(encoding="utf-8"), f"{name}.toml")


def read_profile(text: str, where: str) -> Profile:
    """Return the profile in a file; `BadInput` names the file and the key."""
    try:
        return _profile(_File.model_validate(toml_in(text)))
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{where}:{why_no_toml(error, text)}") from None
    except ValidationError as error:
        problems = "; ".join(f"{_path(problem['loc'])}: {problem['msg']}" for problem in error.errors())
        raise BadInput(f"{where}: {problems}") from None
    except ValueError as error:
        raise BadInput(f"{where}: {error}") from None


def _path(keys: Iterable[object]) -> str:
    return ".".join(map(str, keys)) or "the file"


def _profile(file: _File) -> Profile:
    _one_of(file.dialect, RENDERINGS, "dialect")
    for kind in file.damage:
        _one_of(kind, DAMAGES, "damage")
    if not sum(file.damage.values()):
        raise ValueError("damage: all are 0; expected at least one way in which calls are damaged")
    for name in file.rates:
        _one_of(name, RATES, "rates")
    missing = [name for name in RATES if name not in file.rates]
    if missing:
        raise ValueError(f"rates: {', '.join(missing)} is missing; every profile has {', '.join(RATES)}")
    return Profile(
        name=file.name,
        title=file.title,
        assumed=file.assumed,
        dialect=file.dialect,
        window=file.window,
        long_prompt=file.long_prompt,
        classes=_classes(file.classes),
        rates=file.rates,
        damage=file.damage,
        scenarios=file.scenarios,
    )


def _classes(classes: Iterable[_Class]) -> tuple[ClassRate, ...]:
    found: dict[tuple[FailureClass, str | None], ClassRate] = {}
    for row in classes:
        if (row.name, row.tier) in found:
            raise ValueError(f"class {row.name.value}: it is there twice for the same tier")
        found[row.name, row.tier] = ClassRate(
            failure=row.name, a=row.beta[0], b=row.beta[1], share=row.share, tier=row.tier
        )
    absent = [each.value for each in FailureClass if all(each != name for name, _ in found)]
    if absent:
        raise ValueError(f"class: {', '.join(absent)} is missing; name a rate of nearly 0, too")
    return tuple(found.values())


def _one_of(name: str, known: Iterable[str], where: str) -> None:
    options = list(known)
    if name not in options:
        hint = suggestion(name, options)
        raise ValueError(
            f"{where}: {name!r} is unknown; expected one of {', '.join(options)}.{hint}".removesuffix(".")
        )
