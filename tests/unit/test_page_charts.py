from __future__ import annotations

from statek_sim.reporting.page.data import page_file


def test_the_charts_say_whose_work_they_are_and_under_which_licences() -> None:
    notice, end, code = page_file("charts.js.xz").partition("*/")
    assert end
    assert code
    for words in (
        "vega 6.4.0: Copyright",
        "vega-lite 6.5.0: Copyright",
        "d3-scale",
        "Redistribution and use in source",
    ):
        assert words in notice


def test_the_charts_make_no_code_from_text_when_told_so() -> None:
    assert "expressionInterpreter" in page_file("charts.js.xz")
    assert "charts.expressionInterpreter" in page_file("view/figure.js")
    assert "ast: true" in page_file("view/figure.js")
