"""Faults on command: which requests they strike, and what they make of an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from statek_sim.errors import BadInput, UnusedReplies
from statek_sim.providers.condition import Condition, equals
from statek_sim.providers.script import fault, text
from statek_sim.server.exchange import EVENTS_TYPE, Silence, Streamed, Whole
from statek_sim.server.fault import (
    EmptyChoices,
    Fault,
    FaultRule,
    HttpError,
    Malformed,
    NoAnswerAtAll,
    NoUsage,
    NullUsage,
    Reset,
    SlowFirstByte,
    SlowTokens,
    Truncated,
    WrongContentType,
    exclude_each_other,
)
from statek_sim.server.llm import FakeLLM
from tests.says import line_with, says
from tests.server.asking import (
    ANTHROPIC,
    GEMINI,
    GEMINI_STREAM,
    OPENAI,
    anthropic,
    ask,
    gemini,
    openai,
    streamed,
    whole,
)
from tests.tables import table_test


def struck(fault: Fault) -> FakeLLM:
    """Return an LLM whose every answer has the fault."""
    llm = FakeLLM()
    llm.play([text("Hello there, friend").forever()], faults=[FaultRule(fault=fault, rate=1.0)])
    return llm


def statuses(llm: FakeLLM, count: int, **options: str) -> list[int]:
    answers = [ask(llm, openai(**options)) for _ in range(count)]
    return [answer.status for answer in answers if not isinstance(answer, Silence)]


def test_a_fault_by_position_leaves_the_script_to_the_retry() -> None:
    llm = FakeLLM()
    llm.play(
        [text("one"), text("two")], faults=[FaultRule(fault=HttpError(429, retry_after=1), positions=(1, 3))]
    )
    first = ask(llm, openai())
    assert isinstance(first, Whole)
    assert (first.status, first.headers) == (429, (("retry-after", "1"),))
    assert whole(ask(llm, openai()))["choices"][0]["message"]["content"] == "one"
    assert statuses(llm, 2) == [429, 200]
    llm.check_finished()


def test_a_rate_strikes_the_same_requests_with_the_same_seed() -> None:
    def run(seed: int) -> list[int]:
        llm = FakeLLM()
        llm.play([text("x").forever()], faults=[FaultRule(fault=HttpError(500), rate=0.3, seed=seed)])
        return statuses(llm, 200)

    assert run(7) == run(7)
    assert run(7) != run(8)
    assert 40 <= run(7).count(500) <= 80


def test_a_condition_and_a_number_of_times_bound_a_fault() -> None:
    llm = FakeLLM()
    rule = FaultRule(fault=HttpError(503), when=Condition(model=equals("o3")), times=1)
    llm.play([text("x").forever()], faults=[rule])
    assert statuses(llm, 2) == [200, 200]
    assert statuses(llm, 2, model="o3") == [503, 200]
    llm.check_finished()


def test_a_fault_that_met_no_request_fails_the_check() -> None:
    llm = FakeLLM()
    llm.play([text("x")], faults=[FaultRule(fault=Reset(after=2), positions=(5,))])
    ask(llm, openai())
    with pytest.raises(
        UnusedReplies, match=line_with("Reset(after=2)", "request 5", "no request", "requests: 1")
    ):
        llm.check_finished()


def test_a_fault_that_met_only_some_of_its_requests_says_which_it_did_not_meet() -> None:
    llm = FakeLLM()
    llm.play([text("x").forever()], faults=[FaultRule(fault=NullUsage(), positions=(1, 2, 4, 5))])
    assert statuses(llm, 3) == [200, 200, 200]
    missed = ("request 1 and 2 and 4 and 5", "not affect request 4 and 5", "requests: 3")
    with pytest.raises(UnusedReplies, match=line_with("NullUsage()", *missed)):
        llm.check_finished()
    llm.play([], faults=[FaultRule(fault=NullUsage(), positions=(1, 1))])
    missed = ("request 1 and 1", "no request", "requests: 0")
    with pytest.raises(UnusedReplies, match=line_with("NullUsage()", *missed)):
        llm.check_finished()


@table_test(
    ("rule", "facts"),
    [
        ({}, "positions, rate, when or times; rate=1.0"),
        ({"rate": 1.5}, "rate; from 0 to 1; got 1.5"),
        ({"positions": (0,)}, "positions; at 1; got (0,)"),
        ({"times": 0}, "times; 1 or more; got 0"),
    ],
)
def test_a_rule_that_says_nothing_or_nonsense_is_refused(rule: dict[str, float], facts: str) -> None:
    with pytest.raises(BadInput, match=line_with("NullUsage(): ", *facts.split("; "))):
        FaultRule(fault=NullUsage(), **rule)  # type: ignore[arg-type]


def test_a_rule_without_a_fault_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^fault <class '.*HttpError'>: expected a fault, such as "):
        FaultRule(fault=HttpError, rate=1.0)  # type: ignore[arg-type]


LIMIT = FaultRule(fault=HttpError(429), positions=(1,))


def test_a_reply_is_no_rule() -> None:
    with pytest.raises(BadInput, match=line_with("faults", "reply", "fault(429)", "script")):
        FakeLLM([], faults=[fault(429)])  # type: ignore[list-item]


@table_test("wrong", [{"faults": LIMIT}, {"faults": HttpError(429)}, {"ignored": "seed"}, {"models": "m"}])
def test_what_is_in_no_list_is_refused(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(BadInput, match=rf"^{name}=.*: expected a list, {name}=\[\.\.\.\]$"):
        FakeLLM([], **wrong)


@pytest.mark.parametrize("make", [lambda: HttpError(200), lambda: SlowTokens(-1), lambda: Reset(after=-1)])
def test_a_fault_that_is_none_is_refused(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(
        BadInput,
        match=r"^(expected an HTTP error status|expected a finite delay|expected `after` to be) .*$",
    ):
        make()


def test_usage_can_be_null_or_absent() -> None:
    assert whole(ask(struck(NullUsage()), openai()))["usage"] is None
    assert "usage" not in whole(ask(struck(NoUsage()), openai()))
    stream = streamed(ask(struck(NoUsage()), openai(stream=True, stream_options={"include_usage": True})))
    assert b'"usage"' not in stream


@pytest.mark.parametrize(
    ("body", "target", "key"),
    [(openai(), OPENAI, "choices"), (anthropic(), ANTHROPIC, "content"), (gemini(), GEMINI, "candidates")],
)
def test_choices_can_be_empty(body: object, target: str, key: str) -> None:
    assert whole(ask(struck(EmptyChoices()), body, target))[key] == []


@pytest.mark.parametrize(
    ("body", "target"),
    [(openai(stream=True), OPENAI), (anthropic(stream=True), ANTHROPIC), (gemini(), GEMINI_STREAM)],
)
def test_a_stream_can_be_without_choices_and_is_still_a_stream(body: object, target: str) -> None:
    stream = streamed(ask(struck(EmptyChoices()), body, target)).decode()
    events = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
    assert events
    assert "Hello" not in stream


def test_an_answer_can_be_cut_or_close_with_the_wrong_bracket() -> None:
    good = struck(WrongContentType()), struck(Truncated()), struck(Malformed())
    complete, cut, broken = (ask(llm, openai()) for llm in good)
    assert isinstance(complete, Whole)
    assert isinstance(cut, Whole)
    assert isinstance(broken, Whole)
    assert complete.content_type == "text/html; charset=utf-8"
    assert cut.body == complete.body[: len(complete.body) // 2]
    assert broken.body == complete.body[:-1] + b"]"


def test_of_a_stream_one_event_is_broken_and_the_others_are_good() -> None:
    lines = streamed(ask(struck(Malformed()), openai(stream=True))).decode().split("\n\n")
    broken = [line for line in lines if line.startswith("data: {") and not _is_json(line[6:])]
    assert len(broken) == 1
    assert lines[-2:] == ["data: [DONE]", ""]


def test_a_truncated_stream_ends_in_the_middle_of_an_event() -> None:
    stream = streamed(ask(struck(Truncated()), openai(stream=True)))
    assert not stream.endswith(b"\n\n")
    assert b"[DONE]" not in stream


def test_resets_come_after_so_many_events_or_before_an_answer_in_one_piece() -> None:
    stream = ask(struck(Reset(after=2)), openai(stream=True))
    assert isinstance(stream, Streamed)
    assert (stream.reset, len(stream.frames), stream.content_type) == (True, 2, EVENTS_TYPE)
    piece = ask(struck(Reset()), openai())
    assert isinstance(piece, Streamed)
    assert (piece.reset, [frame.data for frame in piece.frames]) == (True, [b""])


def test_slow_answers_take_real_seconds_whatever_the_pace() -> None:
    first = ask(struck(SlowFirstByte(0.5)), openai(stream=True))
    assert isinstance(first, Streamed)
    assert [frame.delay for frame in first.frames][:3] == [0.5, 0.0, 0.0]
    slow = ask(struck(SlowTokens(0.25)), openai(stream=True))
    assert isinstance(slow, Streamed)
    assert {frame.delay for frame in slow.frames[1:]} == {0.25}
    piece = ask(struck(SlowFirstByte(0.5)), openai())
    assert isinstance(piece, Whole)
    assert piece.delay == 0.5


def test_silence_leaves_the_script_alone() -> None:
    llm = FakeLLM()
    llm.play([text("x")], faults=[FaultRule(fault=NoAnswerAtAll(), positions=(1,))])
    assert isinstance(ask(llm, openai()), Silence)
    assert whole(ask(llm, openai()))["choices"][0]["message"]["content"] == "x"


def test_the_journal_says_which_faults_struck() -> None:
    llm = struck(Reset(after=1))
    ask(llm, openai(stream=True))
    (entry,) = llm.journal.entries()
    assert entry.faults == (Reset(after=1),)
    line = "1. /v1/chat/completions -> 200 with Reset(after=1): reply 1: text 'Hello there, friend'"
    assert entry.line().startswith(line)
    assert says(entry.line(), "not fully received")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


ALL: tuple[Fault, ...] = (
    HttpError(429, retry_after=1),
    NoAnswerAtAll(),
    NullUsage(),
    NoUsage(),
    EmptyChoices(),
    Malformed(),
    Truncated(),
    SlowFirstByte(1.0),
    SlowTokens(1.0),
    WrongContentType(),
    Reset(after=2),
)
PAIRS = [(one, other) for number, one in enumerate(ALL) for other in ALL[number:]]


@table_test(("one", "other"), PAIRS, ids=lambda fault: type(fault).__name__)
@table_test(
    ("target", "body"),
    [
        (OPENAI, openai()),
        (OPENAI, openai(stream=True)),
        (ANTHROPIC, anthropic(stream=True)),
        (GEMINI_STREAM, gemini()),
        ("/v1/responses", {"model": "m", "input": "hi", "stream": True}),
        ("/v1/embeddings", {"model": "m", "input": "hi"}),
    ],
    ids=["whole", "stream", "anthropic", "gemini", "responses", "embeddings"],
)
def test_two_faults_on_one_request_combine_in_either_order_or_are_refused(
    one: Fault, other: Fault, target: str, body: dict[str, object]
) -> None:
    def answered(*faults: Fault) -> object:
        rules = [FaultRule(fault=fault, positions=(1,)) for fault in faults]
        llm = FakeLLM([text("Hello there, friend").forever()], faults=rules)
        answer = ask(llm, body, target)
        (entry,) = llm.journal.entries()
        assert entry.problem is None, entry.problem
        assert set(entry.faults) == set(faults)
        return answer

    if exclude_each_other(one, other):
        for pair in ((one, other), (other, one)):
            with pytest.raises(BadInput, match=line_with("exclude each other", "request 1")):
                answered(*pair)
        return
    assert answered(one, other) == answered(other, one)


def test_of_faults_that_exclude_each_other_one_strikes_and_the_other_waits() -> None:
    rules = [FaultRule(fault=HttpError(429), times=1), FaultRule(fault=HttpError(503), times=1)]
    llm = FakeLLM([text("x")], faults=rules)
    assert statuses(llm, 3) == [429, 503, 200]
    llm.check_finished()


def test_a_position_goes_before_a_rate() -> None:
    rules = [FaultRule(fault=HttpError(429), rate=1.0), FaultRule(fault=HttpError(503), positions=(2,))]
    llm = FakeLLM([], faults=rules)
    assert statuses(llm, 3) == [429, 503, 429]
    llm.check_finished()


def test_an_error_status_has_faults_in_its_bytes_too() -> None:
    faults: tuple[Fault, ...] = (
        HttpError(500),
        Truncated(),
        WrongContentType("text/html"),
        SlowFirstByte(2.0),
    )
    llm = FakeLLM([], faults=[FaultRule(fault=fault, positions=(1,)) for fault in faults])
    answer = ask(llm, openai())
    assert isinstance(answer, Whole)
    assert (answer.status, answer.content_type, answer.delay) == (500, "text/html", 2.0)
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        json.loads(answer.body)
