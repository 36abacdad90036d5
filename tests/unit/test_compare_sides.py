"""The sides of a drift report."""

from __future__ import annotations

import pytest

from statek_sim.compare.changes import Side, differing_rules, side_named
from statek_sim.errors import BadInput
from statek_sim.semantics import DOCS, V1_4
from tests.tables import table_test


@table_test(
    ("name", "side", "version"),
    [
        ("1.2.7", Side("1.2.7", "1.2"), "1.2.7"),
        ("1.2.6", Side("1.2.6", "1.2"), "1.2.6"),
        ("1.2", Side("1.2", "1.2"), None),
        ("1.2.5", Side("1.2.5", "1.2.5"), None),
        ("docs", Side("docs", "docs"), None),
        ("documentation", Side("docs", "docs"), None),
    ],
)
def test_a_side_is_a_profile_or_a_release_with_its_profile(
    name: str, side: Side, version: str | None
) -> None:
    assert side_named(name) == side
    assert side.version == version


def test_what_is_neither_is_refused_with_what_is_known() -> None:
    message = (
        r"^'1\.3\.3' is not a known release or profile; "
        r"expected one of: docs, 1\.2\.5, 1\.2, 1\.4, 1\.2\.7, 1\.4\.2\b"
    )
    with pytest.raises(BadInput, match=message):
        side_named("1.3.3")


def test_the_rules_that_differ_are_named_without_the_profiles_names() -> None:
    assert list(differing_rules(DOCS, V1_4)) == [
        "limit_extension",
        "as_tool_binds_assignment",
        "prints_stay_apart",
        "storage",
    ]
