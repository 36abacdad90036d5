"""What a reader sees first: what passed, what failed and why, and what it used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, expect

from statek_sim.reporting.page.data import PageData
from tests.web.visit import Scheme, Visit, visiting

pytestmark = pytest.mark.browser

_LEAST_CONTRAST: Final = """chart => {
  const channels = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const paper = channels(getComputedStyle(document.body).backgroundColor);
  const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const light = (colour) =>
    colour.map((value) => linear(value / 255)).reduce((sum, value, n) => sum + value * [0.2126, 0.7152, 0.0722][n], 0);
  const cells = [...chart.querySelector(".mark-rect.role-mark").querySelectorAll("path")];
  const texts = [...chart.querySelectorAll(".mark-text.role-mark text")];
  return Math.min(...cells.map((cell, n) => {
    const style = getComputedStyle(cell);
    const opacity = Number(style.opacity) * Number(style.fillOpacity);
    const ground = channels(style.fill).map((value, at) => opacity * value + (1 - opacity) * paper[at]);
    const both = [light(ground), light(channels(getComputedStyle(texts[n]).fill))].sort((one, other) => one - other);
    return (both[1] + 0.05) / (both[0] + 0.05);
  }));
}"""
"""The least contrast of a heat map's numbers with their cells, which are in the same order."""


def test_the_overview_says_how_many_failed_and_why(visit: Visit) -> None:
    page = visit.open()
    expect(page.locator("#overview .verdict")).to_contain_text("1 of")
    failure = page.locator("#overview .failures li")
    expect(failure).to_have_count(1)
    expect(failure.locator("a")).to_have_text("hostile/wrong[docs]")
    expect(failure.locator("pre")).to_contain_text("yes")
    # Its last line is no announcement of what is not shown.
    shown = failure.locator("pre").inner_text().split("\n")
    assert not any(line.endswith(":") for line in shown[-2:])


def test_the_overview_says_what_the_harness_thinks_and_what_the_models_saw(
    visit: Visit, page_of_samples: PageData
) -> None:
    totals = json.loads(page_of_samples.index)["totals"]
    story = visit.open().locator(".story")
    expect(story).to_contain_text(f"The harness counts {totals['approx']:,} tokens")
    expect(story).to_contain_text(f"The models saw {totals['measured']:,}")


def test_no_chart_is_drawn_before_it_comes_into_view(visit: Visit) -> None:
    page = visit.open()
    last = page.locator("#why .chart").last
    expect(last).to_be_attached()
    expect(last.locator("svg")).to_have_count(0)
    last.scroll_into_view_if_needed()
    expect(last.locator("svg")).to_have_count(1)


def test_charts_not_seen_yet_are_drawn_after_a_visit_to_a_run(visit: Visit) -> None:
    page = visit.open("#/run/hostile/wrong[docs]")
    page.get_by_role("link", name="Why they differ", exact=True).click()
    expect(page.locator("#why svg")).to_have_count(1)
    page.go_back()
    page.get_by_role("link", name="Gate", exact=True).click()
    expect(page.locator("#gate svg").first).to_be_visible()


def test_the_waterfall_shows_every_step_and_adds_up(visit: Visit, page_of_samples: PageData) -> None:
    waterfall = json.loads(page_of_samples.index)["waterfall"]
    page = visit.open()
    figure = page.locator("#why figure")
    figure.scroll_into_view_if_needed()
    shown = figure.locator("svg")
    for label in (*(step["label"] for step in waterfall["steps"]), "Harness estimate", "Measured"):
        expect(shown.get_by_text(label, exact=True)).to_be_visible()
    visit.see_numbers()
    numbers = [
        number.replace(",", "").replace("\u2212", "-")
        for number in figure.locator("td.number").all_inner_texts()
    ]
    once, history, estimate, *steps, measured = map(int, numbers)
    assert once + history == estimate
    assert estimate + sum(steps) == measured == waterfall["to"]


def test_the_gate_names_the_preset_that_fails_the_reason_and_the_line(visit: Visit) -> None:
    page = visit.open("#/gate")
    gate = page.locator("#gate")
    expect(gate.locator(".verdict")).to_contain_text("The gate fails")
    expect(gate.locator(".failures li")).to_have_text(
        ["tight.env: stopped long-useful-chat on turn 6 by max_turns; needs >= 9 tight.env:3"]
    )
    expect(gate).to_contain_text("max_turns never binds wide.env:2")
    expect(gate.get_by_role("row", name="healthy work finishes")).to_contain_text("✗ 1 of 2 fail")
    gate.get_by_text("All 2 verdicts on wide.env").click()
    expect(gate.locator("details[open] tbody tr")).to_have_count(2)


def test_the_gate_has_a_map_of_every_scenario_under_every_preset(visit: Visit) -> None:
    chart = visit.open("#/gate").locator("#gate .chart")
    chart.scroll_into_view_if_needed()
    expect(chart.locator(".mark-rect.role-mark path")).to_have_count(4)
    expect(chart.locator(".mark-text.role-mark text")).to_have_text(["✗", "✓", "✓", "✓"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_signs_of_the_gate_can_be_read(chromium: Browser, report: Path, scheme: Scheme) -> None:
    with visiting(chromium, report, scheme=scheme) as visit:
        chart = visit.open("#/gate").locator("#gate .chart")
        chart.scroll_into_view_if_needed()
        expect(chart.locator(".mark-text.role-mark text").first).to_be_visible()
        assert chart.page.evaluate(_LEAST_CONTRAST, chart.element_handle()) >= 4.5


def test_dark_colours_can_be_chosen_and_are_kept(visit: Visit) -> None:
    page = visit.open()
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.get_by_role("button", name="Dark colours").click()
    dark = page.evaluate(paper)
    assert dark != light
    page.reload()
    page.wait_for_selector("h1")
    assert page.evaluate(paper) == dark
    expect(page.get_by_role("button", name="Light colours")).to_be_visible()


def test_a_run_without_a_source_does_not_say_that_it_follows_nothing(visit: Visit) -> None:
    page = visit.open("#/run/hostile/wrong[docs]")
    expect(page.locator(".about")).to_have_text("Preset default, seed 0.")


def test_the_health_of_the_agents_is_told_for_all_and_by_suite(
    visit: Visit, page_of_samples: PageData
) -> None:
    metrics = json.loads(page_of_samples.index)["metrics"]
    section = visit.open().locator("#health")
    expect(section.locator("h2")).to_have_text("Agent health")
    rows = section.locator("table").first.locator("tbody tr")
    expect(rows).to_have_count(len(metrics["definitions"]))
    expect(rows.filter(has_text="Task Completion Rate")).to_contain_text(
        metrics["all"]["metrics"]["completion_rate"]["status"]
    )
    expect(section.locator("table").nth(1).locator("tbody tr")).to_have_count(len(metrics["groups"]))
