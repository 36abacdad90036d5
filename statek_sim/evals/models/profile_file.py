"""Profile files: TOML, one model each; a file that does not say why its rates are assumed is refused."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from statek_sim.agent.rescue.rendering import RENDERINGS
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.evals.models.failures import FailureClass
from statek_sim.evals.models.mistakes import DAMAGES
from statek_sim.evals.models.profile import RATES, ClassRate, Profile, Tier
from statek_sim.input_files import Unreadable, text_of, toml_in, why_no_toml, why_unreadable

SCHEMA: Final = "statek-sim/evals-profile/1"
_STRICT: Final = ConfigDict(extra="forbid", strict=True)


class _Class(BaseModel):
    model_config = _STRICT
    name: FailureClass = Field(strict=False)
    beta: tuple[float, float] = Field(strict=False)
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
    rates: dict[str, Annotated[float, Field(ge=0.0, le=1.0, strict=False)]]
    damage: dict[str, Annotated[float, Field(ge=0.0, strict=False)]]
    scenarios: dict[str, dict[str, Annotated[float, Field(ge=0.0, le=1.0, strict=False)]]] = {}


def shipped() -> tuple[str, ...]:
    """Return the names of the profiles that come with the package."""
    folder = files("statek_sim.evals") / "profiles"
    return tuple(
        sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))
    )


def load_profile(name: str) -> Profile:
    """Return a shipped profile by its name, or the one of a file by its path; `BadInput` says what is wrong with it."""
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
    """Return the profile that a file says; `BadInput` names the file and the key."""
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
        scenarios={name: _own(name, shares) for name, shares in file.scenarios.items()},
    )


def _classes(classes: Iterable[_Class]) -> tuple[ClassRate, ...]:
    found: dict[tuple[FailureClass, str | None], ClassRate] = {}
    for row in classes:
        where = f"class {row.name.value}"
        if min(row.beta) <= 0:
            raise ValueError(f"{where}: beta is {list(row.beta)}; expected two numbers above 0")
        if (row.name, row.tier) in found:
            raise ValueError(f"{where}: it is there twice for the same tier")
        found[row.name, row.tier] = ClassRate(
            failure=row.name, a=row.beta[0], b=row.beta[1], share=row.share, tier=row.tier
        )
    absent = [each.value for each in FailureClass if all(each != name for name, _ in found)]
    if absent:
        raise ValueError(f"class: {', '.join(absent)} is missing; name a rate of nearly 0, too")
    return tuple(found.values())


def _own(scenario: str, shares: dict[str, float]) -> dict[FailureClass, float]:
    for name in shares:
        _one_of(name, [each.value for each in FailureClass], f"scenarios.{scenario}")
    return {FailureClass(name): share for name, share in shares.items()}


def _one_of(name: str, known: Iterable[str], where: str) -> None:
    options = list(known)
    if name not in options:
        hint = suggestion(name, options)
        raise ValueError(
            f"{where}: {name!r} is unknown; expected one of {', '.join(options)}.{hint}".removesuffix(".")
        )
