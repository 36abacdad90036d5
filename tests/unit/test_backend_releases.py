"""The list of releases."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.backends.releases import newest, profile_of, releases
from statek_sim.errors import BadInput
from statek_sim.semantics import PROFILES


def test_releases_are_listed_oldest_first_each_with_a_profile() -> None:
    listed = releases()
    assert newest([release.version for release in listed]) == listed[-1].version
    assert {release.profile for release in listed} <= set(PROFILES)


def test_ci_runs_a_release_of_every_line_in_full() -> None:
    assert {release.line for release in releases() if release.ci} == {release.line for release in releases()}


@pytest.mark.parametrize(
    ("version", "profile"),
    [("1.2.5", "1.2.5"), ("1.2.6", "1.2"), ("1.2.7", "1.2"), ("1.4.2", "1.4"), ("1.3.0", None), ("2", None)],
)
def test_a_version_has_its_own_profile_or_that_of_its_line(version: str, profile: str | None) -> None:
    assert profile_of(version) == profile


def test_versions_are_compared_as_numbers() -> None:
    assert newest(["1.4.2", "1.10.0", "1.9.9"]) == "1.10.0"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "- {version: '1', profile: docs}",
            "1: a release has exactly the keys version, profile, pythons, ci",
        ),
        (
            "\n- {version: '1', profile: '9', pythons: ['3.11'], ci: true}",
            "2: version is a text, ci true or false, profile one of docs, 1.2.5, 1.2, 1.4",
        ),
        (
            "- {version: '1', profile: docs, pythons: '3.11', ci: true}",
            "1: pythons is a list like ['3.11', newer]",
        ),
        ("version: '1'", "1: expected a list of releases"),
    ],
)
def test_a_mistake_in_the_list_is_told_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "releases.yaml"
    path.write_text(text)
    with pytest.raises(BadInput) as told:
        releases(path)
    assert str(told.value) == f"{path}:{message}"
