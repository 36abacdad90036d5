"""A real SIGKILL at a commit, and a new process that goes on: the trace is that of a simulated kill, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.explore.plan import distinct_points, kill_at, restart_of
from statek_sim.explore.variation import undisturbed, varied
from tests.explore import samples
from tests.store.dying import killed_run
from tools.durability import Tally, pairs, resumed, stored_points, try_point

EVERY = 15
"""Of the built-in scenarios every so manieth is killed, at two places."""


@pytest.mark.parametrize("text", [samples.CLAIM, samples.WAITS], ids=["claims", "waits"])
def test_every_distinct_crash_point_leaves_the_trace_of_the_simulated_kill(tmp_path: Path, text: str) -> None:
    scenario = samples.scenario(tmp_path, text)
    base, _ = undisturbed(scenario, "docs")
    points = distinct_points(base)[::3]
    for number, point in enumerate(points):
        address = f"sqlite:{tmp_path / f'{number}.db'}"
        killed_run(address, scenario, "docs", point.place, said=base.said)
        digest, commit, _ = resumed(address, base)
        # In the middle of what the application does, nothing of it was committed.
        assert commit == point.place or point.what in ("JobCreated", "UserMessage"), point
        if commit is not None:
            with varied(base, [kill_at(point._replace(place=commit), restart_of(base))]) as simulated:
                assert digest == simulated.digest, point


@pytest.mark.slow
def test_built_in_scenarios_that_are_killed_for_real_leave_the_trace_of_the_simulated_kill(
    tmp_path: Path,
) -> None:
    """A share of what `python -m tools.durability` does."""
    tally = Tally()
    for scenario, profile in [*pairs(None, ())][::EVERY]:
        if "restart" in scenario.id:
            # One of them has 1,694 points, each of them a walk over 250 jobs.
            continue
        base, _ = undisturbed(scenario, profile)
        points = stored_points(base)
        for point in points[1 :: max(len(points) // 2, 1)]:
            try_point(tally, base, point, tmp_path)
    assert tally.wrong == []
    assert tally.alike == tally.killed > 40
