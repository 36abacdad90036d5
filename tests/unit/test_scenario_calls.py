"""The words of a trajectory in the files of scenarios: what they accept, and how a mismatch reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.errors import BadInput, BadScenario
from statek_sim.scenario.calls import conditions_in
from statek_sim.suite.diff import describe
from statek_sim.suite.run import run_one
from statek_sim.values import JSON
from tests.says import line_with, says
from tests.tables import table_test
from tests.unit.suite_samples import load

RUN = """\
  - id: words
    title: Two calls and an answer.
    engine: agent
    agents: {a: {prompt: You work.}}
    tools:
      look: {description: Look., result: "9 degrees", parameters: {type: object, additionalProperties: true}}
      save: {description: Save., result: ok}
    jobs: {main: {message: Work.}}
    script:
      a:
        - tools: [{name: look, args: {place: {city: Oslo, zone: 2}, n: 3}}]
        - tools: [{name: save}]
        - {text: It is 9., usage: {prompt: 10, completion: 3}}
"""


def mismatches(folder: Path, expect: str) -> list[str]:
    (scenario,) = load(folder, f"{RUN}    expect: {{jobs: {{main: {{{expect}}}}}}}\n")
    result = run_one(scenario, "hardened")
    return ["\n".join(describe(result, one)) for one in result.mismatches]


@table_test(
    "expect",
    [
        "expect_calls: [{name: look}, {name: save, args: {}}]",
        "expect_calls: [{name: 'l*', args: {n: {$range: [1, 3.5]}}, more: true}, {name: save}]",
        "expect_calls: [{name: look, args: {place: {city: {$regex: ^O}, zone: 2}, n: {$any: true}}}, {name: save}]",
        "expect_calls: {calls: [{name: look, args: {place: {$subset: {city: Oslo}}, n: 3}}], order: subsequence}",
        "expect_calls: {calls: [{name: save}, {name: look}], order: any}",
        "never_called: ['delete_*', send]",
        "at_most: {'*': 2, look: 1}",
        "within: {turns: 3, tokens: 1000, cost: 0.01, prices: [2.5, 10]}",
        "answer_quotes_results: true",
        "answer_quotes_results: \"[0-9]+\"",
    ],
)  # fmt: skip
def test_a_run_that_is_as_expected_has_no_mismatch(tmp_path: Path, expect: str) -> None:
    assert mismatches(tmp_path, expect) == []


@table_test(
    ("expect", "facts"),
    [
        (
            "expect_calls: [{name: look, args: {n: {$range: [4, 5]}}, more: true}]",
            ("call 1", "look", "expected n={$range: [4, 5]}", "got n=3"),
        ),
        (
            "expect_calls: {calls: [{name: save}, {name: look}], order: subsequence}",
            ("look(...)", "not called"),
        ),
        (
            "expect_calls: [{name: look, args: {place: {$subset: {city: Rome}}, n: 3}}, {name: save}]",
            (
                "call 1",
                "look",
                "expected place={$subset: {'city': 'Rome'}}",
                "got place={'city': 'Oslo', 'zone': 2}",
            ),
        ),
        ("expect_calls: []", ("call 1", "too many", "look(place={'city': 'Oslo', 'zone': 2}, n=3)")),
        ("never_called: ['s*']", ("s*", "never", "call 2", "save()")),
        ("at_most: {'*': 1}", ("*", "2 times", "at most 1")),
        ("within: {turns: 2}", ("3 turns", "at most 2")),
        ("answer_quotes_results: degrees|It", ("'It'", "no tool", "'It is 9.'")),
    ],
)
def test_a_mismatch_names_the_word_and_shows_both_sides(
    tmp_path: Path, expect: str, facts: tuple[str, ...]
) -> None:
    (mismatch,) = mismatches(tmp_path, expect)
    assert says(mismatch.splitlines()[0], f"jobs.main.{expect.partition(':')[0]}", *facts)


def test_a_mismatch_of_calls_shows_them_side_by_side(tmp_path: Path) -> None:
    (mismatch,) = mismatches(tmp_path, "expect_calls: [{name: look}]")
    assert [line.strip() for line in mismatch.splitlines()[1:]] == [
        "expected   called",
        "look(...)  look(place={'city': 'Oslo', 'zone': 2}, n=3)",
        "save()",
    ]


@table_test(
    ("expect", "facts"),
    [
        (
            "expect_calls: [{name: look, args: {n: {$rang: [1, 2]}}}]",
            "expect_calls[0].args: ; {'$rang': [1, 2]}; not a condition; '$range'?",
        ),
        ("expect_calls: look", "expect_calls: ; list of calls; mapping of calls, order; got 'look'"),
        ("within: {}", "within: ; tokens, turns or cost"),
        ("never_called: []", "never_called: ; at least one"),
        ("at_most: {}", "at_most: ; at least one"),
        ("within: {cost: 1}", "within: ; cost and prices; together"),
        ("answer_quotes_results: '('", "answer_quotes_results: ; not a valid regular expression"),
    ],
)
def test_a_word_that_cannot_be_checked_is_refused_with_its_place(
    tmp_path: Path, expect: str, facts: str
) -> None:
    with pytest.raises(BadScenario, match=line_with(*facts.split("; "))):
        mismatches(tmp_path, expect)


@table_test(
    ("value", "facts"),
    [
        ({"$any": False}, ("$any: ", "true", "got False")),
        ({"$range": [3, 1]}, ("$range: ", "[low, high]", "got [3, 1]")),
        ({"$subset": 3}, ("$subset: ", "mapping", "got 3")),
        ({"$regex": "("}, ("$regex: ", "regular expression", "position 0", "got '('")),
        ([{"$any": True, "x": 1}], ("{'$any': True, 'x': 1}: ", "condition", "one key: '$any'")),
    ],
)
def test_a_wrong_condition_is_refused(value: JSON, facts: tuple[str, ...]) -> None:
    with pytest.raises(BadInput, match=line_with(*facts)):
        conditions_in(value)


def test_a_number_in_a_range_is_no_flag() -> None:
    condition = conditions_in({"$range": [0, 1]})
    assert (condition(1), condition(0.5), condition(True), condition("1")) == (True, True, False, False)
