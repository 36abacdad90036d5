"""What a run may use of the machine, as people write it."""

from __future__ import annotations

import pytest

from statek_sim.cli.options import WATCHDOG
from statek_sim.errors import BadInput
from statek_sim.executors.limits import WatchdogLimits, parse_watchdog
from tests.tables import table_test


def test_limits_that_are_not_named_stay_as_usual() -> None:
    assert parse_watchdog("cpu=2.5, memory=512m") == WatchdogLimits(cpu=2.5, wall=60.0, memory=512 * 2**20)


def test_the_usual_limits_can_be_written_and_read_again() -> None:
    assert parse_watchdog(str(WatchdogLimits())) == WatchdogLimits()


def test_off_is_no_limits() -> None:
    assert parse_watchdog(" OFF ") is None


@table_test("text", ["", "cpu", "cpu=", "cpu=0", "cpu=-1", "cpu=2g", "memory=lots", "wall=nan", "seconds=3"])
def test_what_is_no_limit_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(BadInput, match=r"^--watchdog: .+(expected off|expected a number of)"):
        parse_watchdog(text)


def test_a_name_that_is_nearly_right_is_suggested() -> None:
    with pytest.raises(BadInput, match=r"Did you mean 'memory'\?$"):
        parse_watchdog("memroy=1g")


def test_the_default_of_the_commands_is_the_usual_limits() -> None:
    assert parse_watchdog(WATCHDOG) == WatchdogLimits()
