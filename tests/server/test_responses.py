"""OpenAI's Responses API: its SDK, streaming and not, with tools and conversations that the server keeps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from statek_sim.backends.serving import load_playable
from statek_sim.cassettes.session import CassetteSession, RecordMode
from statek_sim.cassettes.tap import tapped
from statek_sim.errors import UnmatchedRequest
from statek_sim.providers.script import ScriptedCall, text, tool_call, tool_calls
from statek_sim.server.fault import EmptyChoices, FaultRule, HttpError, NullUsage, Reset
from statek_sim.server.llm import FakeLLM
from statek_sim.server.llm_server import LLMServer
from tests.server.asking import ask, streamed, whole
from tests.tables import table_test

if TYPE_CHECKING:
    from openai import OpenAI

openai = pytest.importorskip("openai", reason="it comes with the dev extra")

TARGET = "/v1/responses"
TOOLS: Any = [
    {
        "type": "function",
        "name": "look",
        "description": "Look somewhere.",
        "parameters": {"type": "object", "properties": {"where": {"type": "string"}}},
        "strict": False,
    }
]


@pytest.fixture
def client(statek_llm_server: LLMServer) -> Iterator[OpenAI]:
    with openai.OpenAI(
        base_url=statek_llm_server.openai_url, api_key="sk-none", max_retries=0, timeout=60
    ) as made:
        yield made


def test_an_answer_has_text_usage_and_what_was_asked(statek_llm_server: LLMServer, client: OpenAI) -> None:
    statek_llm_server.script([text("Hello there.").on("Hello?", model="gpt-4o")])
    answer = client.responses.create(
        model="gpt-4o", input="Hello?", instructions="Be nice.", temperature=0.5, metadata={"a": "b"}
    )
    assert (answer.output_text, answer.status, answer.instructions) == (
        "Hello there.",
        "completed",
        "Be nice.",
    )
    assert (answer.temperature, answer.metadata) == (0.5, {"a": "b"})
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens) == (16, 3, 19)


def test_a_stream_tells_the_text_piece_by_piece_and_then_the_whole(
    statek_llm_server: LLMServer, client: OpenAI
) -> None:
    statek_llm_server.script([text("Hello there.")])
    with client.responses.stream(model="gpt-4o", input="Hello?") as events:
        seen = list(events)
        final = events.get_final_response()
    assert [event.delta for event in seen if event.type == "response.output_text.delta"] == [
        "Hello",
        " there",
        ".",
    ]
    assert [event.sequence_number for event in seen] == list(range(len(seen)))
    assert (seen[0].type, seen[-1].type) == ("response.created", "response.completed")
    assert (final.output_text, final.usage and final.usage.output_tokens) == ("Hello there.", 3)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_a_tool_is_called_and_its_result_told(
    statek_llm_server: LLMServer, client: OpenAI, stream: bool, kept: bool
) -> None:
    statek_llm_server.script(
        [
            tool_calls(ScriptedCall("look", {"where": "here"}), text="I look.").on("Look."),
            text("Nothing.").when(tool_result="empty", turn=2),
        ]
    )

    def answered(**asked: Any) -> Any:
        if not stream:
            return client.responses.create(model="gpt-4o", tools=TOOLS, **asked)
        with client.responses.stream(model="gpt-4o", tools=TOOLS, **asked) as events:
            return events.get_final_response()

    question: Any = {"role": "user", "content": "Look."}
    first = answered(input=[question])
    (call,) = [item for item in first.output if item.type == "function_call"]
    assert (first.output_text, call.name, call.arguments) == ("I look.", "look", '{"where": "here"}')
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "empty"}
    if kept:
        second = answered(input=[result], previous_response_id=first.id)
    else:
        spoken = [item.model_dump(exclude_none=True) for item in first.output]
        for item in spoken:
            item.pop("parsed_arguments", None)
        second = answered(input=[question, *spoken, result])
    assert second.output_text == "Nothing."


def test_a_conversation_goes_on_over_several_answers_without_its_instructions() -> None:
    llm = FakeLLM([text("one"), text("two"), text("three").when(turn=3)])
    first = whole(ask(llm, {"model": "m", "input": "a", "instructions": "Be brief."}, TARGET))
    following = {"model": "m", "input": "b", "previous_response_id": first["id"]}
    second = whole(ask(llm, following, TARGET))
    third = whole(ask(llm, {"model": "m", "input": "c", "previous_response_id": second["id"]}, TARGET))
    # One message a turn, and the first request's instructions are not sent again.
    assert [answer["usage"]["input_tokens"] for answer in (first, second, third)] == [15, 18, 28]
    assert third["previous_response_id"] == second["id"]


@pytest.mark.parametrize("asked", [{"store": False}, None])
def test_an_answer_that_was_not_kept_is_not_found(asked: dict[str, Any] | None) -> None:
    llm = FakeLLM([text("one"), text("two")])
    name = (
        "resp_99" if asked is None else whole(ask(llm, {"model": "m", "input": "a", **asked}, TARGET))["id"]
    )
    answer = ask(llm, {"model": "m", "input": "b", "previous_response_id": name}, TARGET)
    said = json.loads(answer.body)["error"]  # type: ignore[union-attr]
    assert (said["param"], said["code"]) == ("previous_response_id", "previous_response_not_found")
    with pytest.raises(UnmatchedRequest, match=rf"Previous response with id '{name}' not found"):
        llm.check_finished()


@table_test(
    ("given", "message"),
    [
        ([{"type": "item_reference", "id": "msg_1"}], "expected message, reasoning, function_call"),
        ([{"role": "user"}], "expected a string or a list of content parts, got nothing"),
        (
            [{"role": "tool", "content": "x"}],
            "expected one of system, developer, user, assistant, got 'tool'",
        ),
        (
            [{"type": "function_call", "call_id": "c", "name": "f"}],
            "arguments: expected a string, got nothing",
        ),
        (None, "input: expected a list, got None"),
        ([], "input: expected at least one non-empty message"),
    ],
)
def test_an_item_that_the_server_cannot_know_is_refused(given: Any, message: str) -> None:
    answer = ask(FakeLLM([text("x")]), {"model": "m", "input": given}, TARGET)
    assert answer.status == 400  # type: ignore[union-attr]
    assert message in json.loads(answer.body)["error"]["message"]  # type: ignore[union-attr]


def test_an_error_comes_as_openai_words_it_and_a_reset_breaks_the_stream(
    statek_llm_server: LLMServer, client: OpenAI
) -> None:
    rules = [
        FaultRule(fault=HttpError(429, retry_after=1), positions=(1,)),
        FaultRule(fault=Reset(after=5), positions=(2,)),
        FaultRule(fault=EmptyChoices(), positions=(3, 4)),
        FaultRule(fault=NullUsage(), positions=(3,)),
    ]
    statek_llm_server.script([text("Hello there.").forever()], faults=rules)
    with pytest.raises(openai.RateLimitError):
        client.responses.create(model="gpt-4o", input="Hello?")
    with pytest.raises(
        (openai.APIConnectionError, Exception), match=r"(?i)reset|closed|incomplete|Connection"
    ):
        list(client.responses.create(model="gpt-4o", input="Hello?", stream=True))
    answer = client.responses.create(model="gpt-4o", input="Hello?")
    assert (answer.output, answer.usage) == ([], None)
    kinds = [event.type for event in client.responses.create(model="gpt-4o", input="Hello?", stream=True)]
    assert kinds == ["response.created", "response.in_progress", "response.completed"]


def test_an_answer_that_is_cut_short_is_incomplete() -> None:
    llm = FakeLLM([text("Hello there").cut_short()])
    events = streamed(ask(llm, {"model": "m", "input": "x", "stream": True}, TARGET)).decode()
    last = json.loads(events.strip().rsplit("data: ", 1)[1])
    assert (last["type"], last["response"]["status"]) == ("response.incomplete", "incomplete")
    assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


@pytest.mark.parametrize("stream", [False, True])
def test_what_a_cassette_records_of_it_the_server_plays(
    statek_llm_server: LLMServer, client: OpenAI, tmp_path: Path, stream: bool
) -> None:
    def asked() -> Any:
        if not stream:
            return client.responses.create(model="gpt-4o", input="Look.", tools=TOOLS).output[0]
        with client.responses.stream(model="gpt-4o", input="Look.", tools=TOOLS) as events:
            return events.get_final_response().output[0]

    path = tmp_path / "recorded.yaml"
    statek_llm_server.script([tool_call("look", where="here")])
    with tapped(session := CassetteSession(path, RecordMode.REWRITE)):
        first = asked()
    session.close()
    statek_llm_server.script(load_playable(path).script)
    assert asked() == first


def test_pydantic_ai_s_agent_uses_its_tool_and_answers(statek_llm_server: LLMServer) -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai", reason="it comes with the dev extra")
    import httpx2
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    looked: list[str] = []

    def look(where: str) -> str:
        """Look somewhere."""
        looked.append(where)
        return "empty"

    async def run(*, stream: bool) -> Any:
        async with httpx2.AsyncClient() as http:
            provider = OpenAIProvider(base_url=statek_llm_server.openai_url, api_key="none", http_client=http)
            agent: Any = pydantic_ai.Agent(OpenAIResponsesModel("gpt-4o", provider=provider), tools=[look])
            if not stream:
                return (await agent.run("Look.")).output
            async with agent.run_stream("Look.") as result:
                return await result.get_output()

    for stream in (False, True):
        statek_llm_server.script([tool_call("look", where="here"), text("Nothing.").on(tool_result="empty")])
        assert asyncio.run(run(stream=stream)) == "Nothing."
    assert looked == ["here", "here"]
