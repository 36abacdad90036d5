"""Alerts held against drifts in simulated runs; the numbers of the documentation come from here."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.agent.telemetry.backtest import DRIFTS, Fleet, backtest, backtest_json, backtest_lines
from statek_sim.agent.telemetry.measures import METRICS, measure

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_every_alert_has_a_drift() -> None:
    assert [drift.metric for drift in DRIFTS] == [name for name, metric in METRICS.items() if metric.alerts]


def test_a_calm_fleet_is_as_it_was_drawn() -> None:
    found = measure(Fleet(1).tasks(60)).metrics
    value = {name: one.value or 0.0 for name, one in found.items()}
    assert 3 < value["steps_per_task"] < 5
    assert value["loop_detections"] == 0
    assert value["tool_error_rate"] < 0.06
    assert value["completion_rate"] >= 0.9


def test_equal_seeds_draw_equal_fleets() -> None:
    assert Fleet(3).tasks(5) == Fleet(3).tasks(5)
    assert Fleet(3).tasks(5) != Fleet(4).tasks(5)


@pytest.mark.parametrize("drift", DRIFTS, ids=lambda drift: drift.metric)
def test_a_drift_moves_its_metric(drift: object) -> None:
    fleet = Fleet(2)
    (found,) = [one for one in DRIFTS if one is drift]
    calm = measure(fleet.tasks(40)).metrics[found.metric].value
    after = measure(fleet.tasks(100, found.after, growth=found.growth)).metrics[found.metric].value
    assert calm is not None
    assert after is not None
    assert after < calm - 0.05 if found.metric == "completion_rate" else after > calm * 1.1


@pytest.mark.slow
def test_the_numbers_of_the_page_are_those_of_the_command() -> None:
    found = backtest()
    page = PAGE.read_text(encoding="utf-8")
    for line in backtest_lines(found):
        assert line in page
    assert sum(one.missed for one in found) <= 3
    assert sum(one.false_alarms for one in found) <= 3
    assert backtest_json(found)["schema"] == "statek-sim/backtest@1"
