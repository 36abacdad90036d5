"""A preset as the gate judges it: name, lines and limits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from statek_sim.errors import BadSetting
from statek_sim.gate.verdict import Place
from statek_sim.harness.limits import HarnessLimits, LimitName
from statek_sim.harness.preset import BUILT_IN, Preset, load_preset
from statek_sim.harness.settings import StatekSettings
from statek_sim.harness.variables import PREFIX

_PACKAGE: Final = Path(__file__).resolve().parent.parent


def shown_path(path: Path) -> Path:
    """Return `path` as it was given; a file of this package from the package's name on."""
    return path.relative_to(_PACKAGE.parent) if path.is_relative_to(_PACKAGE) else path


_EXTENSION: Final = f"{PREFIX}LIMIT_EXTENSION_PER_COMPLETION"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedPreset:
    """A preset under judgement. `name` is what was asked for; `runs_as` is what a scenario is run under."""

    name: str
    runs_as: str
    preset: Preset
    settings: StatekSettings

    @property
    def is_built_in(self) -> bool:
        """Whether it comes with this package."""
        return self.name in BUILT_IN

    @property
    def path(self) -> Path:
        """The file, as it is shown."""
        return shown_path(self.preset.path)

    @property
    def limits(self) -> HarnessLimits:
        """The limits it sets, the rest as STATEK has them."""
        return self.settings.harness_limits()

    def sets(self, limit: LimitName) -> bool:
        """Return whether the file says this limit."""
        return variable_of(limit) in self.preset.values

    def require_limits(self) -> None:
        """Raise BadSetting when the file says nothing about limits."""
        about_limits = {*map(variable_of, LimitName), _EXTENSION}
        if about_limits.isdisjoint(self.preset.values):
            raise BadSetting(
                f"{self.path}:1: sets no limit, so that every one would be STATEK's default; is it cut off? Judge "
                "the preset `default` for those, or say --allow-defaults"
            )

    def place(self, limit: LimitName | None) -> Place:
        """Return the line that sets `limit`; the file's first when none does, or no limit is meant."""
        line = 1 if limit is None else self.preset.lines.get(variable_of(limit), 1)
        return Place(self.path, line)


def gated_preset(name_or_path: str) -> GatedPreset:
    """Return the built-in preset of that name or the one in that file; `BadSetting` with a line per problem."""
    preset = load_preset(name_or_path)
    return GatedPreset(
        name=name_or_path,
        runs_as=name_or_path if name_or_path in BUILT_IN else str(preset.path.resolve()),
        preset=preset,
        settings=StatekSettings.from_env(preset.values),
    )


def variable_of(limit: LimitName) -> str:
    """Return the environment variable that sets a limit."""
    return PREFIX + limit.value.upper()
