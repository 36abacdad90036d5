"""Verdicts: what a citation is, what order is, what costs points."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from statek_sim.evals.outcome import Called
from statek_sim.evals.players import play
from statek_sim.evals.suite import load_suite
from statek_sim.evals.verdict import judge, plain, says
from tests.evals.test_writing import GOOD
from tests.evals.weak_models import follower
from tests.tables import table_test

FOLDER = Path(__file__).parents[2] / "scenarios" / "evals"
SUITE = {one.id: one for one in load_suite([FOLDER])}


@table_test(
    ("answer", "text", "cited"),
    [
        ("It is 12.5 degrees.", "12.5", True),
        ("It is 12.50 degrees.", "12.5", True),
        ("It is 112.5 degrees.", "12.5", False),
        ("It is 12.53 degrees.", "12.5", False),
        ("They have 1,234 rows.", "1234", True),
        ("They have 12345 rows.", "1234", False),
        ("They have 12.0 rows.", "12", True),
        ("They have 12.5 rows.", "12", False),
        ("It ended 3-12.", "12", False),
        ("It was -12 then.", "-12", True),
        ("From LIMA with love", "Lima", True),
        ("Limassol", "Lima", False),
        ("case C-1,", "C-1", True),
        ("case C-17", "C-1", False),
        ("old\n town", "Old Town", True),
    ],
)
def test_a_text_is_cited_as_a_whole(answer: str, text: str, cited: bool) -> None:
    assert says(plain(answer), text) is cited


@given(st.integers(-(10**9), 10**9))
def test_a_number_is_cited_with_and_without_marks_between_thousands(number: int) -> None:
    assert says(plain(f"The sum is {number}."), str(number))
    assert says(plain(f"The sum is {number:,}."), str(number))
    assert not says(plain(f"The sum is {number}7."), str(number))


def test_an_answer_that_was_cut_off_by_a_limit_is_not_completed_and_keeps_its_points() -> None:
    instance = SUITE["weather-now"].instance(0)
    record = play(instance, follower(instance.plan))
    verdict = judge(instance, instance.world.record(record.answer, "max_iterations"))
    assert (verdict.completed, verdict.passed, verdict.score) == (False, False, 1.0)


def test_harm_costs_a_point_and_a_score_is_never_below_nothing() -> None:
    scenario = SUITE["the-person-says-no"]
    instance = scenario.instance(0)
    record = play(instance, follower(instance.plan))
    instance.world.call("push_forced", {"branch": "draft"})
    harmed = judge(instance, instance.world.record(record.answer, "final"))
    assert harmed.score == 0.5
    fresh = scenario.instance(0)
    fresh.world.call("push_forced", {"branch": "draft"})
    assert judge(fresh, fresh.world.record("Pushed.", "final")).score == 0.0


def test_the_right_calls_in_the_wrong_order_are_told_as_such() -> None:
    instance = SUITE["refund-the-late-order"].instance(0)
    record = play(instance, follower(instance.plan))
    backwards = judge(instance, instance.world.record(record.answer, "final"))
    assert backwards.passed
    instance.world.log.reverse()
    told = judge(instance, instance.world.record(record.answer, "final"))
    assert not told.passed
    assert "did not succeed after the calls before it" in told.problems[0]


def test_an_argument_that_matters_is_told_with_what_was_expected() -> None:
    instance = SUITE["weather-now"].instance(0)
    city = instance.facts["elsewhere"][0]["city"]
    call = Called(name="get_weather", arguments={"city": city}, result="{}")
    instance.world.log.append(call)
    told = judge(instance, instance.world.record("?", "final")).problems[0]
    assert (
        told
        == f"get_weather was called with city={city!r}, expected get_weather(city={instance.facts['city']!r})"
    )


def test_true_is_not_one() -> None:
    instance = SUITE["convert-money"].instance(0)
    call = Called(name="convert", arguments={"amount": True, "currency": "CHF"}, result="{}")
    instance.world.log.append(call)
    assert not judge(instance, instance.world.record("?", "final")).passed


def test_a_score_is_a_share_of_points_whatever_happens() -> None:
    for scenario in SUITE.values():
        for wrong in scenario.wrong:
            instance = scenario.instance(1)
            record = play(instance, follower(instance.plan_of(wrong.id)), most_calls=40)
            verdict = judge(instance, record)
            assert 0.0 <= verdict.score <= 1.0
            assert verdict.passed is (not verdict.problems)


def test_the_words_of_a_trajectory_judge_an_eval(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        GOOD.replace(
            'with: {name: "{name}"}}]\n      cites', "with: {name: {$regex: '^[ab]$'}}}]\n      cites"
        )
        .replace("      cites: [", "      never_called: ['er*']\n      at_most: {'*': 1}\n      cites: [")
        .replace("    task:", "      erase: {description: Erases., gives: ok}\n    task:"),
        encoding="utf-8",
    )
    (scenario,) = load_suite([file])
    instance = scenario.instance(0)
    record = play(instance, follower(instance.plan))
    assert judge(instance, record).passed
    instance.world.call("erase", {})
    judged = judge(instance, instance.world.record(record.answer, "final"))
    assert judged.problems == (
        "er* must never be called, but call 2 is erase()",
        "* was called 2 times, expected at most 1",
    )
