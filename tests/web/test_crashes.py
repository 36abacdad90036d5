"""What a crash does, on the page: a cell for every place to die, and what happens from there on when it is pressed."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.web.visit import Visit

pytestmark = pytest.mark.browser


def test_a_cell_that_is_pressed_shows_what_happens_from_there_on(visit: Visit) -> None:
    page = visit.open("#/crashes")
    claims = page.locator(".crash-map", has_text="claims/claim-processed[docs]")
    expect(claims.locator(".failures")).to_contain_text("no-claim-leaked: ")
    cell = claims.locator("button.breaks").first
    expect(cell).to_have_text("✗")
    expect(cell).to_have_attribute("aria-pressed", "false")
    cell.focus()
    page.keyboard.press("Enter")
    expect(cell).to_have_attribute("aria-pressed", "true")
    expect(claims.locator(".after-death")).to_contain_text("no-claim-leaked")
    expect(claims.locator(".after-death pre")).to_contain_text("worker: killed after event")
    claims.locator("button.same").first.click()
    expect(cell).to_have_attribute("aria-pressed", "false")
    expect(claims.locator(".after-death")).to_contain_text("same result as without the crash")
    assert visit.faults == []


def test_what_is_sound_and_what_is_not_explored_opens_on_demand(visit: Visit) -> None:
    page = visit.open("#/crashes")
    page.get_by_text("1 scenario not explored").click()
    expect(page.locator("#crashes")).to_contain_text("the worker dies and is not restarted")
    legend = page.locator(".deaths-legend li")
    assert [text.partition(" ")[0] for text in legend.all_inner_texts()] == ["✓", "~", "?", "…", "✗"]


def test_on_a_telephone_nothing_is_wider_than_the_screen(narrow: Visit) -> None:
    page = narrow.open("#/crashes")
    page.locator("#crashes button.death").first.click()
    expect(page.locator(".after-death pre").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
