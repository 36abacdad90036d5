"""Recorded traffic as conversations, and the limit that keeps them within a budget."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim.analysis.calibration import calibrate_recorded, conversation_limit
from statek_sim.analysis.conversations import Conversation, RecordedCall, Traffic, traffic_of, traffic_under
from statek_sim.backends.record import RunRecord
from statek_sim.backends.run import run_scenario
from statek_sim.cassettes.exchange import Exchange, Request, Response
from statek_sim.cassettes.session import RecordMode
from statek_sim.errors import BadInput
from statek_sim.harness.usage_basis import UsageBasis
from statek_sim.scenario.load import load_or_fail
from statek_sim.suite.recorded import Cassettes, recorded
from statek_sim.suite.run import builtin_suites, run_one
from statek_sim.trace import LLMRequested
from statek_sim.values import JSON
from tests.recorded_samples import (
    FORMAT_OF,
    Redirected,
    conversation,
    environment_for,
    provider_with,
    scenario_in,
)

URI = "https://api.test/v1/chat/completions"
JSON_TYPE = (("content-type", "application/json"),)


def asked(*texts: str, status: int = 200, tokens: int | None = 10, uri: str = URI) -> Exchange:
    """One call: a conversation of user and assistant in turn; the provider reports `tokens` in all."""
    messages = [
        {"role": "user" if place % 2 == 0 else "assistant", "content": text}
        for place, text in enumerate(texts)
    ]
    usage = {} if tokens is None else {"usage": {"prompt_tokens": tokens - 1, "completion_tokens": 1}}
    answer = {"choices": [{"message": {"role": "assistant", "content": "said"}}], **usage}
    return Exchange(
        request=Request(
            method="POST",
            uri=uri,
            headers=JSON_TYPE,
            body=json.dumps({"model": "gpt-4o", "messages": messages}).encode(),
        ),
        response=Response(status=status, headers=JSON_TYPE, body=json.dumps(answer).encode()),
    )


def sorted_out(*exchanges: Exchange) -> Traffic:
    return traffic_of({"talk": exchanges})


def lengths(traffic: Traffic) -> list[int]:
    return [len(one.calls) for one in traffic.conversations]


def curve(*calls: tuple[int, int | None]) -> Conversation:
    """A conversation of calls with (estimate, tokens reported)."""
    return Conversation(
        name="talk",
        calls=tuple(
            RecordedCall(line=0, sent=4 * estimate, received=0, measured=0, reported=tokens)
            for estimate, tokens in calls
        ),
    )


# -- conversations -----------------------------------------------------------------------------------------------------


def test_a_request_that_begins_with_all_of_another_goes_on_with_its_conversation() -> None:
    traffic = sorted_out(asked("a"), asked("a", "said", "b"), asked("a", "said", "b", "said", "c"))
    assert lengths(traffic) == [3]
    assert traffic.conversations[0].name == "talk"
    assert traffic.conversations[0].usage(UsageBasis.REPORTED) == [10, 20, 30]


def test_conversations_that_take_turns_are_told_apart() -> None:
    traffic = sorted_out(asked("a"), asked("x"), asked("x", "said", "y"), asked("a", "said", "b"), asked("q"))
    assert [(one.name, len(one.calls)) for one in traffic.conversations] == [
        ("talk#1", 2),
        ("talk#2", 2),
        ("talk#3", 1),
    ]


def test_two_that_begin_alike_are_two_and_so_is_one_that_goes_back() -> None:
    assert lengths(sorted_out(asked("a"), asked("a"), asked("a", "1", "b"), asked("a", "2", "c"))) == [2, 2]
    assert lengths(sorted_out(asked("a"), asked("a", "said", "b"), asked("a", "said", "other"))) == [2, 1]


def test_a_failed_call_counts_nothing_and_the_same_request_again_is_its_retry() -> None:
    traffic = sorted_out(asked("a", status=503), asked("a"), asked("a", "said", "b", status=429))
    assert (lengths(traffic), traffic.failed) == ([1], 2)


def test_what_is_no_chat_is_told_and_left_out() -> None:
    models = asked("a", uri="https://api.test/v1/models")
    nonsense = Exchange(request=Request(method="POST", uri=URI, body=b"{}"), response=Response(status=200))
    traffic = sorted_out(models, nonsense, asked("a"))
    assert (lengths(traffic), traffic.others, traffic.failed) == ([1], 2, 0)


def test_a_stream_counts_as_the_body_that_it_would_have_been() -> None:
    events = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in ("Pa", "ris")]
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in (*events, usage)) + "data: [DONE]\n\n"
    whole = asked("a")
    response = Response(status=200, headers=(("content-type", "text/event-stream"),), body=body.encode())
    (one,) = sorted_out(Exchange(request=whole.request, response=response)).conversations
    assert one.calls[0].reported == 11
    assert 0 < one.calls[0].received < len(body)


def test_a_call_without_reported_usage_leaves_the_conversation_unknown_on_that_basis() -> None:
    (one,) = sorted_out(asked("a"), asked("a", "said", "b", tokens=None)).conversations
    assert one.usage(UsageBasis.REPORTED) is None
    assert one.usage(UsageBasis.MEASURED) is not None


@pytest.mark.parametrize("provider", FORMAT_OF)
def test_a_recorded_run_has_the_bytes_and_tokens_that_the_run_itself_had(
    tmp_path: Path, provider: str
) -> None:
    with provider_with(*conversation()) as server:
        told = recorded(
            scenario_in(tmp_path),
            "1.4",
            Cassettes(tmp_path / "cassettes", provider),
            run_one,
            mode=RecordMode.REWRITE,
            environment=environment_for(server, provider),
            live=Redirected(server),
        )
    usages = [call.usage for call in told.result.record.calls]
    (one,) = traffic_under(tmp_path / "cassettes").conversations
    assert one.name == f"books/invoice.{provider.lower()}"
    assert [(call.sent, call.received, call.measured, call.reported) for call in one.calls] == [
        (
            usage.bytes_sent,
            usage.bytes_received,
            usage.measured_prompt + usage.measured_completion,
            usage.reported_tokens,
        )
        for usage in usages
    ]
    assert one.estimates()[-1] == told.result.record.jobs["main"].usage.approx_tokens


@pytest.mark.slow
def test_the_jobs_of_the_built_in_suites_are_found_again_all_but_three_that_rewrite_their_history() -> None:
    different = []
    for scenario in load_or_fail([builtin_suites()]):
        if "1.4" not in scenario.profiles:
            continue
        record = run_scenario(scenario, "1.4")
        if any(call.wire != "openai" for call in record.calls):
            continue
        jobs = Counter(call.job for call in record.calls)
        if sorted(jobs.values()) != sorted(lengths(traffic_of({"run": exchanges_of(record)}))):
            different.append(scenario.id)
    assert different == [
        "killed-while-the-model-answers",
        "reactivation-of-a-crashed-job",
        "message-after-a-lost-step",
    ]


def exchanges_of(record: RunRecord) -> Iterator[Exchange]:
    """Yield what a recording of a run would hold: every request, in the order of the run."""
    said: dict[str, list[dict[str, JSON]]] = {}
    bodies = {(call.job, call.turn): call.body for call in record.calls}
    asked_for = [event for event in record.events if isinstance(event, LLMRequested)]
    last = {(event.job, event.turn): event for event in asked_for}
    for event in asked_for:
        messages = said.setdefault(event.job, [])
        messages[event.kept :] = [dict(message) for message in event.new]
        key = (event.job, event.turn)
        answered = key in bodies and last[key] is event
        body = json.dumps({"model": event.model, "messages": messages}).encode()
        yield Exchange(
            request=Request(method="POST", uri=URI, headers=JSON_TYPE, body=body),
            response=Response(
                status=200 if answered else 500, headers=JSON_TYPE, body=bodies[key] if answered else b""
            ),
        )


# -- limits ------------------------------------------------------------------------------------------------------------


def stopped_after(conversation: Conversation, limit: int) -> int:
    """How many calls STATEK makes: it stops after the first one whose estimate is over the limit."""
    for number, estimate in enumerate(conversation.estimates(), start=1):
        if estimate > limit:
            return number
    return len(conversation.calls)


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=6), st.integers(1, 200)
)
def test_the_limit_of_a_conversation_is_the_largest_that_keeps_it_within_the_budget(
    calls: Sequence[tuple[int, int]], budget: int
) -> None:
    one = curve(*calls)
    usage = one.usage(UsageBasis.REPORTED)
    assert usage is not None
    kept = [limit for limit in range(400) if usage[stopped_after(one, limit) - 1] <= budget]
    found = conversation_limit(one, budget, UsageBasis.REPORTED)
    if usage[-1] <= budget:
        assert found.projected
        assert found.limit == budget * one.estimates()[-1] // usage[-1]
    else:
        assert (found.limit, found.projected) == (max(kept, default=None), False)


def test_the_strictest_conversation_decides_and_what_it_stops_is_told() -> None:
    long = curve((100, 50), (100, 50), (100, 50), (100, 50))
    short = Conversation(name="short", calls=curve((300, 20)).calls)
    unreported = Conversation(name="unreported", calls=curve((9, None)).calls)
    found = calibrate_recorded([long, short, unreported], 120)
    assert [(one.scenario, one.limit, one.projected) for one in found.scenarios] == [
        ("talk", 199, False),
        ("short", 1800, True),
    ]
    assert (found.limit, found.unknown, found.over, found.unit) == (199, ("unreported",), (), "conversation")
    assert [(one.scenario, one.calls, one.of, one.usage, one.needlessly) for one in found.stopped] == [
        ("talk", 2, 4, 100, False),
        ("short", 1, 1, 20, True),
    ]


def test_keeping_fewer_tells_which_are_over_the_budget() -> None:
    talks = [
        Conversation(name=f"talk-{number}", calls=curve(*((100 * number, 50),) * 4).calls)
        for number in (1, 2)
    ]
    found = calibrate_recorded(talks, 120, keep=0.5)
    assert (found.limit, found.over) == (399, ("talk-1",))


def test_a_budget_that_no_limit_keeps_is_bad_input() -> None:
    with pytest.raises(BadInput, match=r"^--budget-tokens 10: no conversation of 1 has a limit"):
        calibrate_recorded([curve((100, 50), (100, 50))], 10)
    with pytest.raises(BadInput, match=r"no conversation of 1 has a limit .* on reported tokens$"):
        calibrate_recorded([curve((100, None))], 1000)


def test_a_folder_without_traffic_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no cassettes in this folder"):
        traffic_under(tmp_path)
    (tmp_path / "a.yaml").write_text("interactions: []\nversion: 1\n", "utf-8")
    with pytest.raises(BadInput, match=r"no answered chat request in 1 cassettes$"):
        traffic_under(tmp_path)
    with pytest.raises(BadInput, match=r"there is no such file or folder$"):
        traffic_under(tmp_path / "none")
