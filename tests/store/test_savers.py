"""Others' tests of checkpoint stores, and others' stores under our checker; `tools.savers` has what they need."""

from __future__ import annotations

from typing import Any

import pytest

from tools.npm import NotHere
from tools.savers import ROOT, report, tables

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    try:
        return report()
    except NotHere as why:
        pytest.skip(f"the packages cannot be had: {why}")


def test_a_saver_of_langgraphs_on_our_store_passes_langgraphs_conformance_tests(told: dict[str, Any]) -> None:
    passed = {part: one[0] for part, one in told["conformance"][1].items() if one[1] == 0}
    assert set(passed) == set(told["conformance"][1])
    assert sum(passed.values()) == 81


def test_our_store_notices_all_nine_tamperings(told: dict[str, Any]) -> None:
    verdicts = told["tamperings"][1]
    assert len(verdicts) == 9
    assert set(verdicts.values()) == {"REJECTED"}


def test_our_checker_finds_what_langgraphs_saver_takes_for_genuine(told: dict[str, Any]) -> None:
    found = next(found for store, found in told["findings"].items() if store.startswith("langgraph"))
    assert "an edited state is loaded as genuine" in found
    assert "a worker with outdated state overwrites what another worker saved" in found


def test_the_page_shows_what_was_found(told: dict[str, Any]) -> None:
    page = (ROOT / "tests" / "store" / "crashes.md").read_text(encoding="utf-8")
    assert page.partition("<!-- savers -->\n")[2].partition("\n<!-- /savers -->")[0] == tables(told)
