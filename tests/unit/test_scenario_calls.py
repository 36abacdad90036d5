"""The words of a trajectory in the files of scenarios: what they accept, and how a mismatch reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.errors import BadInput, BadScenario
from statek_sim.scenario.calls import conditions_in
from statek_sim.suite.diff import describe
from statek_sim.suite.run import run_one
from statek_sim.values import JSON
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
    ("expect", "message"),
    [
        (
            "expect_calls: [{name: look, args: {n: {$range: [4, 5]}}, more: true}]",
            "jobs.main.expect_calls: call 1 (look): expected n={$range: [4, 5]}, got n=3",
        ),
        (
            "expect_calls: {calls: [{name: save}, {name: look}], order: subsequence}",
            "jobs.main.expect_calls: expected look(...) after the preceding expected calls: "
            "it was not called",
        ),
        (
            "expect_calls: [{name: look, args: {place: {$subset: {city: Rome}}, n: 3}}, {name: save}]",
            "jobs.main.expect_calls: call 1 (look): expected place={$subset: {'city': 'Rome'}}, "
            "got place={'city': 'Oslo', 'zone': 2}",
        ),
        (
            "expect_calls: []",
            "jobs.main.expect_calls: call 1 is one too many: look(place={'city': 'Oslo', 'zone': 2}, n=3)",
        ),
        ("never_called: ['s*']", "jobs.main.never_called: s* must never be called, but call 2 is save()"),
        ("at_most: {'*': 1}", "jobs.main.at_most: * was called 2 times, expected at most 1:"),
        ("within: {turns: 2}", "jobs.main.within: the run took 3 turns, expected at most 2:"),
        (
            "answer_quotes_results: degrees|It",
            "jobs.main.answer_quotes_results: the answer contains 'It', which no tool returned: 'It is 9.'",
        ),
    ],
)  # fmt: skip
def test_a_mismatch_names_the_word_and_shows_both_sides(tmp_path: Path, expect: str, message: str) -> None:
    (mismatch,) = mismatches(tmp_path, expect)
    assert mismatch.splitlines()[0] == message


def test_a_mismatch_of_calls_shows_them_side_by_side(tmp_path: Path) -> None:
    (mismatch,) = mismatches(tmp_path, "expect_calls: [{name: look}]")
    assert [line.strip() for line in mismatch.splitlines()[1:]] == [
        "expected   called",
        "look(...)  look(place={'city': 'Oslo', 'zone': 2}, n=3)",
        "save()",
    ]


@table_test(
    ("expect", "message"),
    [
        (
            "expect_calls: [{name: look, args: {n: {$rang: [1, 2]}}}]",
            "expect_calls[0].args: {'$rang': [1, 2]} is not a condition. Did you mean '$range'?",
        ),
        ("expect_calls: look", "expect_calls: expected a list of calls, or a mapping of calls, order"),
        ("within: {}", "within: expected tokens, turns or cost"),
        ("never_called: []", "never_called: expected at least one entry"),
        ("at_most: {}", "at_most: expected at least one entry"),
        ("within: {cost: 1}", "within: cost and prices must be given together"),
        ("answer_quotes_results: '('", "not a valid regular expression"),
    ],
)
def test_a_word_that_cannot_be_checked_is_refused_with_its_place(
    tmp_path: Path, expect: str, message: str
) -> None:
    with pytest.raises(BadScenario) as caught:
        mismatches(tmp_path, expect)
    assert message in str(caught.value)


@table_test(
    ("value", "message"),
    [
        ({"$any": False}, "$any: expected true, got False"),
        ({"$range": [3, 1]}, "$range: expected [low, high], got [3, 1]"),
        ({"$subset": 3}, "$subset: expected a mapping, got 3"),
        ({"$regex": "("}, "$regex: expected a regular expression (missing ), unterminated subpattern at position 0), got '('"),  # noqa: E501
        ([{"$any": True, "x": 1}], "{'$any': True, 'x': 1}: a condition must be a mapping with one key: '$any'"),
    ],
)  # fmt: skip
def test_a_wrong_condition_is_refused(value: JSON, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        conditions_in(value)
    assert str(caught.value) == message


def test_a_number_in_a_range_is_no_flag() -> None:
    condition = conditions_in({"$range": [0, 1]})
    assert (condition(1), condition(0.5), condition(True), condition("1")) == (True, True, False, False)
