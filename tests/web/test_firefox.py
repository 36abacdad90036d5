"""The report's page in Firefox, where the machine has one (Debian's `firefox-esr`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.firefox import Firefox, firefox_here, started

pytestmark = pytest.mark.browser

NARROW, WIDE = 450, 1280
"""Pixels; Firefox has no window that is narrower than the first."""
DRAWN = "return [...document.querySelectorAll('figure .chart')].every(chart => chart.querySelector('svg'))"
TOO_WIDE = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
SCROLLED = """
for (const chart of document.querySelectorAll('figure .chart:not(:has(svg))')) { chart.scrollIntoView(); break; }
"""


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    executable = firefox_here()
    if executable is None:
        pytest.skip("no Firefox to test the page in: no firefox-esr and no firefox on PATH")
    with started(executable, tmp_path_factory.mktemp("firefox")) as browser:
        yield browser


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_every_chart_is_drawn_in_firefox_and_nothing_is_cut_off(
    firefox: Firefox, report: Path, width: int
) -> None:
    firefox.open(report, width=width)
    firefox.until(f"{SCROLLED} {DRAWN}")
    assert firefox.run("return document.querySelectorAll('figure .chart').length") >= 5
    assert firefox.run(TOO_WIDE) == 0
    assert "JavaScript error: file:" not in firefox.printed


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_a_run_is_opened_in_firefox(firefox: Firefox, report: Path, width: int) -> None:
    firefox.open(report, width=width, address="#/run/hostile/wrong[docs]")
    firefox.until("return document.querySelector('#run h2, #run h1, main h1') !== null")
    top, bar = firefox.run(
        "return [document.querySelector('h1').getBoundingClientRect().top, "
        "document.querySelector('header')?.getBoundingClientRect().bottom ?? 0]"
    )
    assert top >= bar, "the bar at the top hides the title"
    assert firefox.run(TOO_WIDE) == 0
    assert "JavaScript error: file:" not in firefox.printed


def test_an_error_in_a_page_is_seen(firefox: Firefox, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text("<!doctype html><h1>Bad</h1><script>nobody.defined(this)</script>")
    firefox.open(page, width=WIDE)
    firefox.until("return true")
    assert "JavaScript error: file:" in firefox.printed
