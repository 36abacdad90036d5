"""The provider contract: ours keep it, and each way to break it is told in one sentence."""

from __future__ import annotations

import contextlib
import itertools
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from statek_sim.errors import BadInput, ContractViolation, ProviderFailure, ScriptExhausted
from statek_sim.providers.contract import check_provider, example_requests
from statek_sim.providers.protocol import ChatRequest, Provider, RawReply
from statek_sim.providers.script import code, fault, raw, text, timeout, tool_call
from statek_sim.providers.scripted import FunctionLLM, ScriptedLLM
from statek_sim.providers.wire.openai import reply_body
from statek_sim.providers.wire.reply import WireReply
from tests.says import says
from tests.tables import table_test


def good_reply(request: ChatRequest) -> RawReply:
    return RawReply(
        reply_body(WireReply(id=f"{request.job_id}-{request.turn}", model="m", created=0, text="hi"))
    )


@dataclass
class Fake:
    """A provider whose answer is a function of the request and of how often it was asked before."""

    answer: Callable[[ChatRequest, int], object]
    asked: int = field(default=0)

    def complete(self, request: ChatRequest) -> RawReply:
        self.asked += 1
        return self.answer(request, self.asked - 1)  # type: ignore[return-value]  # some fakes break the rule


def broken(answer: Callable[[ChatRequest, int], object]) -> Callable[[], Provider]:
    return lambda: Fake(answer)


def violation(make_provider: Callable[[], Provider]) -> str:
    with pytest.raises(ContractViolation) as caught:
        check_provider(make_provider)
    return str(caught.value)


def test_a_finite_script_keeps_the_contract() -> None:
    check_provider(lambda: ScriptedLLM(["x = 1", tool_call("note", body="b"), text("done").after(2.5)]))


def test_a_script_with_faults_and_conditions_keeps_the_contract() -> None:
    check_provider(
        lambda: ScriptedLLM(
            {"agent": [fault(429), timeout(), code("x").when("noted 2"), text("y").when(turn=60)]}
        )
    )


def test_an_endless_script_keeps_the_contract() -> None:
    check_provider(lambda: ScriptedLLM([text("on").forever()]))


def test_a_function_keeps_the_contract() -> None:
    check_provider(lambda: FunctionLLM(lambda request: f"print({request.turn})"))


def test_a_provider_is_checked_with_requests_of_the_callers_choice() -> None:
    check_provider(lambda: ScriptedLLM({"clerk": ["x"]}), requests=example_requests(role="clerk", turns=3))


def test_malformed_bodies_do_not_pass() -> None:
    def make() -> ScriptedLLM:
        return ScriptedLLM([raw(b'{"choices": []}')])

    assert says(violation(make), "chat completion", "turn 1", "job 'main'", "RuntimeError", "{'choices': []}")


def test_a_provider_that_answers_none_of_the_requests_proves_nothing() -> None:
    sentence = violation(lambda: ScriptedLLM({"clerk": ["x"]}))
    assert says(sentence, "no request", "pass `requests`", "job 'main'", "agent 'agent'")


def test_an_object_without_complete_is_no_provider() -> None:
    sentence = violation(lambda: 5)  # type: ignore[arg-type,return-value]
    assert says(sentence, "no method `complete`: 5")


@table_test(
    ("answer", "facts"),
    [
        (lambda request, asked: b"{}", "returned bytes; expected RawReply"),
        (lambda request, asked: None, "returned NoneType; expected RawReply"),
        (lambda request, asked: RawReply("{}"), "body of type str; expected bytes"),  # type: ignore[arg-type]
        (
            lambda request, asked: replace(good_reply(request), latency=-1.0),
            "-1.0 virtual seconds; finite number, 0 or more",
        ),
        (
            lambda request, asked: replace(good_reply(request), latency=float("nan")),
            "nan virtual seconds; finite number, 0 or more",
        ),
        (
            lambda request, asked: replace(good_reply(request), latency=True),
            "True virtual seconds; finite number, 0 or more",
        ),
        (
            lambda request, asked: RawReply(b"<html>"),
            "not a chat completion; JSONDecodeError; line 1 column 1",
        ),
    ],
)
def test_a_wrong_answer_is_told_in_one_sentence(
    answer: Callable[[ChatRequest, int], object], facts: str
) -> None:
    assert says(violation(broken(answer)), "turn 1 of job 'main'", *facts.split("; "))


def test_an_async_provider_is_told_what_it_returned() -> None:
    async def complete(request: ChatRequest) -> RawReply:
        return good_reply(request)

    sentence = violation(broken(lambda request, asked: complete(request)))
    assert says(sentence, "returned coroutine", "turn 1", "job 'main'", "expected RawReply")


def test_running_out_with_another_error_is_a_violation() -> None:
    replies = [b"a", b"b"]

    def answer(request: ChatRequest, asked: int) -> RawReply:
        assert replies[asked]
        return good_reply(request)

    sentence = violation(broken(answer))
    assert says(sentence, "raised IndexError('list index out of range')", "turn 3", "job 'main'")
    assert says(sentence, "expected", "RawReply", "ProviderFailure", "ScriptError")


def test_starting_over_after_the_end_is_a_violation() -> None:
    def answer(request: ChatRequest, asked: int) -> RawReply:
        if asked == 2:
            raise ScriptExhausted("no more")
        return good_reply(request)

    assert says(violation(broken(answer)), "no answer", "turn 3", "job 'main'", "then gave", "RawReply b'{")


def test_a_failure_with_a_bad_latency_is_a_violation() -> None:
    def answer(request: ChatRequest, asked: int) -> RawReply:
        raise ProviderFailure("down", latency=float("inf"))

    assert says(violation(broken(answer)), "inf virtual seconds", "turn 1")


def test_a_different_answer_from_a_fresh_provider_is_a_violation() -> None:
    shared = itertools.count()

    def answer(request: ChatRequest, asked: int) -> RawReply:
        return replace(good_reply(request), latency=float(next(shared)))

    sentence = violation(broken(answer))
    assert says(sentence, "not deterministic", "request 1", "RawReply b'{", "after 0.0 s")


def test_changing_the_request_is_a_violation() -> None:
    def answer(request: ChatRequest, asked: int) -> RawReply:
        message = request.messages[0]
        assert isinstance(message, dict)
        message["content"] = "changed"
        return good_reply(request)

    assert says(violation(broken(answer)), "changed the request", "turn 1", "job 'main'", "read-only")


def test_sleeping_is_a_violation_even_inside_an_except_clause_and_takes_no_time() -> None:
    def answer(request: ChatRequest, asked: int) -> RawReply:
        with contextlib.suppress(Exception):
            time.sleep(3600)
        return good_reply(request)

    original = time.sleep
    sentence = violation(broken(answer))
    assert says(sentence, "slept", "3600.0 real seconds", "turn 1", "job 'main'", "`RawReply.latency`")
    assert time.sleep is original


def test_touching_the_network_is_a_violation_even_when_the_error_is_hidden() -> None:
    def answer(request: ChatRequest, asked: int) -> RawReply:
        with contextlib.suppress(Exception):
            socket.create_connection(("127.0.0.1", 9))
        return good_reply(request)

    assert says(violation(broken(answer)), "'127.0.0.1'", "network", "turn 1", "job 'main'")


def test_an_unhidden_network_error_gets_the_same_sentence() -> None:
    def answer(request: ChatRequest, asked: int) -> RawReply:
        socket.create_connection(("llm.invalid", 443))
        return good_reply(request)

    assert says(violation(broken(answer)), "'llm.invalid'", "network", "turn 1", "job 'main'")


def test_checking_without_requests_is_bad_input() -> None:
    with pytest.raises(BadInput, match="without requests"):
        check_provider(lambda: ScriptedLLM([]), requests=())


def test_the_example_conversation_grows_and_its_requests_share_no_message() -> None:
    first, second = example_requests(turns=2)
    assert [len(first.messages), len(second.messages)] == [2, 4]
    assert first.messages[0] == second.messages[0]
    assert first.messages[0] is not second.messages[0]
