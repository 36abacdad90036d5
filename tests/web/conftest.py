"""A real Chromium for the tests of the page; where none can be had they are skipped, and say why."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from statek_sim.reporting.page.data import PageData, render
from tests.web.report_samples import crowd, sample
from tests.web.visit import PATIENCE, Visit, visiting
from tools.browser import ensure_browser
from tools.npm import NotHere

CROWD = 10_000


# Not for the session: as long as it is there, an event loop runs in this thread, and no test can start another one.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Start the browser; with STATEK_BROWSER_REQUIRED set, one that cannot be had is a failure."""
    try:
        found = ensure_browser()
    except NotHere as why:
        if os.environ.get("STATEK_BROWSER_REQUIRED"):
            raise
        pytest.skip(f"no browser to test the page in: {why}")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found.executable, env=dict(found.environment), timeout=PATIENCE
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def page_of_samples(tmp_path_factory: pytest.TempPathFactory) -> PageData:
    return sample(tmp_path_factory.mktemp("scenarios"))


@pytest.fixture(scope="session")
def report(page_of_samples: PageData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render(page_of_samples), "utf-8")
    return path


@pytest.fixture(scope="session")
def crowded_report(page_of_samples: PageData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("crowd") / "report.html"
    path.write_text(render(crowd(page_of_samples, CROWD)), "utf-8")
    return path


@pytest.fixture
def visit(chromium: Browser, report: Path) -> Iterator[Visit]:
    with visiting(chromium, report) as started:
        yield started


@pytest.fixture
def narrow(chromium: Browser, report: Path) -> Iterator[Visit]:
    with visiting(chromium, report, width=390) as started:
        yield started


@pytest.fixture
def crowded(chromium: Browser, crowded_report: Path) -> Iterator[Visit]:
    with visiting(chromium, crowded_report) as started:
        yield started
