"""A run's own page: its jobs in time, what they used, and all that was said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from statek_sim.reporting.page.data import PageData
from tests.web.report_samples import LOST, NUDGED
from tests.web.visit import Visit, visiting

pytestmark = pytest.mark.browser

LATER = "isolation/jobs-come-later[docs]"
LARGE = "harness/tokens-large-output[docs]"


def details(page: PageData, name: str) -> Any:
    """Return the details of a run by its name."""
    (n,) = (run["n"] for run in json.loads(page.index)["runs"] if run["name"] == name)
    return json.loads(page.details[n])


def marks(told: Any) -> list[int]:
    """Return the events that have a mark: those of the transcript, without what was only printed."""
    shown = [entry["seq"] for entry in told["transcript"] if entry["kind"] != "console" or entry["error"]]
    return list(dict.fromkeys(shown))


def test_the_timeline_has_a_lane_per_job_and_a_mark_per_event(
    visit: Visit, page_of_samples: PageData
) -> None:
    told = details(page_of_samples, LATER)
    page = visit.open(f"#/run/{LATER}")
    chart = page.locator("#timeline svg")
    for job in ("main", "later"):
        expect(chart.get_by_text(job, exact=True)).to_be_visible()
    expect(chart.locator(".mark-symbol.role-mark path")).to_have_count(len(marks(told)))
    page.locator("#timeline").get_by_text("Show the numbers").click()
    expect(page.locator("#timeline tbody tr")).to_have_count(len(marks(told)))
    expect(page.locator("#timeline tbody")).to_contain_text("fetch_next_item")


def test_a_click_on_a_mark_goes_to_what_was_said(visit: Visit, page_of_samples: PageData) -> None:
    told = details(page_of_samples, LATER)
    page = visit.open(f"#/run/{LATER}")
    page.locator("#timeline .mark-symbol.role-mark path").nth(2).click()
    seq = marks(told)[2]
    expect(page.locator("#transcript li:focus .head")).to_contain_text(f"event {seq}")


def test_usage_is_judged_under_each_basis_against_the_limit(visit: Visit) -> None:
    page = visit.open(f"#/run/{LARGE}")
    usage = page.locator("#usage figure").first
    expect(usage.locator("figcaption")).to_contain_text(
        "Harness estimate: reaches the limit of 3,000 tokens on turn 4. "
        "Measured: reaches the limit of 3,000 tokens on turn 3."
    )
    usage.scroll_into_view_if_needed()
    for label in ("Harness estimate", "Measured", "Token limit"):
        expect(usage.locator("svg").get_by_text(label, exact=True)).to_be_visible()


def test_usage_is_there_turn_by_turn_as_numbers(visit: Visit, page_of_samples: PageData) -> None:
    (job,) = details(page_of_samples, LARGE)["jobs"]
    page = visit.open(f"#/run/{LARGE}")
    usage = page.locator("#usage figure").first
    usage.get_by_text("Show the numbers").click()
    expect(usage.locator("tbody tr")).to_have_count(len(job["calls"]))
    expect(usage.locator("tbody tr").last).to_contain_text(f"{job['calls'][-1]['approx_total']:,} ≥ limit")


def test_a_job_can_be_chosen_by_address(visit: Visit, page_of_samples: PageData) -> None:
    said = [entry for entry in details(page_of_samples, LATER)["transcript"] if entry["job"] == "later"]
    page = visit.open(f"#/run/{LATER}?job=later")
    expect(page.locator("#usage h2")).to_have_text("Usage of later")
    expect(page.locator("#transcript li")).to_have_count(len(said))
    page.get_by_role("link", name="Show all jobs").click()
    expect(page.locator("#usage h2")).to_have_text("Usage of main")


def test_the_transcript_can_be_cut_down_to_tools(visit: Visit, page_of_samples: PageData) -> None:
    calls = [entry for entry in details(page_of_samples, LATER)["transcript"] if entry["kind"] == "tool"]
    page = visit.open(f"#/run/{LATER}")
    page.get_by_label("Show", exact=True).select_option("tools")
    expect(page.locator("#transcript li")).to_have_count(len(calls))
    expect(page.locator("#transcript [role=status]")).to_have_text(f"{len(calls)} entries")


def test_a_failed_run_says_why(visit: Visit) -> None:
    page = visit.open("#/run/hostile/wrong[docs]")
    told = page.locator("#failure pre").first
    expect(told).to_contain_text("exit")
    # A terminal tells it below the run's name, two spaces in; here it stands alone.
    assert "\nrun just this one:\n  statek-sim run " in told.inner_text()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_bar_hides_no_title_of_a_run_that_was_opened_far_down_in_the_list(
    chromium: Browser, report: Path, width: int
) -> None:
    with visiting(chromium, report, width=width) as visit:
        page = visit.open()
        link = visit.rows().last.locator("th a")
        link.scroll_into_view_if_needed()
        link.click()
        title = page.get_by_role("heading", level=1)
        expect(title).to_be_focused()
        bar, place = page.locator(".bar").bounding_box(), title.bounding_box()
        assert bar is not None
        assert place is not None
        assert place["y"] >= bar["y"] + bar["height"]


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        (f"agent-nudges/{NUDGED}[hardened]", "harness"),
        (f"storage/{LOST}[1.4]", "exception, failure or loss"),
    ],
)
def test_the_timeline_knows_what_harness_and_store_did(visit: Visit, run: str, kind: str) -> None:
    page = visit.open(f"#/run/{run}")
    expect(page.locator("#timeline svg").get_by_text(kind, exact=True)).to_be_visible()
    assert not visit.faults
