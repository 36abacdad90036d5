"""`.env` files that set something else than a preset does (behaviour 11).

STATEK reads the `.env` of its working folder itself, but only fields by their own names (`MAX_TURNS`); a variable of
the environment, which a preset is, wins over it. Names with the prefix in such a file are nothing to STATEK, but
programs that load it into the environment (docker compose, `load_dotenv`) set them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from statek_sim.errors import BadSetting
from statek_sim.gate.gated_preset import GatedPreset
from statek_sim.gate.verdict import Place, Remark
from statek_sim.harness.limits import HarnessLimits
from statek_sim.harness.preset import assignments
from statek_sim.harness.settings import VARIABLES, StatekSettings, Variable

DOTENV: Final = ".env"

_FIELDS: Final[Mapping[str, Variable]] = {variable.field.upper(): variable for variable in VARIABLES.values()}
"""What STATEK reads from `.env` itself: fields by their names, in any letter case."""

_LIMITS: Final = frozenset(HarnessLimits.__dataclass_fields__)
"""Fields whose other value makes a verdict wrong."""


@dataclass(frozen=True, slots=True)
class Shadow:
    """A line of a `.env` that says something else. `decides`: STATEK takes its value and not the judged one."""

    place: Place
    message: str
    decides: bool


def shadows(preset: GatedPreset, folder: Path) -> Iterator[Shadow]:
    """Yield what the `.env` in `folder`, where STATEK is to run, says otherwise than the preset."""
    path = folder / DOTENV
    if not path.is_file():
        return
    if path.resolve() == preset.preset.path.resolve():
        message = (
            "STATEK reads no name with its prefix from .env itself; load this preset into the environment"
        )
        yield Shadow(Place(path, 1), message, False)
        return
    for line, name, value in assignments(path):
        found = _shadow(preset, name, value)
        if found is not None:
            yield Shadow(Place(path, line), *found)


def require_unshadowed(preset: GatedPreset, folder: Path) -> tuple[Remark, ...]:
    """Return what `.env` files in `folder` and beside the preset say otherwise without deciding anything.

    Raises `BadSetting`, a `path:line` each, for lines of `folder`'s that decide: the judged values would be others.
    """
    found = list(shadows(preset, folder))
    beside = preset.preset.path.parent
    if beside.resolve() != folder.resolve() and not preset.is_built_in:
        found += [
            Shadow(shadow.place, f"{shadow.message} (if STATEK runs there)", False)
            for shadow in shadows(preset, beside)
        ]
    wrong = [shadow for shadow in found if shadow.decides]
    if wrong:
        raise BadSetting("\n".join(f"{shadow.place}: {shadow.message}" for shadow in wrong))
    return tuple(Remark(preset=preset.name, place=shadow.place, message=shadow.message) for shadow in found)


def _shadow(preset: GatedPreset, name: str, value: str) -> tuple[str, bool] | None:
    field = _FIELDS.get(name.upper())
    variable = VARIABLES.get(name) or field
    if variable is None or _same(preset, variable, value):
        return None
    judged = getattr(preset.settings, variable.field)
    setting = f"{name}={value}"
    if field is None:
        return f"{setting}: {_named(preset)} has {judged}; what loads this file may set the former", False
    if variable.name in preset.preset.values:
        return f"{setting}: has no effect beside {variable.name}={judged} of {_named(preset)}", False
    why = f"STATEK takes this, since {_named(preset)} does not set {variable.name}, and {judged} is judged"
    return f"{setting}: {why}; set {variable.name} there, or remove this line", variable.field in _LIMITS


def _named(preset: GatedPreset) -> str:
    return f"preset {preset.name}"


def _same(preset: GatedPreset, variable: Variable, value: str) -> bool:
    try:
        read = StatekSettings(**{variable.field: variable.read(value)})
    except (ValueError, BadSetting):
        return False
    return bool(getattr(read, variable.field) == getattr(preset.settings, variable.field))
