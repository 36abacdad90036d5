"""A reader's visit to a report: what the page showed, and whether it ever did what a report must not do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Browser, ConsoleMessage, Error, Locator, Page, Route

PATIENCE: Final = 120_000
"""Milliseconds that a busy machine may take for anything."""
Scheme = Literal["light", "dark"]


@dataclass
class Visit:
    """An open browser window. `faults` are errors and warnings on the console, and exceptions nobody caught."""

    page: Page
    report: Path
    requests: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def open(self, address: str = "") -> Page:
        """Load the report at an address inside it, as from a link that somebody sent."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.report.as_uri()}{address}")
        self.page.wait_for_selector("h1")
        return self.page

    def see_all(self) -> None:
        """Scroll past everything, so that every chart is drawn."""
        for place in self.page.locator("figure .chart").all():
            place.scroll_into_view_if_needed()
            place.locator("svg").first.wait_for()

    def see_numbers(self) -> None:
        """Open the table of every chart; without the mouse, which waits for frames that a busy machine may not draw."""
        for figure in self.page.locator("figure").all():
            figure.get_by_text("Show the numbers").dispatch_event("click")
            figure.locator("tbody tr").first.wait_for()

    def rows(self) -> Locator:
        """Return the runs in the list."""
        return self.page.locator("#runs tbody tr")

    def listen(self) -> None:
        """Note from now on what must not happen."""
        self.page.route("**/*", self._asked)
        self.page.on("console", self._said)
        self.page.on("pageerror", self._raised)

    def _asked(self, route: Route) -> None:
        url = route.request.url
        self.requests.append(url)
        if url in (self.report.as_uri(), "about:blank"):
            route.continue_()
        else:
            route.abort()

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(message.text)

    def _raised(self, error: Error) -> None:
        self.faults.append(str(error))


@contextmanager
def visiting(
    browser: Browser, report: Path, *, width: int = 1280, scheme: Scheme = "light"
) -> Iterator[Visit]:
    """Give a visit; when it ends well, nothing was asked of any server and nothing was on the console."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_default_timeout(PATIENCE)
    try:
        visit = Visit(context.new_page(), report)
        visit.listen()
        yield visit
        assert visit.faults == []
        assert set(visit.requests) <= {report.as_uri(), "about:blank"}
    finally:
        context.close()
