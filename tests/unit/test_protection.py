"""Loop protection: step limit, repetition, circuit breakers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim.agent.protection import (
    Breakers,
    BreakerSettings,
    CallSeen,
    Loop,
    LoopSettings,
    Permit,
    StepCount,
    TooManySteps,
    TurnSeen,
    Watch,
    next_step,
    observe,
    similarity,
)
from statek_sim.errors import BadInput
from statek_sim.values import JSON
from tests.says import line_with
from tests.tables import table_test

# -- steps -------------------------------------------------------------------------------------------------------


def test_step_101_of_100_is_refused_in_the_documents_words() -> None:
    count: StepCount | TooManySteps = StepCount()
    for _ in range(100):
        assert isinstance(count, StepCount)
        count = next_step(count)
    assert count == StepCount(100)
    assert isinstance(count, StepCount)
    refused = next_step(count)
    assert isinstance(refused, TooManySteps)
    assert refused.message == "Task exceeded max iterations (100)"


@pytest.mark.parametrize("most", [0, -1])
def test_a_limit_below_one_is_bad_input(most: int) -> None:
    with pytest.raises(BadInput, match=line_with("step limit", "at least 1", f"got {most}")):
        next_step(StepCount(), most)


# -- similarity --------------------------------------------------------------------------------------------------


@given(st.text(max_size=40), st.text(max_size=40))
def test_similarity_is_symmetric_bounded_and_one_for_equal_texts_alone(one: str, other: str) -> None:
    alike = similarity(one, other)
    assert alike == similarity(other, one)
    assert 0.0 <= alike <= 1.0
    assert (alike == 1.0) is (one == other)


def test_similarity_of_long_texts_looks_at_both_ends() -> None:
    long = "x" * 1_000_000
    assert similarity(long, long + "y") > 0.9
    assert similarity(long, "y" * 1_000_000) < 0.1
    assert similarity(long, long[:100]) < 0.01


# -- repetition --------------------------------------------------------------------------------------------------


def _call(tool: str, result: str = "ok", **arguments: JSON) -> TurnSeen:
    return TurnSeen(calls=[CallSeen(tool=tool, arguments=arguments, result=result)])


def _loops(turns: Sequence[TurnSeen], settings: LoopSettings | None = None) -> list[tuple[int, Loop]]:
    watch, found = Watch(), []
    for number, turn in enumerate(turns, 1):
        watch, loop = observe(watch, turn, settings)
        if loop is not None:
            found.append((number, loop))
    return found


@table_test("period", [1, 2, 3, 4])
def test_every_period_up_to_four_is_found_at_its_third_repetition(period: int) -> None:
    turns = [_call("read", path=str(number)) for number in range(period)]
    ((number, loop),) = _loops(turns * 3)
    assert (number, loop.period, loop.repeats, loop.response) == (3 * period, period, 3, "nudge")


def test_the_order_of_arguments_does_not_hide_a_loop() -> None:
    one = TurnSeen(calls=[CallSeen(tool="f", arguments={"a": 1, "b": 2}, result="")])
    other = TurnSeen(calls=[CallSeen(tool="f", arguments={"b": 2, "a": 1}, result="")])
    assert [number for number, _ in _loops([one, other, one])] == [3]


def test_another_result_is_no_repetition() -> None:
    assert _loops([_call("status", f"{percent} %") for percent in range(20)]) == []


@table_test(
    ("period", "turns"),
    [
        (1, [_call("find", q="a cheap hotel" + " " * number) for number in range(30)]),
        (1, [_call("find", q=f"a cheap hotel in the centre of Oslo, page {number}") for number in range(30)]),
        (1, [_call("clock", f"at 12:00:{number:02} the job was still waiting for a machine") for number in range(30)]),
        (2, [_call(("find", "grep")[number % 2], q=f"a hotel in the centre, page {number}") for number in range(30)]),
        (1, [TurnSeen(text=f"I look into the folder once more ({number}).") for number in range(2)]
            + [_call("find", f"nothing was found in {number} files of the project") for number in range(28)]),
    ],
)  # fmt: skip
def test_thirty_turns_that_are_nearly_the_same_are_a_loop(period: int, turns: list[TurnSeen]) -> None:
    [(number, loop)] = _loops(turns)
    assert (number <= 27, loop.period, loop.repeats, loop.response) == (True, period, 25 // period, "nudge")
    what = {1: "were nearly the same", 2: "nearly repeated the same 2 turns"}[period]
    assert loop.reason == f"25 turns in a row {what}; do something else if they lead nowhere"
    assert _loops(turns, LoopSettings(near=0)) == []


def test_one_pair_of_similar_turns_among_others_is_no_loop() -> None:
    texts = [
        "I look into the folder once more (1).",
        "Paris?",
        "12 + 30 = 42",
        "I look into the folder once more (2).",
    ]
    assert _loops([TurnSeen(text=text) for text in texts], LoopSettings(near=4)) == []
    [(number, loop)] = _loops(
        [TurnSeen(text=text) for text in texts[::3] * 2], LoopSettings(near=4, repeats=9)
    )
    assert (number, loop.period, loop.repeats) == (4, 1, 4)


@table_test(
    "turns",
    [
        [_call("page", f"{number * 7} {number**3} {number**5}", cursor=str(number**4)) for number in range(60)],
        [_call("read", "import os\n" * number, path=f"src/{chr(97 + number)}/main.py") for number in range(26)],
        [_call("clock", f"at 12:00:{number:02} the job waits") for number in range(24)],
        [_call(("read", "edit")[number % 2], path=f"src/{chr(97 + number // 2) * 9}.py") for number in range(40)],
    ],
)  # fmt: skip
def test_pages_and_files_are_none(turns: list[TurnSeen]) -> None:
    assert _loops(turns) == []


def test_turns_that_poll_are_never_nearly_the_same() -> None:
    waiting = [_call("clock", f"at 12:00:{number:02} the job was still waiting") for number in range(30)]
    assert _loops(waiting, LoopSettings(polling={"clock": 5})) == []


def test_a_tool_that_polls_is_allowed_the_same_answer_and_no_more() -> None:
    patient = LoopSettings(polling={"status": 10})
    assert _loops([_call("status", "pending")] * 10, patient) == []
    assert [number for number, _ in _loops([_call("status", "pending")] * 11, patient)] == [11]
    assert [number for number, _ in _loops([_call("read")] * 3, patient)] == [3]


def test_a_loop_of_polls_is_told_with_the_number_of_times_they_came() -> None:
    [(_, loop)] = _loops([_call("status", "pending")] * 11, LoopSettings(polling={"status": 10}))
    assert loop.repeats == 11
    assert loop.reason == (
        "the same turn occurred 11 times in a row; do something else, or say why you cannot"
    )


def test_two_that_poll_in_turn_are_each_allowed_their_answers_and_no_more() -> None:
    patient = LoopSettings(polling={"build": 5, "deploy": 10})
    in_turn = [_call("build", "pending"), _call("deploy", "pending")]
    assert _loops(in_turn * 5, patient) == []
    assert [number for number, _ in _loops(in_turn * 6, patient)] == [12]
    twice = [*in_turn, _call("build", "pending"), _call("deploy", "almost")]
    assert [number for number, _ in _loops(twice * 10, patient)][:1] == [12]
    very = LoopSettings(polling={"build": 20, "deploy": 20})
    assert [number for number, _ in _loops(in_turn * 30, very)] == [42]


def test_polling_beside_another_call_is_no_excuse() -> None:
    both = TurnSeen(
        calls=[
            CallSeen(tool="status", arguments={}, result="pending"),
            CallSeen(tool="write", arguments={}, result="ok"),
        ]
    )
    assert [number for number, _ in _loops([both] * 3, LoopSettings(polling={"status": 10}))] == [3]


def test_texts_that_are_nearly_equal_are_the_same_turn() -> None:
    turns = [
        TurnSeen(text=f"I will now look at the file and then report back, attempt {n}.") for n in range(3)
    ]
    assert [number for number, _ in _loops(turns)] == [3]
    different = [
        TurnSeen(text=text) for text in ("First the plan.", "Now the code itself.", "Tests are next, then.")
    ]
    assert _loops(different) == []


def test_progress_clears_what_was_seen_and_done() -> None:
    again, progress = _call("read"), TurnSeen(progress=True)
    assert _loops([again, again, progress, again, again]) == []
    found = _loops([again] * 3 + [progress] + [again] * 3)
    assert [loop.response for _, loop in found] == ["nudge", "nudge"]


def test_the_strategy_changes_with_every_loop_and_ends_in_a_stop() -> None:
    found = _loops([_call("read")] * 15)
    assert [(number, loop.response) for number, loop in found] == [
        (3, "nudge"),
        (6, "fewer_tools"),
        (9, "escalate"),
        (12, "stop"),
        (15, "stop"),
    ]
    assert found[0][1].reason == (
        "the same turn occurred 3 times in a row; do something else, or say why you cannot"
    )


def test_a_loop_that_is_left_for_long_starts_over_at_the_first_response() -> None:
    other = [_call("read", path=str(number)) for number in range(12)]
    found = _loops([_call("read")] * 3 + other + [_call("read")] * 3)
    assert [loop.response for _, loop in found] == ["nudge", "nudge"]


def test_a_watch_is_a_value_and_goes_on_after_a_resume() -> None:
    watch, _ = observe(Watch(), _call("read"))
    watch, _ = observe(watch, _call("read"))
    saved = watch
    observe(watch, _call("write"))
    assert saved == watch
    assert observe(saved, _call("read"))[1] is not None


def test_texts_are_a_loop_when_a_period_of_them_repeats() -> None:
    outputs = {
        "a": "reading the configuration file",
        "b": "writing the summary of findings",
        "c": "testing it all",
    }

    assert _loops([TurnSeen(text=outputs[one]) for one in "aba"]) == []
    assert [number for number, _ in _loops([TurnSeen(text=outputs[one]) for one in "abcabcabc"])] == [9]


def test_settings_that_mean_nothing_are_bad_input() -> None:
    with pytest.raises(BadInput, match=line_with("at least 1 turn", "at least 2 repeats", "got 0 and 3")):
        LoopSettings(periods=0)
    with pytest.raises(BadInput, match=line_with("strategy", "at least one response")):
        LoopSettings(strategy=())
    with pytest.raises(BadInput, match=line_with("'wait'", "nudge, fewer_tools, escalate, stop")):
        LoopSettings(strategy=("nudge", "wait"))  # type: ignore[arg-type]
    for alike in (-0.1, 1.1, math.nan):
        with pytest.raises(BadInput, match=r"^expected `alike` from 0 to 1, got "):
            LoopSettings(alike=alike)
    with pytest.raises(BadInput, match=line_with("polling limit", "'status'", "-1 times", "0 or more")):
        LoopSettings(polling={"status": -1})


# -- breakers ----------------------------------------------------------------------------------------------------

SETTINGS = BreakerSettings(failures=2, cooldown=60.0, lease=30.0)


def _permit(breakers: Breakers, key: str, at: float) -> Permit:
    permit = breakers.ask(key, at=at)
    assert permit is not None
    return permit


def _opened() -> Breakers:
    breakers = Breakers(SETTINGS)
    for _ in range(2):
        breakers.tell("web", _permit(breakers, "web", 0.0), at=0.0, failed=True)
    return breakers


def test_failures_in_a_row_open_one_key_and_no_other() -> None:
    breakers = _opened()
    assert breakers.ask("web", at=59.9) is None
    assert breakers.ask("disk", at=0.0) is not None
    assert (
        breakers.why_not("web", at=10.0)
        == "'web' failed 2 times in a row and will not be called for another 50 s"
    )


def test_a_success_in_between_starts_the_count_over() -> None:
    breakers = Breakers(SETTINGS)
    for failed in (True, False, True):
        breakers.tell("web", _permit(breakers, "web", 0.0), at=0.0, failed=failed)
    assert breakers.ask("web", at=0.0) is not None


@pytest.mark.parametrize(("failed", "open_after"), [(False, True), (True, False)])
def test_one_probe_decides(failed: bool, open_after: bool) -> None:
    breakers = _opened()
    probe = _permit(breakers, "web", 60.0)
    assert breakers.ask("web", at=60.0) is None
    assert (
        breakers.why_not("web", at=60.0) == "'web' failed before and is being tried by one call; wait for it"
    )
    breakers.tell("web", probe, at=61.0, failed=failed)
    assert (breakers.ask("web", at=61.0) is not None) is open_after


def test_a_probe_that_never_ends_loses_its_lease_and_its_say() -> None:
    breakers = _opened()
    lost = _permit(breakers, "web", 60.0)
    assert breakers.ask("web", at=89.9) is None
    second = _permit(breakers, "web", 90.0)
    breakers.tell("web", lost, at=91.0, failed=True)
    breakers.tell("web", second, at=92.0, failed=False)
    assert breakers.state["web"].circuit == "closed"


def test_a_probe_that_was_not_made_lets_the_next_one_through_and_decides_nothing() -> None:
    breakers = _opened()
    unused = _permit(breakers, "web", 60.0)
    breakers.withdraw("web", unused, at=61.0)
    second = _permit(breakers, "web", 61.0)
    breakers.withdraw("web", unused, at=61.5)
    breakers.tell("web", unused, at=61.5, failed=True)
    assert breakers.ask("web", at=62.0) is None
    breakers.tell("web", second, at=62.0, failed=False)
    assert breakers.state["web"].circuit == "closed"


def test_a_call_that_was_not_made_leaves_a_closed_and_an_open_breaker_as_they_were() -> None:
    breakers = Breakers(SETTINGS)
    unused, *failing = (_permit(breakers, "web", 0.0) for _ in range(3))
    for permit in failing:
        before = breakers.state
        breakers.withdraw("web", unused, at=0.5)
        assert breakers.state == before
        breakers.tell("web", permit, at=1.0, failed=True)
    breakers.withdraw("web", unused, at=2.0)
    assert breakers.ask("web", at=3.0) is None


def test_a_late_result_changes_nothing() -> None:
    breakers = Breakers(SETTINGS)
    slow, *failing = (_permit(breakers, "web", 0.0) for _ in range(3))
    for permit in failing:
        breakers.tell("web", permit, at=1.0, failed=True)
    breakers.tell("web", slow, at=2.0, failed=False)
    assert breakers.ask("web", at=3.0) is None


def test_the_state_of_breakers_is_restored() -> None:
    resumed_ones = Breakers(SETTINGS)
    resumed_ones.restore(_opened().state)
    assert resumed_ones.ask("web", at=1.0) is None
    assert resumed_ones.ask("web", at=60.0) is not None


@table_test("settings", [{"failures": 0}, {"cooldown": 0.0}, {"lease": -1.0}, {"cooldown": math.nan}])
def test_breaker_settings_are_checked(settings: Mapping[str, float]) -> None:
    with pytest.raises(BadInput, match=line_with("breaker", "at least 1 failure", "above 0")):
        BreakerSettings(**settings)  # type: ignore[arg-type]


@given(st.lists(st.sampled_from(["read", "write", "status"]), max_size=30))
def test_a_loop_is_only_said_when_the_newest_turns_are_one(tools: list[str]) -> None:
    settings = LoopSettings(strategy=("nudge",))
    watch, since = Watch(), 0
    for number, tool in enumerate(tools):
        watch, loop = observe(watch, _call(tool), settings)
        seen = tools[since : number + 1]
        periodic = any(
            len(seen) >= 3 * period
            and all(seen[-at] == seen[-at - period] for at in range(1, 2 * period + 1))
            for period in range(1, 5)
        )
        assert (loop is not None) is periodic, json.dumps(seen)
        if loop is not None:
            since = number + 1
