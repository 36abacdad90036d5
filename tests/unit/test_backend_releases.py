"""The list of releases."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from pytest_statek import options
from statek_sim.cli import options as command_options
from statek_sim.runtime.tools.spec import system_tool_specs
from statek_sim.semantics import PROFILES, RELEASES, profile_of
from tests.tables import table_test


def test_releases_are_listed_oldest_first_each_with_a_profile() -> None:
    numbers = [tuple(map(int, release.version.split("."))) for release in RELEASES]
    assert numbers == sorted(numbers)
    assert {release.profile for release in RELEASES} <= set(PROFILES)


@table_test(
    ("version", "profile"),
    [("1.2.5", "1.2.5"), ("1.2.6", "1.2"), ("1.2.7", "1.2"), ("1.4.2", "1.4"), ("1.3.0", None), ("2", None)],
)
def test_a_version_has_its_own_profile_or_that_of_its_line(version: str, profile: str | None) -> None:
    assert profile_of(version) == profile


@pytest.mark.parametrize("module", [command_options, options])
def test_help_texts_name_every_profile(module: ModuleType) -> None:
    # They are written there, since `--help` and every run of pytest would wait for an import.
    assert " or ".join(", ".join(PROFILES).rsplit(", ", 1)) in Path(str(module.__file__)).read_text("utf-8")


def test_every_release_has_the_system_tools_that_its_profile_names() -> None:
    assert all(system_tool_specs(profile.system_tools) for profile in PROFILES.values())
