"""The page of an experiment in a browser: arms, scenarios, where failures went, and transcripts to click."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from statek_sim.evals.arms import parse_arms
from statek_sim.evals.experiment import Experiment, run_experiment
from statek_sim.evals.outcome import FailureClass
from statek_sim.evals.summary import summarised
from statek_sim.executors.executor import SerialExecutor
from statek_sim.reporting.page.data import render
from statek_sim.reporting.page.evals import evals_page
from tests.evals.weak_models import eval_named, failing
from tests.tables import table_test
from tests.web.test_accessible import faults
from tests.web.visit import Scheme, Visit, visiting

pytestmark = pytest.mark.browser

TOO_NARROW = """all => all.filter(cell => {
    const text = document.createRange();
    text.selectNodeContents(cell);
    const lines = text.getBoundingClientRect().height / parseFloat(getComputedStyle(cell).fontSize);
    const broken = !/[ -]/.test(cell.innerText) && lines > 2;
    return broken || text.getBoundingClientRect().right > cell.getBoundingClientRect().right + 1;
}).map(cell => cell.innerText)"""
"""Returns what cells say whose text goes beyond them, or whose only word stands on two lines."""
SCENARIOS = ("weather-now", "convert-money", "refund-the-late-order")


@pytest.fixture(scope="module")
def experiment_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    experiment = Experiment(
        suite=tuple(map(eval_named, SCENARIOS)),
        model=failing(FailureClass.EARLY_ANSWER, FailureClass.MALFORMED, rate=0.5),
        arms=parse_arms(["ablation"]),
        seeds=4,
    )
    outcomes = run_experiment(experiment, SerialExecutor())
    path = tmp_path_factory.mktemp("evals") / "evals.html"
    path.write_text(render(evals_page(summarised(experiment, outcomes), outcomes)), "utf-8")
    return path


@pytest.fixture
def experiment(chromium: Browser, experiment_page: Path) -> Iterator[Visit]:
    with visiting(chromium, experiment_page) as started:
        yield started


def test_a_cell_leads_to_what_was_said_and_back_to_the_cell(experiment: Visit) -> None:
    page = experiment.open("#/matrix")
    experiment.see_all()
    expect(page.locator("#matrix .cell")).to_have_count(21)
    cell = page.locator('a[data-cell="weather-now[bare]"]')
    cell.focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("The weather of one city")
    expect(page.locator("h1")).to_be_focused()
    expect(page.locator(".transcript li").first).to_be_visible()
    expect(page.locator("#seeds tbody tr")).to_have_count(4)
    page.get_by_text("Back to the scenarios").click()
    expect(page.locator('a[data-cell="weather-now[bare]"]')).to_be_focused()


def test_failures_are_counted_in_the_arm_that_is_chosen(experiment: Visit) -> None:
    page = experiment.open("#/flow")
    expect(page.locator("#flow table")).to_contain_text("early answer")
    page.get_by_label("In the arm").select_option("bare")
    expect(page.locator("#flow caption")).to_contain_text("in bare")
    expect(page.locator("#flow tbody tr").first).to_be_visible()


def test_an_unknown_cell_says_so(experiment: Visit) -> None:
    page = experiment.open("#/run/nothing[bare]")
    expect(page.locator("h1")).to_have_text("No such run")
    page.get_by_text("Show all runs").click()
    expect(page.locator("#matrix-title")).to_be_focused()


@pytest.mark.parametrize("address", ["", "#/flow", "#/run/refund-the-late-order[full]"])
def test_on_a_telephone_nothing_of_an_experiment_is_wider_than_the_screen(
    chromium: Browser, experiment_page: Path, address: str
) -> None:
    with visiting(chromium, experiment_page, width=390, scheme="dark") as visit:
        page = visit.open(address)
        visit.see_all()
        assert page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.parametrize(("address", "part"), [("#/tests", "#tests"), ("#/run/convert-money[full]", "main")])
def test_on_a_telephone_no_number_is_cut_off_and_no_word_broken(
    chromium: Browser, experiment_page: Path, address: str, part: str
) -> None:
    with visiting(chromium, experiment_page, width=390) as visit:
        page = visit.open(address)
        visit.see_all()
        cells = page.locator(f"{part} .stacked td")
        assert cells.count() > 0
        assert cells.evaluate_all(TOO_NARROW) == []


@table_test("scheme", ["light", "dark"])
@table_test("address", ["", "#/run/convert-money[bare]"])
def test_axe_finds_no_serious_fault_on_a_page_of_an_experiment(
    chromium: Browser, experiment_page: Path, address: str, scheme: Scheme
) -> None:
    with visiting(chromium, experiment_page, scheme=scheme) as visit:
        page = visit.open(address)
        visit.see_all()
        assert faults(page) == []
