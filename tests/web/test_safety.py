"""Nothing in a report runs but the report's own scripts, and nothing leaves it."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.web.report_samples import HOSTILE
from tests.web.visit import Visit

pytestmark = pytest.mark.browser


def test_markup_in_titles_messages_replies_and_results_is_shown_and_does_not_run(visit: Visit) -> None:
    page = visit.open("#/runs?suite=hostile")
    expect(visit.rows().first).to_contain_text(f"A title with {HOSTILE}")
    page = visit.open("#/run/hostile/markup[docs]")
    expect(page.locator("h1")).to_have_text(f"A title with {HOSTILE}")
    for kind in ("system", "user", "assistant", "console", "tool"):
        expect(page.locator(f"#transcript [data-kind={kind}] pre", has_text=HOSTILE).first).to_be_visible()
    page.get_by_text("Last request").click()
    expect(page.locator("#inside li pre", has_text=HOSTILE).first).to_be_visible()
    assert page.evaluate("window.hacked") is None
    expect(page.locator("main img, main script")).to_have_count(0)


def test_markup_in_an_address_is_shown_and_does_not_run(visit: Visit) -> None:
    page = visit.open(f"#/run/{HOSTILE}".replace(" ", "%20"))
    expect(page.locator("main code")).to_contain_text("<img src=x")
    assert page.evaluate("window.hacked") is None


def test_a_script_that_got_into_the_page_would_not_run(visit: Visit) -> None:
    page = visit.open()
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.append("window.hacked = 1");
            document.body.append(script);
        }"""
    )
    assert page.evaluate("window.hacked") is None
    assert visit.faults
    assert all("Content Security Policy" in fault or "TrustedScript" in fault for fault in visit.faults)
    visit.faults.clear()


def test_a_link_with_code_would_not_run(visit: Visit) -> None:
    page = visit.open()
    page.evaluate(
        """() => {
            const link = document.createElement("a");
            link.href = "javascript:window.hacked = 1";
            link.textContent = "a link with code";
            document.querySelector("main").prepend(link);
        }"""
    )
    page.get_by_text("a link with code").click()
    assert page.evaluate("window.hacked") is None
    assert visit.faults
    visit.faults.clear()


def test_text_cannot_be_made_into_markup(visit: Visit) -> None:
    page = visit.open()
    tried = "try { document.body.innerHTML = '<b>x</b>'; 'done' } catch (error) { error.name }"
    assert page.evaluate(tried) == "TypeError"
    visit.faults.clear()


def test_the_policy_allows_no_code_from_text_and_no_scripts_but_two(visit: Visit) -> None:
    policy = visit.open().locator("meta[http-equiv]").get_attribute("content") or ""
    assert "unsafe" not in policy
    assert policy.count("'sha256-") == 3  # the charts, the page's scripts, the style
    assert "default-src 'none'" in policy


def test_a_request_to_any_server_is_refused(visit: Visit) -> None:
    page = visit.open()
    tried = "fetch('https://example.invalid/').then(() => 'sent', (error) => error.name)"
    assert page.evaluate(tried) == "TypeError"
    assert any("Content Security Policy" in fault for fault in visit.faults)
    visit.faults.clear()
    assert not any("example.invalid" in url for url in visit.requests)


def test_a_whole_visit_asks_for_the_file_alone(visit: Visit, report: Path) -> None:
    visit.open()
    visit.see_all()
    visit.open("#/run/isolation/jobs-come-later[docs]")
    visit.see_all()
    assert set(visit.requests) == {report.as_uri()}
