"""A preset for the gate: its limits and their line numbers, values without effect, and conflicting `.env` files.

STATEK reads `.env` from its working folder (behaviour 11), but only names without its prefix, such as `MAX_TURNS`.
Environment variables, which a preset sets, take precedence. STATEK ignores prefixed names in this file, but programs
that load it into the environment (docker compose, `load_dotenv`) turn them into variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from statek_sim.errors import BadSetting
from statek_sim.gate.verdict import Place, Remark
from statek_sim.harness.limits import HarnessLimits, LimitName
from statek_sim.harness.preset import BUILT_IN, Preset, assignments, load_preset
from statek_sim.harness.settings import PREFIX, VARIABLES, StatekSettings, Variable

TURNS = LimitName.MAX_TURNS
TOTAL = LimitName.MAX_EXCEPTIONS
STREAK = LimitName.MAX_CONSECUTIVE_EXCEPTIONS


def idle_values(preset: GatedPreset) -> Iterator[Remark]:
    """Yield a remark for each value that has no effect."""
    limits = preset.limits
    total, streak, turns = limits.max_exceptions, limits.max_consecutive_exceptions, limits.max_turns
    if total and streak is not None and streak >= total:
        # A streak of n failing turns is at least n exceptions, and the total is checked first. Extensions preserve
        # this.
        message = (
            f"{variable_of(STREAK)}={streak} has no effect: a longer streak also exceeds {variable_of(TOTAL)}={total}, "
            f"which is checked first; expected less than {total}"
        )
        yield _remark(preset, STREAK, message)
    if turns == 0:
        message = f"{variable_of(TURNS)}=0: a job receives its first reply, but the code never runs"
        yield _remark(preset, TURNS, message)
    if limits.limit_extension_per_completion:
        yield from _never_extended(preset)


def _never_extended(preset: GatedPreset) -> Iterator[Remark]:
    for limit in LimitName:
        if getattr(preset.limits, limit.value) == 0:
            message = f"{variable_of(limit)}=0: completions never extend it, because STATEK 1.3.0 and later multiply it"
            yield _remark(preset, limit, message)


def _remark(preset: GatedPreset, limit: LimitName, message: str) -> Remark:
    return Remark(preset=preset.name, place=preset.place(limit), message=message)


_PACKAGE: Final = Path(__file__).resolve().parent.parent


def shown_path(path: Path) -> Path:
    """Return `path` unchanged, or for a file in this package, its path starting with the package name."""
    return path.relative_to(_PACKAGE.parent) if path.is_relative_to(_PACKAGE) else path


_EXTENSION: Final = f"{PREFIX}LIMIT_EXTENSION_PER_COMPLETION"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedPreset:
    """A preset that the gate checks: the `name` as requested, and `runs_as`, the name that scenarios use."""

    name: str
    runs_as: str
    preset: Preset
    settings: StatekSettings

    @property
    def is_built_in(self) -> bool:
        """Whether the preset is part of this package."""
        return self.name in BUILT_IN

    @property
    def path(self) -> Path:
        """The preset's file, as shown in messages."""
        return shown_path(self.preset.path)

    @property
    def limits(self) -> HarnessLimits:
        """The preset's limits, with STATEK's defaults for limits that it does not set."""
        return self.settings.harness_limits()

    def sets(self, limit: LimitName) -> bool:
        """Return whether the preset's file sets this limit."""
        return variable_of(limit) in self.preset.values

    def require_limits(self) -> None:
        """Raise `BadSetting` if the preset's file sets no limit."""
        about_limits = {*map(variable_of, LimitName), _EXTENSION}
        if about_limits.isdisjoint(self.preset.values):
            raise BadSetting(
                f"{self.path}:1: sets no limits, so STATEK's defaults would apply; the file may be truncated. To "
                "check the defaults, use the preset `default` or --allow-defaults"
            )

    def place(self, limit: LimitName | None) -> Place:
        """Return the line in the file that sets `limit`, or else the first line."""
        line = 1 if limit is None else self.preset.lines.get(variable_of(limit), 1)
        return Place(self.path, line)


def gated_preset(name_or_path: str) -> GatedPreset:
    """Return the built-in preset with this name, or the preset in this file.

    Raises `BadSetting` with a line per problem.
    """
    preset = load_preset(name_or_path)
    return GatedPreset(
        name=name_or_path,
        runs_as=name_or_path if name_or_path in BUILT_IN else str(preset.path.resolve()),
        preset=preset,
        settings=StatekSettings.from_env(preset.values),
    )


def variable_of(limit: LimitName) -> str:
    """Return the name of the environment variable that sets a limit."""
    return PREFIX + limit.value.upper()


DOTENV: Final = ".env"

_FIELDS: Final[Mapping[str, Variable]] = {variable.field.upper(): variable for variable in VARIABLES.values()}
"""The settings that STATEK reads from `.env`, by upper-case field name."""

_LIMITS: Final = frozenset(HarnessLimits.__dataclass_fields__)
"""The fields that affect verdicts."""


@dataclass(frozen=True, slots=True)
class Shadow:
    """A line in a `.env` file whose value differs from the preset's.

    `decides` means that STATEK would use this value instead of the checked one.
    """

    place: Place
    message: str
    decides: bool


def shadows(preset: GatedPreset, folder: Path) -> Iterator[Shadow]:
    """Yield the lines that differ from the preset in the `.env` in `folder`, STATEK's working folder."""
    path = folder / DOTENV
    if not path.is_file():
        return
    if path.resolve() == preset.preset.path.resolve():
        message = (
            "STATEK does not read names with its prefix from .env; load this preset into the environment"
        )
        yield Shadow(Place(path, 1), message, False)
        return
    for line, name, value in assignments(path):
        found = _shadow(preset, name, value)
        if found is not None:
            yield Shadow(Place(path, line), *found)


def require_unshadowed(preset: GatedPreset, folder: Path) -> tuple[Remark, ...]:
    """Return remarks on lines that differ from the preset, in the `.env` files in `folder` and next to the preset.

    Raises `BadSetting`, with a `path:line` for each, for lines in `folder` that STATEK would use instead of the checked
    values.
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
        return (
            f"{setting}: {_named(preset)} has {judged}; a program that loads this file may use {value}",
            False,
        )
    if variable.name in preset.preset.values:
        return f"{setting}: no effect, because {variable.name}={judged} in {_named(preset)}", False
    why = f"STATEK uses this value, because {_named(preset)} does not set {variable.name}; the gate checks {judged}"
    return (
        f"{setting}: {why}; set {variable.name} in the preset, or remove this line",
        variable.field in _LIMITS,
    )


def _named(preset: GatedPreset) -> str:
    return f"preset {preset.name}"


def _same(preset: GatedPreset, variable: Variable, value: str) -> bool:
    try:
        read = StatekSettings(**{variable.field: variable.read(value)})
    except (ValueError, BadSetting):
        return False
    return bool(getattr(read, variable.field) == getattr(preset.settings, variable.field))
