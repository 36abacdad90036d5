from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from statek_sim.clock import EPOCH, VirtualClock


def test_a_clock_starts_at_second_zero_on_the_naive_epoch() -> None:
    clock = VirtualClock()
    assert clock.now() == 0.0
    assert clock.wall() == EPOCH.replace(tzinfo=None) == datetime(2026, 1, 1, 9, 0)


def test_wall_time_moves_with_virtual_seconds() -> None:
    clock = VirtualClock(datetime(2030, 5, 1, 23, 59, tzinfo=UTC))
    clock.advance(90)
    clock.advance_to(120.5)
    assert clock.now() == 120.5
    assert clock.wall() == datetime(2030, 5, 2, 0, 1, 0, 500_000)


def test_time_never_goes_back() -> None:
    clock = VirtualClock()
    clock.advance_to(5.0)
    with pytest.raises(ValueError, match=r"^virtual time cannot go back from 5\.0 to 4\.5$"):
        clock.advance_to(4.5)
    assert clock.now() == 5.0


def test_listeners_are_told_of_every_move_and_read_the_new_time() -> None:
    clock = VirtualClock()
    seen: list[float] = []
    clock.listeners.append(lambda: seen.append(clock.now()))
    clock.advance(1)
    clock.advance_to(1.0)
    assert seen == [1.0, 1.0]


@pytest.mark.parametrize(
    ("constant", "home"),
    [
        (r"^FOREVER\b.*= *10\.0", "statek_sim/clock.py"),
        (r"^\w+: Final = 255$", "statek_sim/cassettes/store.py"),
    ],
)
def test_a_limit_that_several_modules_share_is_written_once(constant: str, home: str) -> None:
    root = Path(__file__).parents[2]
    files = [*root.glob("statek_sim/**/*.py"), *root.glob("pytest_statek/**/*.py")]
    written = [file for file in files if re.search(constant, file.read_text("utf-8"), re.MULTILINE)]
    assert written == [root / home]
