"""Takes the documentation's screenshots from real reports: `python -m tools.pictures`.

Writes `docs/report.png` and `docs/waterfall.svg` from the sample report, and `docs/crashes.png` from the scenario in
docs/exploration.md. `docs/job.svg` and `docs/loop.svg` are drawn by hand.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page, sync_playwright

from statek_sim.cli import main as statek_sim
from tools.browser import ensure_browser

ROOT: Final = Path(__file__).resolve().parent.parent
PICTURES: Final = ROOT / "docs"
SAMPLE: Final = ROOT / "reports" / "sample" / "report.html"

_COLOURS: Final = """() => {
  const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]);
  const light = rules.find((rule) => rule.selectorText === ":root").style;
  const dark = rules.find((rule) => rule.conditionText?.includes("prefers-color-scheme: dark")).cssRules[0].style;
  const said = (style) => [...style].filter((name) => name.startsWith("--"))
    .map((name) => `${name}:${style.getPropertyValue(name)}`).join(";");
  return `:root{${said(light)}}@media(prefers-color-scheme:dark){:root{${said(dark)}}}`;
}"""
"""The page's light and dark colours as a style sheet for a picture."""


def exploration_example() -> str:
    """Return the first scenario file in docs/exploration.md."""
    page = (PICTURES / "exploration.md").read_text("utf-8")
    return page.split("```yaml\n", 1)[1].split("```", 1)[0]


def take_report(page: Page) -> None:
    """Take the top of the sample report, and its waterfall as an SVG that follows the reader's colour scheme."""
    page.goto(SAMPLE.as_uri())
    page.locator("h1").wait_for()
    page.screenshot(path=PICTURES / "report.png", scale="css")
    chart = page.locator("#why .chart")
    chart.scroll_into_view_if_needed()
    drawn = chart.locator("svg").first
    drawn.wait_for()
    svg = drawn.evaluate("svg => svg.outerHTML")
    head, _, body = svg.partition(">")
    title = "<title>From the harness estimate to measured tokens</title>"
    colours = page.evaluate(_COLOURS)
    (PICTURES / "waterfall.svg").write_text(f"{head}>{title}<style>{colours}</style>{body}\n", "utf-8")


def take_crashes(page: Page) -> None:
    """Take the crash map for the exploration page's scenario, with the crash that leaks a claim selected."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("claims.yaml").write_text(exploration_example(), "utf-8")
        with contextlib.suppress(SystemExit):
            statek_sim(["run", "claims.yaml", "--quiet", "--profile=docs", "--explore", "--html=page.html"])
        page.goto(f"{Path('page.html').absolute().as_uri()}#/crashes")
        page.locator("button.breaks").first.click()
        page.mouse.move(0, 0)
        top = page.locator("#crashes").evaluate("map => map.getBoundingClientRect().top + scrollY")
        # Down to the first lines of what happens then.
        page.screenshot(
            path=PICTURES / "crashes.png",
            clip={"x": 0, "y": top - 12, "width": 960, "height": 620},
            full_page=True,
            scale="css",
        )


def take_all(browser: Browser) -> None:
    """Take every picture."""
    context = browser.new_context(viewport={"width": 960, "height": 640}, color_scheme="light")
    page = context.new_page()
    take_report(page)
    take_crashes(page)
    context.close()


def main() -> int:
    """Take the pictures with the tests' browser."""
    found = ensure_browser()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found.executable, env=dict(found.environment))
        take_all(browser)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
