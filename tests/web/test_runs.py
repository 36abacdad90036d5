"""The list of runs: filters, addresses that can be sent to others, and the way back."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from statek_sim.reporting.page.data import PageData
from tests.web.conftest import CROWD
from tests.web.visit import Visit

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("address", "wanted"),
    [
        ("#/runs?suite=hostile", ["hostile/markup[docs]", "hostile/wrong[docs]"]),
        ("#/runs?suite=hostile&outcome=failed", ["hostile/wrong[docs]"]),
        ("#/runs?tag=markup", ["hostile/markup[docs]"]),
        ("#/runs?text=ends+EXPECTED", []),
        ("#/runs?text=end+EXPECTED", ["hostile/wrong[docs]"]),
    ],
)
def test_an_address_holds_the_filters(visit: Visit, address: str, wanted: list[str]) -> None:
    visit.open(address)
    expect(visit.rows().locator("th a")).to_have_text(wanted)


def test_choosing_a_filter_shows_its_runs_says_how_many_and_changes_the_address(visit: Visit) -> None:
    page = visit.open()
    page.get_by_label("Suite", exact=True).select_option("hostile")
    expect(visit.rows()).to_have_count(2)
    expect(page.locator("#runs [role=status]")).to_contain_text("2 runs, filtered from")
    page.get_by_label("Outcome", exact=True).select_option("failed")
    expect(visit.rows()).to_have_count(1)
    assert page.url.endswith("#/runs?suite=hostile&outcome=failed")
    page.go_back()
    expect(visit.rows()).to_have_count(2)
    expect(page.get_by_label("Outcome", exact=True)).to_have_value("")


def test_typing_filters_at_once_and_leaves_no_steps_for_the_back_button(visit: Visit) -> None:
    page = visit.open("#/runs")
    before = page.evaluate("history.length")
    page.get_by_label("Text", exact=True).press_sequentially("wrong[")
    expect(visit.rows().locator("th a")).to_have_text(["hostile/wrong[docs]"])
    assert page.evaluate("history.length") == before
    expect(page.get_by_label("Text", exact=True)).to_be_focused()
    page.get_by_role("link", name="Clear").click()
    expect(page.get_by_label("Text", exact=True)).to_have_value("")


def test_a_column_sorts_the_runs(visit: Visit, page_of_samples: PageData) -> None:
    runs = json.loads(page_of_samples.index)["runs"]
    page = visit.open("#/runs")
    page.get_by_role("link", name="Sort by measured, tokens").click()
    largest = max(runs, key=lambda run: run["measured"])
    expect(visit.rows().first.locator("th a")).to_have_text(largest["name"])


def test_a_run_opens_and_back_leads_to_the_same_filters_and_place(visit: Visit) -> None:
    page = visit.open("#/runs?suite=hostile")
    page.get_by_role("link", name="hostile/wrong[docs]").last.click()
    expect(page.locator("h1")).to_have_text("A run that does not end as expected")
    expect(page.locator("h1")).to_be_focused()
    page.go_back()
    expect(visit.rows()).to_have_count(2)
    expect(visit.rows().get_by_role("link", name="hostile/wrong[docs]")).to_be_focused()


def test_the_link_back_in_a_run_leads_to_the_list_as_it_was(visit: Visit) -> None:
    page = visit.open("#/runs?suite=hostile")
    visit.rows().get_by_role("link", name="hostile/wrong[docs]").click()
    page.get_by_role("link", name="Back to the list").click()
    expect(visit.rows()).to_have_count(2)


def test_the_parts_of_the_report_are_one_step_away_from_a_run(visit: Visit) -> None:
    page = visit.open("#/run/hostile/wrong[docs]")
    page.get_by_role("link", name="Gate", exact=True).click()
    expect(page.get_by_role("heading", name="Presets and the gate")).to_be_focused()


def test_an_address_of_no_run_says_so(visit: Visit) -> None:
    page = visit.open("#/run/hostile/gone[docs]")
    expect(page.locator("h1")).to_have_text("No such run")
    expect(page.locator("main")).to_contain_text("hostile/gone[docs]")


@pytest.mark.parametrize(
    "address", ["#/run/%E0%A4%A", "#/nowhere?page=-3&sort=nothing", "#?%%%", "#/runs?page=9999"]
)
def test_a_damaged_address_breaks_nothing(visit: Visit, address: str) -> None:
    page = visit.open(address)
    expect(page.locator("h1")).to_have_count(1)


def test_ten_thousand_runs_are_listed_a_page_at_a_time(crowded: Visit) -> None:
    page = crowded.open("#/runs")
    expect(crowded.rows()).to_have_count(25)
    expect(page.locator("#runs [role=status]")).to_have_text(f"Runs 1 to 25 of {CROWD:,}")
    assert page.evaluate("document.querySelectorAll('main *').length") < 3000
    page.get_by_role("link", name="Next page").click()
    expect(crowded.rows().first.locator("th a")).to_have_text("crowd/run-25[docs]")
    page.get_by_label("Text", exact=True).fill("run-9999[")
    expect(crowded.rows().locator("th a")).to_have_text(["crowd/run-9999[docs]"])
    page.get_by_label("Text", exact=True).fill("")
    page.get_by_label("Outcome", exact=True).select_option("failed")
    expect(page.locator("#runs [role=status]")).to_have_text(
        f"Runs 1 to 25 of 1,000, filtered from {CROWD:,}"
    )


def test_a_run_whose_details_were_left_out_says_so(crowded: Visit) -> None:
    page = crowded.open("#/run/crowd/run-7[docs]")
    expect(page.locator("article")).to_contain_text("This run's details were omitted")
