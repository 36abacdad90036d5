"""OpenAI's own SDK, synchronous and not, streaming and not, against the fake server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from statek_sim.providers.script import ScriptedCall, fault, text, timeout, tool_call, tool_calls
from statek_sim.server.fault import (
    EmptyChoices,
    Fault,
    FaultRule,
    HttpError,
    Malformed,
    NullUsage,
    Reset,
    SlowTokens,
    WrongContentType,
)
from statek_sim.server.llm_server import LLMServer

if TYPE_CHECKING:
    from openai import OpenAI

openai = pytest.importorskip("openai", reason="it comes with the dev extra")

HELLO: Any = [{"role": "user", "content": "Hello?"}]
TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Look somewhere.",
            "parameters": {"type": "object", "properties": {"where": {"type": "string"}}},
        },
    }
]


@pytest.fixture
def client(statek_llm_server: LLMServer) -> Iterator[OpenAI]:
    with openai.OpenAI(
        base_url=statek_llm_server.openai_url, api_key="sk-none", max_retries=0, timeout=60
    ) as made:
        yield made


def test_an_answer_has_text_usage_and_a_request_id(statek_llm_server: LLMServer, client: OpenAI) -> None:
    statek_llm_server.script([text("Hello there.").on("Hello?", model="gpt-4o")])
    answer = client.chat.completions.create(model="gpt-4o", messages=HELLO)
    assert answer.choices[0].message.content == "Hello there."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (9, 3)


def test_a_stream_is_read_piece_by_piece_with_its_usage(statek_llm_server: LLMServer, client: OpenAI) -> None:
    statek_llm_server.script([text("Hello there.")])
    stream = client.chat.completions.create(
        model="gpt-4o", messages=HELLO, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert [piece for piece in pieces if piece] == ["Hello", " there", "."]
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 12


def test_a_conversation_with_a_tool_goes_round(statek_llm_server: LLMServer, client: OpenAI) -> None:
    statek_llm_server.script([tool_call("look", where="here"), text("Nothing.").on(tool_result="empty")])
    first = client.chat.completions.create(model="gpt-4o", messages=HELLO, tools=TOOLS)
    message = first.choices[0].message
    assert message.tool_calls
    call: Any = message.tool_calls[0]
    assert (call.function.name, call.function.arguments) == ("look", '{"where": "here"}')
    result = {"role": "tool", "tool_call_id": call.id, "content": "empty"}
    conversation: Any = [*HELLO, message.model_dump(exclude_none=True), result]
    second = client.chat.completions.create(model="gpt-4o", messages=conversation, tools=TOOLS)
    assert second.choices[0].message.content == "Nothing."


def test_the_stream_helper_puts_tool_calls_together(statek_llm_server: LLMServer, client: OpenAI) -> None:
    calls = (ScriptedCall("look", {"where": "here"}), ScriptedCall("look", {"where": "there"}))
    statek_llm_server.script([tool_calls(*calls, text="Looking.")])
    with client.chat.completions.stream(model="gpt-4o", messages=HELLO, tools=TOOLS) as stream:
        message = stream.get_final_completion().choices[0].message
    assert message.content == "Looking."
    assert [call.function.arguments for call in message.tool_calls or ()] == [
        '{"where": "here"}',
        '{"where": "there"}',
    ]


def test_the_asynchronous_client_makes_many_requests_at_once(statek_llm_server: LLMServer) -> None:
    statek_llm_server.script([text(f"answer {n}").on(f"question {n}") for n in range(40)])

    async def ask(client: Any, number: int) -> str:
        stream = await client.chat.completions.create(
            model="gpt-4o", messages=[{"role": "user", "content": f"question {number}"}], stream=True
        )
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    async def everybody() -> list[str]:
        async with openai.AsyncOpenAI(base_url=statek_llm_server.openai_url, api_key="sk-none") as client:
            return list(await asyncio.gather(*(ask(client, number) for number in range(40))))

    assert asyncio.run(everybody()) == [f"answer {n}" for n in range(40)]


def test_models_can_be_listed_and_looked_up(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["gpt-4o"]
    assert client.models.retrieve("gpt-4o").owned_by == "statek-sim"


def test_the_sdk_tries_again_after_a_rate_limit_and_says_which_attempt_it_is(
    statek_llm_server: LLMServer,
) -> None:
    limited = FaultRule(fault=HttpError(429, retry_after=0.01), positions=(1,))
    statek_llm_server.script([text("now").when(attempt=2)], faults=[limited])
    with openai.OpenAI(base_url=statek_llm_server.openai_url, api_key="sk-none", max_retries=1) as client:
        answer = client.chat.completions.create(model="gpt-4o", messages=HELLO)
    assert answer.choices[0].message.content == "now"
    assert [entry.status for entry in statek_llm_server.requests] == [429, 200]


def test_errors_are_the_sdks_own(statek_llm_server: LLMServer, client: OpenAI) -> None:
    statek_llm_server.script([fault(429, retry_after=7), fault(401), fault(503), timeout()])
    ask = client.chat.completions.create
    with pytest.raises(openai.RateLimitError) as limited:
        ask(model="gpt-4o", messages=HELLO)
    assert limited.value.response.headers["retry-after"] == "7"
    with pytest.raises(openai.AuthenticationError):
        ask(model="gpt-4o", messages=HELLO)
    with pytest.raises(openai.InternalServerError):
        ask(model="gpt-4o", messages=HELLO)
    with pytest.raises(openai.APITimeoutError):
        ask(model="gpt-4o", messages=HELLO, timeout=0.2)


@pytest.mark.parametrize(("fault", "stream"), [(Reset(after=2), True), (Reset(), False)])
def test_a_reset_is_a_broken_connection(
    statek_llm_server: LLMServer, client: OpenAI, fault: Reset, stream: bool
) -> None:
    statek_llm_server.script([text("Hello there, friend.")], faults=[FaultRule(fault=fault, times=1)])
    with pytest.raises(Exception, match=r"(?i)connection|reset|peer|disconnect|read") as broken:  # noqa: PT012
        answer: Any = client.chat.completions.create(model="gpt-4o", messages=HELLO, stream=stream)
        list(answer)
    assert "Error" in type(broken.value).__name__


def test_faults_reach_the_code_that_reads_the_answer(statek_llm_server: LLMServer, client: OpenAI) -> None:
    faults: tuple[Fault, ...] = (EmptyChoices(), NullUsage(), WrongContentType(), Malformed())
    rules = [FaultRule(fault=struck, positions=(number,)) for number, struck in enumerate(faults, 1)]
    statek_llm_server.script([text("x").times(4)], faults=rules)

    def ask() -> Any:
        return client.chat.completions.create(model="gpt-4o", messages=HELLO)

    assert ask().choices == []
    assert ask().usage is None
    raw = client.chat.completions.with_raw_response.create(model="gpt-4o", messages=HELLO)
    assert raw.headers["content-type"] == "text/html; charset=utf-8"
    with pytest.raises((ValueError, openai.APIError)):
        ask()


def test_slow_tokens_run_into_the_clients_own_time_limit(
    statek_llm_server: LLMServer, client: OpenAI
) -> None:
    statek_llm_server.script(
        [text("Hello there, friend.")], faults=[FaultRule(fault=SlowTokens(60.0), times=1)]
    )
    stream = client.with_options(timeout=1.0).chat.completions.create(
        model="gpt-4o", messages=HELLO, stream=True
    )
    with pytest.raises(Exception, match=r"(?i)timed out|timeout") as slow:
        list(stream)
    assert "Timeout" in type(slow.value).__name__


def test_an_unmatched_request_says_what_is_nearest_in_the_sdks_error(
    statek_llm_server: LLMServer, client: OpenAI
) -> None:
    statek_llm_server.script([text("x").on("Hello!")])
    with pytest.raises(
        openai.UnprocessableEntityError, match=r"nearest is reply 1: text 'x' when last message equals"
    ):
        client.chat.completions.create(model="gpt-4o", messages=HELLO)
    statek_llm_server.llm.play([])
