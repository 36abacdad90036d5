"""The page for everybody: keyboard, screen reader, any colour vision, a telephone, paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.visit import Visit, visiting
from tools.browser import ensure_browser

pytestmark = pytest.mark.browser

RUN = "#/run/isolation/jobs-come-later[docs]"
PAPER = "getComputedStyle(document.body).backgroundColor"
LARGE = "#/run/harness/tokens-large-output[docs]"


def faults(page: Page) -> list[str]:
    """Return what axe calls serious or critical, with the first place."""
    page.evaluate(ensure_browser().axe.read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = page.evaluate("axe.run().then((done) => done.violations)")
    return [
        f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:200]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


WRONG = "#/run/hostile/wrong[docs]"
# Every address and both widths; the other pairs where there is more time.
PAIRS = [
    *[("", 1280), (RUN, 390), (WRONG, 1280)],
    *(pytest.param(*pair, marks=pytest.mark.slow) for pair in [("", 390), (RUN, 1280), (WRONG, 390)]),
]


@pytest.mark.parametrize(("address", "width"), PAIRS)
def test_axe_finds_no_serious_fault(chromium: Browser, report: Path, address: str, width: int) -> None:
    with visiting(chromium, report, width=width, scheme="light") as visit:
        page = visit.open(address)
        visit.see_all()
        visit.see_numbers()
        paper = page.evaluate(PAPER)
        assert faults(page) == []
        # Colours change where they stand: nothing has to be drawn again.
        page.emulate_media(color_scheme="dark")
        assert page.evaluate(PAPER) != paper
        assert faults(page) == []


def test_axe_would_find_a_fault(visit: Visit) -> None:
    page = visit.open()
    page.evaluate("document.querySelector('h1').style.color = 'lightgrey'")
    assert any(fault.startswith("color-contrast") for fault in faults(page))


def test_the_keyboard_reaches_a_run_and_opens_it(visit: Visit) -> None:
    page = visit.open("#/runs?suite=hostile")
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.textContent"))
        if seen[-1] == "hostile/markup[docs]":
            break
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    expect(page.locator("article h1")).to_be_focused()


def test_the_first_stop_of_the_keyboard_skips_to_the_content(visit: Visit) -> None:
    page = visit.open()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main h1")).to_be_focused()


def test_landmarks_and_headings_are_there_for_screen_readers(visit: Visit) -> None:
    page = visit.open()
    for role in ("main", "search"):
        expect(page.get_by_role(role)).to_have_count(1)
    expect(page.get_by_role("navigation", name="Parts of the report")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    sections = page.locator("main section")
    headings = page.get_by_role("heading", level=2)
    expect(headings).to_have_count(sections.count())
    assert page.locator("#runs [role=status]").get_attribute("aria-live") == "polite"


@pytest.mark.parametrize("address", ["", RUN, LARGE])
def test_every_chart_says_what_it_shows_and_has_its_numbers(visit: Visit, address: str) -> None:
    page = visit.open(address)
    charts = page.locator("figure .chart")
    assert charts.count() >= 2
    for chart in charts.all():
        assert chart.get_attribute("role") == "img"
        assert len(chart.get_attribute("aria-label") or "") > 40
    visit.see_numbers()
    expect(page.locator("figure table")).to_have_count(charts.count())


@pytest.mark.parametrize("address", ["", "#/runs?suite=hostile", RUN, LARGE, "#/run/hostile/markup[docs]"])
def test_a_telephone_scrolls_in_one_direction_only(narrow: Visit, address: str) -> None:
    page = narrow.open(address)
    narrow.see_all()
    narrow.see_numbers()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_paper_shows_every_section_with_every_chart(visit: Visit) -> None:
    page = visit.open()
    page.emulate_media(media="print")
    for section in page.locator("main section").all():
        expect(section).to_be_visible()
    for chart in page.locator("figure .chart").all():
        expect(chart.locator("svg")).to_be_visible()
    expect(page.locator(".bar")).to_be_hidden()
    expect(page.get_by_role("search")).to_be_hidden()


def test_paper_keeps_little_together_so_that_pages_are_filled(visit: Visit) -> None:
    page = visit.open()
    page.set_viewport_size({"width": 680, "height": 900})  # A4 between its margins: 180 mm of 96 dots an inch
    page.emulate_media(media="print")
    heading, row = (page.locator(f"#runs {part}").first.bounding_box() for part in ("h2", "tbody tr"))
    assert heading is not None
    assert row is not None
    # Heading, count, names of columns and a first row are never parted: a fifth of a page at most is lost before them.
    assert row["y"] - heading["y"] + row["height"] < 1009 / 5


def test_paper_has_nothing_to_press(visit: Visit) -> None:
    page = visit.open(RUN)
    page.emulate_media(media="print")
    for pressed in (page.get_by_text("Back to the list"), page.locator("#transcript select")):
        expect(pressed).to_be_hidden()


def test_paper_is_white_also_for_those_who_read_in_the_dark(chromium: Browser, report: Path) -> None:
    with visiting(chromium, report, scheme="dark") as visit:
        page = visit.open()
        page.emulate_media(media="print")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.pdf().startswith(b"%PDF")


@pytest.mark.parametrize("address", ["", RUN])
def test_a_telephone_cuts_off_no_text_at_the_edges_of_charts(narrow: Visit, address: str) -> None:
    page = narrow.open(address)
    narrow.see_all()
    cut: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("figure .chart svg")].flatMap((svg) => {
          const edge = svg.getBoundingClientRect();
          return [...svg.querySelectorAll("text")].filter((text) => {
            const place = text.getBoundingClientRect();
            return place.width && (place.right > edge.right + 1 || place.left < edge.left - 1);
          }).map((text) => text.textContent);
        })"""
    )
    assert cut == []


def test_a_telephone_shows_a_metric_under_its_name_and_what_it_says_in_full_lines(narrow: Visit) -> None:
    page = narrow.open("#/health")
    row = page.locator("#health tbody tr").first
    name, formula, whole = (
        row.locator(place).bounding_box() for place in ("th .heading", "td:has(.text) >> nth=-1", ":scope")
    )
    assert name is not None
    assert formula is not None
    assert whole is not None
    assert name["x"] == whole["x"]
    assert formula["width"] == whole["width"]
