"""Drift reports with real versions of STATEK as witnesses."""

from __future__ import annotations

import pytest

from statek_sim.drift.packages import check_packages
from statek_sim.drift.side import side_named
from statek_sim.errors import BadInput
from statek_sim.scenario.load import load_or_fail
from statek_sim.suite.run import builtin_suites
from tools.environments import on_this_python

PYTHONS = {one.release: str(one.interpreter) for one in on_this_python()}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        len(PYTHONS) < 2,
        reason="no two releases of STATEK here; `make thorough` and `make conformance` install them",
    ),
]


def test_both_packages_do_what_their_profiles_say_where_releases_differ() -> None:
    scenarios = load_or_fail([builtin_suites() / "versions"])
    before, after = list(PYTHONS)[-2:]

    checks = check_packages(list(PYTHONS.values())[-2:], scenarios, side_named(before), side_named(after))

    assert [check.matrix.version for check in checks] == [before, after]
    assert all(check.agreeing == {scenario.id for scenario in scenarios} for check in checks)


def test_an_interpreter_with_another_release_is_refused() -> None:
    *_, (version, python) = PYTHONS.items()
    message = rf"^--python .*: has statek {version}, which is neither docs nor 1\.2\.5$"

    with pytest.raises(BadInput, match=message):
        check_packages([python], (), side_named("docs"), side_named("1.2.5"))
