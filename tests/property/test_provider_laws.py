"""Laws of the providers, for any script and any conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim.errors import ProviderFailure, ProviderHTTPError, ScriptError, ScriptExhausted
from statek_sim.providers.contract import check_provider, example_requests
from statek_sim.providers.protocol import MAX_ATTEMPTS, RETRY_DELAYS, ChatRequest, retry_delay
from statek_sim.providers.script import Reply, fault, text, timeout
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.providers.wire.openai import read_reply

any_text = st.text(max_size=20)
replies = st.builds(
    lambda reply, turn, repeat, job: replace(
        reply if turn is None else reply.when(turn=turn), repeat=repeat, job=job
    ),
    st.sampled_from([text("a"), text("b"), fault(429), timeout()]),
    st.none() | st.integers(min_value=1, max_value=4),
    st.none() | st.integers(min_value=1, max_value=3),
    st.none() | st.sampled_from(["j1", "j2"]),
)
askers = st.lists(
    st.tuples(st.sampled_from(["j1", "j2"]), st.integers(min_value=1, max_value=5)), max_size=12
)


def asked_by(asker: tuple[str, int]) -> ChatRequest:
    return replace(example_requests(turns=1)[0], job_id=asker[0], turn=asker[1])


def play(script: Sequence[Reply], conversation: Sequence[tuple[str, int]]) -> list[object]:
    llm = ScriptedLLM(script)
    outcomes: list[object] = []
    for asker in conversation:
        try:
            outcomes.append(llm.complete(asked_by(asker)))
        except (ScriptError, ProviderFailure) as error:
            outcomes.append((type(error), str(error)))
    return [*outcomes, [str(entry) for entry in llm.unused()]]


@given(st.lists(st.text(max_size=5), max_size=8))
def test_unconditional_replies_come_in_order_and_then_the_script_is_exhausted(contents: list[str]) -> None:
    llm = ScriptedLLM([text(content) for content in contents])
    request = asked_by(("j1", 1))
    assert [read_reply(llm.complete(request).body).text for _ in contents] == contents
    llm.check_finished()
    with pytest.raises(ScriptExhausted, match="all used"):
        llm.complete(request)


@given(st.lists(replies, max_size=6), askers)
def test_the_reply_given_is_the_first_that_has_uses_left_and_fits(
    script: list[Reply], conversation: list[tuple[str, int]]
) -> None:
    script = [
        replace(text(f"reply {n}"), condition=r.condition, repeat=r.repeat, job=r.job)
        for n, r in enumerate(script)
    ]
    llm = ScriptedLLM(script)
    uses = [0] * len(script)
    for job, turn in conversation:
        fitting = [
            n
            for n, reply in enumerate(script)
            if (reply.repeat is None or uses[n] < reply.repeat)
            and reply.job in (None, job)
            and (reply.condition is None or reply.condition.turn == turn)
        ]
        if not fitting:
            with pytest.raises(ScriptError, match=f"^job '{job}' "):
                llm.complete(asked_by((job, turn)))
            continue
        uses[fitting[0]] += 1
        assert read_reply(llm.complete(asked_by((job, turn))).body).text == f"reply {fitting[0]}"
    too_seldom = [n for n, reply in enumerate(script) if uses[n] < (reply.repeat or 1)]
    assert [entry.position - 1 for entry in llm.unused()] == too_seldom


@given(st.lists(replies, max_size=6), askers)
def test_equal_scripts_asked_equally_answer_with_equal_bytes_and_errors(
    script: list[Reply], conversation: list[tuple[str, int]]
) -> None:
    assert play(script, conversation) == play(list(script), list(conversation))


@given(st.lists(st.sampled_from([text("a"), fault(500), timeout(), text("b").when(turn=2)]), max_size=6))
def test_every_script_that_can_begin_keeps_the_provider_contract(script: list[Reply]) -> None:
    check_provider(lambda: ScriptedLLM([text("first"), *script]))


@given(st.integers(min_value=400, max_value=599), st.integers(min_value=1, max_value=9))
def test_no_call_is_tried_more_often_than_three_times(status: int, attempt: int) -> None:
    delay = retry_delay(ProviderHTTPError("x", status=status), attempt)
    assert delay is None or (attempt < MAX_ATTEMPTS and delay == RETRY_DELAYS[attempt - 1])
