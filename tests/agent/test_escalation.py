"""Ladders: what climbs, what is carried and who is asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim import trace as events
from statek_sim.agent.async_driver import AsyncDriver, LoopClock, model_of
from statek_sim.agent.effects import Choice, Delayed, Parts, PersonSaid
from statek_sim.agent.escalation import (
    REACTIONS,
    Attempt,
    Cause,
    Climb,
    Decision,
    Judgement,
    Ladder,
    Level,
    Price,
    after,
    cause_of_failure,
    cause_of_stop,
    climb_json,
    climb_of,
    question_text,
    task_text,
)
from statek_sim.agent.harness import AgentHarness
from statek_sim.errors import BadInput, ProviderFailure, ProviderHTTPError, ProviderTimeout
from statek_sim.harness.harness import LLM_Harness
from statek_sim.providers.script import text, tool_call
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.scenario.agent import AgentStop
from statek_sim.virtual_loop import VirtualLoop, run_in
from tests.says import line_with
from tests.tables import table_test


def good(task: str, answer: str) -> Judgement:
    return Judgement("GOOD" in answer, "not GOOD", score=len(answer))


FAST = Level(name="fast", model="small", attempts=2, price=Price(per_million=Decimal(1)))
STRONG = Level(name="strong", model="large", carry="best")
PERSON = Level(name="person", question="{task}\n{attempts}", seconds=60.0)
LADDER = Ladder(levels=(FAST, STRONG, PERSON), checks=[good])


def http(status: int) -> ProviderHTTPError:
    return ProviderHTTPError(f"error {status}", status=status)


# -- what climbs -----------------------------------------------------------------------------------------------


def test_every_cause_has_a_reaction_and_every_stop_of_a_run_a_cause() -> None:
    assert set(REACTIONS) == set(Cause)
    known = {cause_of_stop(stop) for stop in get_args(AgentStop)}
    assert {Cause.BUDGET, Cause.STUCK, Cause.BLOCKED, Cause.MAX_NUDGES} <= known
    assert cause_of_stop("max_token_usage") is Cause.LIMIT


@table_test(
    ("failure", "cause"),
    [
        (http(401), Cause.UNAUTHORISED),
        (http(402), Cause.UNAUTHORISED),
        (http(429), Cause.RATE_LIMITED),
        (http(408), Cause.UNAVAILABLE),
        (http(503), Cause.UNAVAILABLE),
        (http(400), Cause.BAD_REQUEST),
        (ProviderTimeout(""), Cause.UNAVAILABLE),
    ],
)
def test_a_failure_has_a_cause(failure: ProviderFailure, cause: Cause) -> None:
    assert cause_of_failure(failure) is cause


def walked(
    *ends: tuple[Cause, str | None], ladder: Ladder = LADDER
) -> tuple[Climb, list[Decision], list[str]]:
    """Return how far a task is when its attempts end like this, what followed each, and what each was told."""
    state, decisions, tasks = Climb(task="Write."), list[Decision](), list[str]()
    for cause, answer in ends:
        level = ladder.levels[state.level]
        tasks.append(task_text(state, ladder))
        ended = Attempt(
            level=level.name,
            number=state.number,
            model=level.model,
            cause=cause,
            detail="not GOOD",
            tokens=500_000,
            cost=None if level.price is None else level.price.cost(500_000),
            answer=answer,
            score=len(answer or ""),
        )
        state, decision = after(state, ended, ladder)
        decisions.append(decision)
    return state, decisions, tasks


@pytest.mark.parametrize("cause", [Cause.UNAUTHORISED, Cause.BAD_REQUEST, Cause.BUG, Cause.BUDGET])
def test_what_a_stronger_model_cannot_help_with_ends_the_climb(cause: Cause) -> None:
    assert walked((cause, None))[1] == [Decision("stop")]


def test_a_provider_that_is_down_is_waited_for_longer_each_time() -> None:
    patient = replace(LADDER, levels=(replace(FAST, attempts=5),), backoff=4.0, longest=10.0)
    _, decisions, _ = walked(*[(Cause.UNAVAILABLE, None)] * 4, ladder=patient)
    assert [decision.wait for decision in decisions] == [4, 8, 10, 10]


def test_an_attempt_is_told_what_its_level_declares() -> None:
    poor = Cause.POOR_QUALITY
    state, _, tasks = walked((poor, "bad"), (poor, "less bad"), (Cause.SOLVED, "GOOD"))
    assert tasks == [
        "Write.",
        "Write.",
        "Write.\n\nAn earlier attempt failed: not GOOD.\nThe best answer so far:\nless bad",
    ]
    assert [(one.cost, one.cause.value) for one in state.attempts[:2]] == [
        (Decimal("0.5"), "poor_quality")
    ] * 2
    assert (state.tokens, state.cost) == (1_500_000, None)


def test_a_question_is_filled_in_at_once() -> None:
    state, _, _ = walked((Cause.STUCK, None))
    person = replace(PERSON, question="{task}: {attempts}")
    assert question_text(replace(state, task="{attempts}?"), person) == "{attempts}?: fast #1: not GOOD"


@pytest.mark.parametrize("answer", [None, 0.1, "yes"])
def test_what_is_neither_true_nor_false_is_no_judgement(answer: Any) -> None:
    ladder = replace(LADDER, checks=[lambda task, text: answer])
    expected = ("Judgement", "True", "False")
    with pytest.raises(BadInput, match=line_with(f"returned {type(answer).__name__}", *expected)):
        ladder.judged("Write.", "text")


@given(st.lists(st.sampled_from([cause for cause in Cause if cause is not Cause.SOLVED]), max_size=12))
def test_a_climb_ends_and_never_comes_down(causes: list[Cause]) -> None:
    state, places = Climb(task="Write."), []
    for cause in causes:
        level = LADDER.levels[state.level]
        state, decision = after(
            state, Attempt(level=level.name, number=state.number, model=level.model, cause=cause), LADDER
        )
        assert climb_of(json.loads(json.dumps(climb_json(state)))) == state
        if decision.kind == "stop":
            break
        places.append((state.level, state.number))
    assert places == sorted(set(places))
    assert len(state.attempts) <= sum(level.attempts for level in LADDER.levels)


def test_a_ladder_that_cannot_be_climbed_is_bad_input() -> None:
    with pytest.raises(BadInput, match="at least one level"):
        Ladder(levels=())
    with pytest.raises(BadInput, match=line_with("level 'fast'", "twice")):
        Ladder(levels=(FAST, FAST))
    with pytest.raises(BadInput, match=line_with("level 'fast'", "attempts", "1 or more", "got 0")):
        Ladder(levels=(replace(FAST, attempts=0),))
    with pytest.raises(BadInput, match=line_with("level 'person'", "last level")):
        Ladder(levels=(PERSON, FAST))
    with pytest.raises(BadInput, match=line_with("backoff is 90 s", "`longest`", "60 s")):
        Ladder(levels=(FAST,), backoff=90)


TYPO: Any
HALF: Any
ENDLESS: Any
YES: Any
TYPO, HALF, ENDLESS, YES = "bset", 1.5, float("inf"), "yes"


@table_test(
    ("make", "facts"),
    [
        (lambda: replace(STRONG, carry=TYPO), "level 'strong'; carry 'bset'; nothing, reason, best"),
        (lambda: replace(PERSON, seconds=-1.0), "level; 'person'; seconds; -1; above; 0; None"),
        (lambda: replace(PERSON, seconds=float("nan")), "level; 'person'; seconds; nan; above; 0"),
        (lambda: Price(per_million=Decimal(-1)), "price; million; non-negative; Decimal"),
        (lambda: Ladder(levels=(replace(FAST, attempts=HALF),)), "'fast'; attempts; 1 or more; got 1.5"),
        (lambda: Ladder(levels=(replace(FAST, attempts=ENDLESS),)), "'fast'; attempts; 1 or more; got inf"),
        (lambda: Ladder(levels=(replace(FAST, attempts=YES),)), "'fast'; attempts; 1 or more; got 'yes'"),
        (lambda: replace(PERSON, seconds=YES), "level; 'person'; seconds; 'yes'; above; 0"),
        (lambda: Ladder(levels=(FAST,), backoff=YES), "backoff; seconds; 'yes'"),
        (lambda: Price(per_million=HALF), "price; million; non-negative; Decimal"),
    ],
    ids=["carry", "seconds", "nan", "price", "attempts", "endless", "text", "when", "backoff", "float"],
)
def test_what_a_level_cannot_have_is_bad_input(make: Callable[[], object], facts: str) -> None:
    with pytest.raises(BadInput, match=line_with(*facts.split("; "))):
        make()


# -- people ----------------------------------------------------------------------------------------------------


# -- in the loop -----------------------------------------------------------------------------------------------


def look(place: str) -> str:
    """Look."""
    return f"{place} is fine"


def told(agent: AgentHarness, kind: type[Any]) -> list[Any]:
    return [event for event in agent.trace.events if isinstance(event, kind)]


def test_an_attempt_begins_without_what_the_one_before_said() -> None:
    agent = AgentHarness(
        ScriptedLLM([tool_call("look", place="a"), text("bad"), text("GOOD")]),
        tools=[look],
        parts=Parts(ladder=replace(LADDER, levels=(replace(FAST, attempts=1), STRONG))),
        task_types={"search": ["look"]},
        choice=Choice(task="search"),
    )
    run = agent.run("Write.")
    assert (run.stop, run.answer, run.spec.model) == ("final", "GOOD", "large")
    assert [message["role"] for message in run.conversation.messages] == ["user", "assistant"]
    assert [(one.level, one.cause) for one in told(agent, events.AttemptEnded)] == [
        ("fast", "poor_quality"),
        ("strong", "solved"),
    ]
    (up,) = told(agent, events.Escalated)
    assert (up.from_level, up.to_level, up.detail, up.task_type) == ("fast", "strong", "not GOOD", "search")
    assert run.climbed is not None
    assert run.climbed.task_type == "search"
    assert run.num_completions == 1


def test_a_later_message_climbs_again_and_keeps_the_conversation() -> None:
    agent = AgentHarness(
        ScriptedLLM([text("GOOD 1"), text("bad"), text("GOOD 2")]),
        parts=Parts(ladder=replace(LADDER, levels=(FAST,))),
    )
    run = agent.run("First.", then={5.0: "Second."})
    assert run.answer == "GOOD 2"
    assert [message["content"] for message in run.conversation.messages] == [
        "First.",
        "GOOD 1",
        "Second.",
        "GOOD 2",
    ]
    assert [one.cause for one in told(agent, events.AttemptEnded)] == ["solved", "poor_quality", "solved"]


def test_a_person_at_the_end_answers_under_both_drivers() -> None:
    parts = Parts(ladder=replace(LADDER, levels=(replace(FAST, attempts=1), PERSON)), commits=True)
    agent = AgentHarness(
        ScriptedLLM([text("bad")]), parts=parts, person=lambda question: Delayed(9, value="I did it.")
    )
    assert agent.run("Write.").answer == "I did it."

    async def person(question: object) -> PersonSaid:
        await asyncio.sleep(9)
        return PersonSaid("answered", "I did it.")

    async def go() -> AgentHarness:
        clock = LoopClock()
        other = AgentHarness(parts=parts)
        run = other.begin("Write.", clock=clock)
        await AsyncDriver(model_of(ScriptedLLM([text("bad")])), clock=clock.now, person=person).run(run)
        return other

    assert list(run_in(VirtualLoop(), go()).trace.lines()) == list(agent.trace.lines())


def test_strategies_are_code_and_are_asked_of_every_attempt() -> None:
    shouted = Ladder(levels=(replace(FAST, strategy=str.upper),))
    assert task_text(Climb(task="write"), shouted) == "WRITE"


def test_a_task_that_an_attempt_did_not_take_is_not_asked_twice() -> None:
    agent = AgentHarness(
        ScriptedLLM([text("one"), text("two")]),
        parts=Parts(ladder=replace(LADDER, levels=(FAST, STRONG))),
        limits=LLM_Harness(1, None, None, None),
    )
    run = agent.run("Write.")
    assert [one.cause for one in told(agent, events.AttemptEnded)] == [
        "poor_quality",
        "poor_quality",
        "limit",
    ]
    assert run.inbox == []
