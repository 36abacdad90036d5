"""A page's data: the index of all runs, and the details of as many as there is room for."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim.explore.result import Cell, Count, Exploration, Explored
from statek_sim.reporting.page.data import BRIEF, TOLD, PageData, crashes_json, embedded, render
from statek_sim.suite.result import Mismatch
from statek_sim.values import JSON
from tests.tables import table_test
from tests.unit.page_samples import Elements, check_index, index, page
from tests.unit.reporting_samples import Talk, english, result, said
from tests.unit.usage_samples import dialog, played

WRONG = [Mismatch(("idle",), True, False)]


def test_runs_are_listed_in_the_reports_order_and_numbered() -> None:
    results = [result("b/two", english(1)), result("a/one", profile="1.4"), result("a/one")]
    found = index(*results)
    check_index(found)
    assert [(run["n"], run["name"]) for run in found["runs"]] == [
        (0, "a/one[docs]"),
        (1, "a/one[1.4]"),
        (2, "b/two[docs]"),
    ]
    assert [(suite["name"], suite["runs"]) for suite in found["suites"]] == [("a", 2), ("b", 1)]


def test_totals_are_the_sums_of_the_runs() -> None:
    found = index(
        result("a/one", english(2)), result("a/two", english(3)), result("b/wrong", mismatches=WRONG)
    )
    totals = found["totals"]
    for name in ("approx", "measured", "turns", "jobs"):
        assert totals[name] == sum(run[name] for run in found["runs"])
        assert totals[name] > 0
    assert (totals["runs"], totals["passed"], totals["failed"]) == (3, 2, 1)


def test_a_failure_names_its_run() -> None:
    found = index(result("a/fine"), result("b/wrong", mismatches=WRONG))
    (failure,) = found["failures"]
    assert [found["runs"][n]["name"] for n in failure["runs"]] == ["b/wrong[docs]"]
    assert failure["text"].startswith("idle: expected true")


def test_the_waterfall_of_all_runs_leads_from_the_estimate_to_the_measured_tokens() -> None:
    results = [played(dialog({"text": text}), text) for text in ("one", "two")]
    found = index(*results)
    steps = found["waterfall"]
    assert steps["once"] + steps["history"] == steps["from"] == found["totals"]["approx"]
    assert steps["from"] + sum(step["tokens"] for step in steps["steps"]) == steps["to"]
    assert steps["to"] == found["totals"]["measured"]
    assert set(found["meanings"]) == {"history", *(step["name"] for step in steps["steps"])}


def test_a_page_of_no_runs_is_a_page() -> None:
    found = index()
    check_index(found)
    assert (found["title"], found["runs"], found["waterfall"]) == (
        "STATEK scenarios: no scenarios ran",
        [],
        None,
    )


def test_the_gate_is_handed_on_as_it_is() -> None:
    assert index(gate={"version": 1, "passed": True})["gate"] == {"version": 1, "passed": True}


def test_every_run_has_its_details_in_an_element_of_its_own() -> None:
    data = page(result("a/one", english(1)), result("b/two"))
    found = Elements(render(data))
    assert json.loads(found.data["index"]) == json.loads(data.index)
    assert {name: json.loads(text) for name, text in found.data.items() if name.isdecimal()} == {
        str(n): json.loads(text) for n, text in data.details.items()
    }
    assert list(data.details) == [0, 1]


def test_past_the_room_details_are_left_out_those_of_passed_runs_first() -> None:
    results = [result(f"a/fine-{n}", english(1)) for n in range(5)]
    results += [result(f"b/wrong-{n}", english(1), mismatches=WRONG) for n in range(2)]
    sizes = {n: len(text) for n, text in page(*results).details.items()}
    data = page(*results, room=sizes[5] + sizes[6] + sizes[0])
    found = json.loads(data.index)
    check_index(found)
    assert list(data.details) == [0, 5, 6]
    assert [run["n"] for run in found["runs"] if run["details"]] == [0, 5, 6]
    assert found["left_out"] == 4
    assert list(page(*results, room=sizes[5]).details) == [5]
    assert page(*results, room=0).details == {}


def test_of_very_many_failures_the_index_tells_only_the_first_ones_in_full() -> None:
    long = [Mismatch(("error",), None, "no reply left\n" * 100)]
    failures = index(*(result(f"b/{n:03}", mismatches=long) for n in range(TOLD + 2)))["failures"]
    told = [len(failure["text"]) for failure in failures]
    assert min(told[:TOLD]) > 2 * BRIEF > max(told[TOLD:])
    assert len(told) == TOLD + 2


def test_equal_results_make_an_equal_page_in_whatever_order_they_arrive() -> None:
    results = [
        result("a/one", english(2)),
        result("b/two", Talk().turn(said("user", "go")), mismatches=WRONG),
    ]
    text = render(page(*results))
    assert render(page(*reversed(results))) == text


HOSTILE = (
    "</script>",
    "</SCRIPT ><script>alert(1)</script>",
    "<!--",
    "<!--<script>",
    "-->",
    "]]>",
    "&lt;&amp;",
    "\u2028\u2029",
    "\x00\x01\x7f\x85\ufeff\ufffe",
    "\u202egnp.exe\u2066",
    "\ud800",
    "\udfff\ud83d",
    "{{index}} {{script:page.js}}",
    "\r\n\r",
    "\\u003c",
)

texts = st.text(st.characters(exclude_categories=[]), max_size=30) | st.sampled_from(HOSTILE)
values: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)


def in_page(value: JSON) -> Elements:
    """Return the elements of a page whose index and details are this value."""
    text = embedded(value)
    return Elements(render(PageData(title=str(value)[:50], index=text, details={7: text})))


EMPTY = in_page(None)


@given(value=values)
def test_any_value_reads_back_from_a_page_and_adds_no_element_to_it(value: JSON) -> None:
    found = in_page(value)
    # Compared as texts: nan is not there, and -0.0 is not 0.0.
    assert json.dumps(json.loads(found.data["index"])) == json.dumps(value)
    assert json.dumps(json.loads(found.data["7"])) == json.dumps(value)
    assert found.names == EMPTY.names
    assert found.comments == EMPTY.comments


@table_test("text", HOSTILE, ids=range(len(HOSTILE)))
def test_what_could_end_an_element_is_written_as_escapes(text: str) -> None:
    written = embedded([text, {text: text}])
    assert not set(written) & set("<>&\x7f")
    assert written.isascii()
    assert written.isprintable()
    assert json.loads(written) == [text, {text: text}]


def test_a_page_is_text_that_can_be_written_whatever_its_title_is() -> None:
    title = "</title><script>\ud800"
    text = render(PageData(title=title, index="{}", details={}))
    assert "<title>&lt;/title&gt;&lt;script&gt;\\ud800</title>" in text
    assert text.encode("utf-8")


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_numbers_that_json_does_not_have_are_refused(number: float) -> None:
    with pytest.raises(ValueError, match="Out of range float values are not JSON compliant"):
        embedded([number])


def test_what_a_crash_does_is_told_once_and_as_far_as_there_is_room() -> None:
    cells = (
        Cell(1, 0, "begun", "main", "same", ("good",)),
        Cell(2, 0, "claimed", "main", "no-claim-leaked", ("bad",)),
        Cell(3, 1, "ended", "", "same", ("good",)),
    )
    one = Explored(
        id="one", suite="s", profile="docs", points=3, proven={"crashes": Count(3, 3)}, cells=cells
    )
    told = crashes_json(Exploration((one,)))
    assert (told["texts"], told["left_out"]) == (["bad", "good"], 0)
    assert json.loads(json.dumps(told))["scenarios"][0]["cells"] == [
        [1, 0, "begun", "main", "same", 1],
        [2, 0, "claimed", "main", "no-claim-leaked", 0],
        [3, 1, "ended", "", "same", 1],
    ]
    # What breaks is told first.
    tight = crashes_json(Exploration((one,)), room=3)
    assert (tight["texts"], tight["left_out"]) == (["bad"], 2)
    assert index(crashes=told)["crashes"] == told
