"""Upgrades with real versions of STATEK as witnesses."""

from __future__ import annotations

import pytest

from statek_sim.compare.changes import Side, check_interpreter, side_named, side_of
from statek_sim.compare.matrix import Verdict, run_matrix
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

    found = run_matrix(list(PYTHONS.values())[-2:], scenarios)

    assert [matrix.version for matrix in found] == [before, after]
    assert all(row.verdict is Verdict.AGREE for matrix in found for row in matrix.rows)


def test_the_side_of_an_interpreter_is_its_release() -> None:
    (version, python), *_ = PYTHONS.items()
    assert side_of(python) == Side(version, side_named(version).profile)


def test_an_interpreter_with_another_release_is_refused() -> None:
    *_, (version, python) = PYTHONS.items()
    message = rf"^--python .*: has statek {version}, which is neither docs nor 1\.2\.5$"

    with pytest.raises(BadInput, match=message):
        check_interpreter(python, side_named("docs"), side_named("1.2.5"))
