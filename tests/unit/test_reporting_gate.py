"""The gate's result as JSON, JUnit XML, Markdown, GitHub annotations and lines of a terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from junitparser import JUnitXml

from statek_sim.gate.verdict import GateResult, Place, Remark
from statek_sim.reporting.artifact import schema_named
from statek_sim.reporting.gate import (
    annotation,
    gate_annotations,
    gate_json,
    gate_lines,
    gate_markdown,
    sentence,
)
from statek_sim.reporting.junit import gate_junit
from tests.unit.gate_samples import ROOMY, TIGHT, result

HERE = Path("/checkout")


@pytest.fixture
def failing(tmp_path: Path) -> GateResult:
    """One verdict of three fails."""
    return result(tmp_path, TIGHT)


def renamed(found: GateResult, *names: str) -> GateResult:
    """Return the result with its one preset again under each of these names."""
    [preset] = found.presets
    presets = [replace(preset, name=name, path=Path(name)) for name in names]
    verdicts = [replace(one, preset=name) for name in names for one in found.verdicts]
    return replace(found, presets=tuple(presets), verdicts=tuple(verdicts))


def lines(found: GateResult, width: int) -> list[str]:
    return [line.plain for line in gate_lines(found, width=width)]


# -- JSON ----------------------------------------------------------------------------------------------------------


def test_the_json_keeps_to_its_schema(failing: GateResult, tmp_path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(schema_named("gate"))
    for found in (failing, result(tmp_path, ROOMY)):
        jsonschema.validate(gate_json(found), schema_named("gate"))


def test_the_json_says_what_was_judged_and_why_it_fails(failing: GateResult) -> None:
    document = gate_json(failing)
    assert document["passed"] is False
    verdicts = document["verdicts"]
    assert isinstance(verdicts, list)
    first = verdicts[0]
    assert isinstance(first, dict)
    assert (first["scenario"], first["limit"], first["line"]) == ("sample/useful[docs]", "max_turns", 2)
    assert first["stop"] == {"job": "main", "limit": "max_turns", "turn": 5}
    figures = first["figures"]
    assert isinstance(figures, list)
    assert figures[0] == {
        "limit": "max_turns",
        "value": 4,
        "used": 5,
        "needed": 6,
        "headroom_percent": 0,
        "stated": False,
    }


def test_equal_results_give_equal_text(tmp_path: Path) -> None:
    texts = [
        [render(result(tmp_path, TIGHT)) for render in (gate_json, gate_junit, gate_markdown)]
        for _ in range(2)
    ]
    assert texts[0] == texts[1]


# -- JUnit ---------------------------------------------------------------------------------------------------------


def test_junit_is_read_again_with_the_same_counts(failing: GateResult) -> None:
    found = JUnitXml.fromstring(gate_junit(failing).encode())
    assert (found.tests, found.failures, found.errors) == (3, 1, 0)
    [suite] = list(found)
    cases = list(suite)
    assert [case.name for case in cases] == [one.scenario for one in failing.verdicts]
    [failure] = cases[0].result
    assert failure.message == failing.verdicts[0].reason
    assert not cases[1].result


def test_junit_survives_what_xml_cannot_say(failing: GateResult) -> None:
    odd = replace(failing.verdicts[0], reason='stopped by \x1b[31m "<&>" ]]> \ud800')
    found = JUnitXml.fromstring(gate_junit(replace(failing, verdicts=(odd,))).encode())
    [failure] = next(iter(next(iter(found)))).result
    assert failure.message == 'stopped by \ufffd[31m "<&>" ]]> \ufffd'


# -- GitHub --------------------------------------------------------------------------------------------------------


def test_an_annotation_points_at_the_line_of_the_preset(failing: GateResult, tmp_path: Path) -> None:
    [line] = gate_annotations(failing, tmp_path)
    assert line.startswith("::error file=own.env,line=2,title=statek-sim gate%3A work finishes::`")
    assert line.endswith("stopped `useful` on turn 5 by max_turns; needs >= 6")


def test_remarks_are_warnings(failing: GateResult) -> None:
    remark = Remark(preset="a", place=Place(Path("a.env"), 3), message="never binds")
    found = gate_annotations(replace(failing, verdicts=(), remarks=(remark,)), HERE)
    assert list(found) == ["::warning file=a.env,line=3,title=statek-sim gate::never binds"]


def test_annotations_are_escaped_as_workflow_commands() -> None:
    line = annotation(
        "error", Place(Path("a,b:c%.env"), 1), HERE, title="50%, x: y", message="100% off: a,b\r\n::error::no"
    )
    assert line == (
        "::error file=a%2Cb%3Ac%25.env,line=1,title=50%25%2C x%3A y::100%25 off: a,b%0D%0A::error::no"
    )


def test_a_file_outside_the_checkout_keeps_its_whole_path() -> None:
    inside = annotation("error", Place(Path("/checkout/p/a.env"), 1), HERE, title="t", message="m")
    outside = annotation("error", Place(Path("/elsewhere/a.env"), 1), HERE, title="t", message="m")
    assert ("file=p/a.env," in inside, "file=/elsewhere/a.env," in outside) == (True, True)


# -- Markdown ------------------------------------------------------------------------------------------------------


def test_markdown_has_the_table_and_the_failures(failing: GateResult) -> None:
    text = gate_markdown(renamed(failing, "own.env", "batch"))
    assert text.startswith("# STATEK presets: 2 of 6 verdicts fail\n")
    assert "| rule | `own.env` | `batch` |\n" in text
    assert "| work finishes | **1 of 2 fail** | **1 of 2 fail** |\n| loops stop | 1 pass | 1 pass |\n" in text
    assert "stopped `useful` on turn 5 by max_turns; needs \\>= 6 (work finishes, `" in text


def test_what_stands_in_a_sentence_is_shown_and_not_rendered() -> None:
    assert sentence("`a`: <b> *x* | y") == "`a`: \\<b\\> \\*x\\* \\| y"
    assert sentence("odd ` tick") == "odd \\` tick"
    assert sentence("two\nlines") == "two lines"


# -- terminal ------------------------------------------------------------------------------------------------------


def test_presets_stand_beside_each_other_where_there_is_room(failing: GateResult) -> None:
    shown = lines(renamed(failing, "default", "local", "interactive", "batch"), 80)
    assert [line.split("  ")[0] for line in shown[:3]] == ["rule", "work finishes", "loops stop"]
    assert shown[0].split() == ["rule", "default", "local", "interactive", "batch"]
    assert shown[1].split("  ")[-1].strip() == "1 of 2 fail"
    assert shown[-1] == "4 of 12 verdicts fail"


def test_long_names_stand_below_each_other(failing: GateResult) -> None:
    names = [f"deployment/presets/of-the-{number}th-team.env" for number in range(3)]
    shown = lines(renamed(failing, *names), 80)
    assert shown[0].split() == ["preset:", "rule", "verdicts"]
    assert len([line for line in shown if line.endswith(("1 of 2 fail", "1 pass"))]) == 6


@pytest.mark.parametrize("width", [80, 160])
def test_no_line_is_wider_than_the_terminal(failing: GateResult, width: int) -> None:
    shown = lines(renamed(failing, "default", "a-rather-long-name.env"), width)
    # The folder of the test is a word, and words stay whole.
    assert all(len(line) <= width for line in shown if "/" not in line)


def test_a_verdict_is_one_sentence_with_its_place_and_rule(failing: GateResult) -> None:
    text = " ".join(line.strip() for line in lines(failing, 400))
    [verdict] = failing.failed
    assert f"{verdict.place}: {verdict.reason} (work finishes)" in text


def test_all_is_well_in_so_many_words(tmp_path: Path) -> None:
    found = result(tmp_path, ROOMY)
    assert lines(found, 80)[-1] == "all 3 verdicts pass"
