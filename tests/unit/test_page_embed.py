"""Data inside a page reads back as it was, whatever it holds, and nothing of it is anything but data."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim.reporting.page.data import PageData
from statek_sim.reporting.page.embed import embedded
from statek_sim.reporting.page.template import render
from statek_sim.values import JSON
from tests.unit.page_samples import Elements

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


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
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
