"""Anthropic's own SDK, synchronous and not, streaming and not, against the fake server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from statek_sim.providers.script import fault, text, tool_call
from statek_sim.server.fault import FaultRule, HttpError, NullUsage
from statek_sim.server.llm_server import LLMServer

if TYPE_CHECKING:
    from anthropic import Anthropic

anthropic = pytest.importorskip("anthropic", reason="it comes with the dev extra")

MODEL = "claude-test"
HELLO: Any = [{"role": "user", "content": "Hello?"}]
TOOLS: Any = [
    {"name": "look", "description": "Look.", "input_schema": {"type": "object", "properties": {"where": {}}}}
]


@pytest.fixture
def client(statek_llm_server: LLMServer) -> Iterator[Anthropic]:
    with anthropic.Anthropic(
        base_url=statek_llm_server.url, api_key="none", max_retries=0, timeout=60
    ) as made:
        yield made


def test_a_message_has_text_stop_reason_and_usage(statek_llm_server: LLMServer, client: Anthropic) -> None:
    statek_llm_server.script([text("Hello there.").on("Hello?", model=MODEL)])
    answer = client.messages.create(model=MODEL, max_tokens=50, messages=HELLO)
    assert [block.text for block in answer.content if block.type == "text"] == ["Hello there."]
    assert (answer.stop_reason, answer.usage.output_tokens) == ("end_turn", 3)


def test_what_claude_code_sends_beside_a_message_is_accepted(
    statek_llm_server: LLMServer, client: Anthropic
) -> None:
    statek_llm_server.script([text("Hello there.")])
    context: Any = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    answer = client.beta.messages.create(
        model=MODEL, max_tokens=50, messages=HELLO, context_management=context, metadata={"user_id": "1"}
    )
    assert answer.stop_reason == "end_turn"


def test_a_streamed_message_is_read_piece_by_piece(statek_llm_server: LLMServer, client: Anthropic) -> None:
    statek_llm_server.script([text("Hello there.")])
    with client.messages.stream(model=MODEL, max_tokens=50, messages=HELLO) as stream:
        assert list(stream.text_stream) == ["Hello", " there", "."]
        final = stream.get_final_message()
    assert (final.stop_reason, final.usage.output_tokens) == ("end_turn", 3)


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_with_a_tool_goes_round(
    statek_llm_server: LLMServer, client: Anthropic, stream: bool
) -> None:
    statek_llm_server.script([tool_call("look", where="here"), text("Nothing.").on(tool_result="empty")])

    def ask(messages: Any) -> Any:
        if not stream:
            return client.messages.create(model=MODEL, max_tokens=50, messages=messages, tools=TOOLS)
        with client.messages.stream(model=MODEL, max_tokens=50, messages=messages, tools=TOOLS) as events:
            return events.get_final_message()

    first = ask(HELLO)
    (call,) = first.content
    assert (first.stop_reason, call.name, call.input) == ("tool_use", "look", {"where": "here"})
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "empty"}
    spoken = {"role": "assistant", "content": [call.model_dump(include={"type", "id", "name", "input"})]}
    assert ask([*HELLO, spoken, {"role": "user", "content": [result]}]).content[0].text == "Nothing."


def test_the_asynchronous_client_streams_too(statek_llm_server: LLMServer) -> None:
    statek_llm_server.script([text("Hello there.")])

    async def ask() -> str:
        async with (
            anthropic.AsyncAnthropic(base_url=statek_llm_server.url, api_key="none") as client,
            client.messages.stream(model=MODEL, max_tokens=50, messages=HELLO) as stream,
        ):
            return "".join([piece async for piece in stream.text_stream])

    assert asyncio.run(ask()) == "Hello there."


def test_models_are_listed(client: Anthropic) -> None:
    assert [model.id for model in client.models.list()] == ["gpt-4o"]


def test_the_sdk_tries_again_when_overloaded(statek_llm_server: LLMServer) -> None:
    rule = FaultRule(fault=HttpError(529, retry_after=0.01), positions=(1,))
    statek_llm_server.script([text("now").when(attempt=2)], faults=[rule])
    with anthropic.Anthropic(base_url=statek_llm_server.url, api_key="none", max_retries=1) as client:
        assert client.messages.create(model=MODEL, max_tokens=50, messages=HELLO).content[0].text == "now"


def test_errors_are_the_sdks_own(statek_llm_server: LLMServer, client: Anthropic) -> None:
    statek_llm_server.script([fault(429, retry_after=3), fault(400)])
    with pytest.raises(anthropic.RateLimitError):
        client.messages.create(model=MODEL, max_tokens=50, messages=HELLO)
    with pytest.raises(anthropic.BadRequestError):
        client.messages.create(model=MODEL, max_tokens=50, messages=HELLO)


def test_null_usage_reaches_the_code_that_adds_it_up(statek_llm_server: LLMServer, client: Anthropic) -> None:
    statek_llm_server.script([text("x")], faults=[FaultRule(fault=NullUsage(), times=1)])
    assert client.messages.create(model=MODEL, max_tokens=50, messages=HELLO).usage is None
