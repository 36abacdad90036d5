"""A page stays small enough to be sent, and can be made of very many runs."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import pytest

from statek_sim.reporting.page.data import ROOM, render
from statek_sim.scenario.load import load_or_fail
from statek_sim.suite.result import Mismatch, ScenarioResult
from statek_sim.suite.run import builtin_suites, run_suite
from tests.unit.page_samples import page
from tests.unit.reporting_samples import english, result

RUNS = 10_000
FAILED_EVERY = 1_000
MEGABYTE = 1_000_000


def many(number: int) -> Iterator[ScenarioResult]:
    """Yield runs that differ in their names, every thousandth failed."""
    sample = result("many/sample", english(6))
    for n in range(number):
        wrong = () if n % FAILED_EVERY else (Mismatch(("idle",), True, False),)
        scenario = sample.scenario.model_copy(update={"id": f"run-{n:05}"})
        yield replace(sample, scenario=scenario, mismatches=wrong)


@pytest.mark.slow
def test_a_page_of_a_hundred_scenarios_takes_less_than_three_megabytes() -> None:
    hundred = list(islice(run_suite(load_or_fail([builtin_suites()]), profiles=["docs"]), 100))
    assert len(hundred) == 100
    assert len(render(page(*hundred)).encode("utf-8")) < 3 * MEGABYTE


def test_making_a_page_takes_little_more_memory_than_its_text() -> None:
    results = list(many(500))
    render(page(*results[:1]))  # what is loaded once
    tracemalloc.start()
    text = render(page(*results))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(text) > 2 * MEGABYTE
    # The data, a copy of it that the template marks as safe, and the page itself.
    assert peak < 4.5 * len(text)


@pytest.mark.slow
def test_ten_thousand_runs_make_a_page_of_bounded_size_that_names_them_all() -> None:
    data = page(*many(RUNS))
    index = json.loads(data.index)
    assert len(index["runs"]) == RUNS
    assert set(range(0, RUNS, FAILED_EVERY)) <= set(data.details)
    assert 0 < index["left_out"] == RUNS - len(data.details) < RUNS
    assert len(render(data)) < ROOM + 10 * MEGABYTE
