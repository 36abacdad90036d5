"""What a model thought and what it refuses, in the form of each format, as the SDKs read it, whole and streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from statek_sim import raw, text, tool_call
from statek_sim.errors import BadInput
from statek_sim.providers.script import fault, refusal
from statek_sim.server.llm import FakeLLM
from statek_sim.server.llm_server import LLMServer
from statek_sim.trajectory import trajectory
from tests.server.asking import (
    ANTHROPIC,
    GEMINI,
    GEMINI_TOOLS,
    anthropic,
    ask,
    error,
    gemini,
    openai,
    whole,
)
from tests.tables import table_test

RESPONSES = "/v1/responses"
HELLO: Any = [{"role": "user", "content": "Hello?"}]
ENABLED: Any = {"type": "enabled", "budget_tokens": 1024}
TOOLS: Any = [{"name": "look", "input_schema": {"type": "object"}}]
SHOWN: Any = {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}}
SCRIPT = [text("Rain.").thinking("Look at the sky."), refusal("I will not say.")]
BOTH = pytest.mark.parametrize("stream", [False, True])


@BOTH
def test_anthropic_gets_a_signed_block(statek_llm_server: LLMServer, *, stream: bool) -> None:
    sdk = pytest.importorskip("anthropic", reason="it comes with the dev extra")
    statek_llm_server.script([tool_call("look").thinking("Look at the sky.")])
    asked: Any = {"model": "m", "max_tokens": 2048, "messages": HELLO, "thinking": ENABLED, "tools": TOOLS}
    with sdk.Anthropic(base_url=statek_llm_server.url, api_key="none", max_retries=0) as client:
        if stream:
            with client.messages.stream(**asked) as events:
                answer = events.get_final_message()
        else:
            answer = client.messages.create(**asked)
    thought, call = answer.content
    assert (thought.type, thought.thinking, call.name) == ("thinking", "Look at the sky.", "look")
    assert thought.signature


@BOTH
def test_responses_get_a_reasoning_item_and_a_refusal(statek_llm_server: LLMServer, *, stream: bool) -> None:
    sdk = pytest.importorskip("openai", reason="it comes with the dev extra")
    statek_llm_server.script(SCRIPT)
    asked: Any = {"model": "gpt-5", "input": "Hello?", "reasoning": {"summary": "auto"}}
    kinds: list[str] = []
    answers: list[Any] = []
    with sdk.OpenAI(base_url=statek_llm_server.openai_url, api_key="none", max_retries=0) as client:
        for _ in SCRIPT:
            if stream:
                with client.responses.stream(**asked) as events:
                    kinds += [event.type for event in events]
                    answers.append(events.get_final_response())
            else:
                answers.append(client.responses.create(**asked))
    thought, said = answers[0].output
    assert ([part.text for part in thought.summary], said.content[0].text) == (["Look at the sky."], "Rain.")
    assert answers[1].output[0].content[0].refusal == "I will not say."
    if stream:
        assert {"response.reasoning_summary_text.delta", "response.refusal.delta"} <= {*kinds}


@BOTH
def test_chat_completions_get_reasoning_content_and_a_refusal(
    statek_llm_server: LLMServer, *, stream: bool
) -> None:
    sdk = pytest.importorskip("openai", reason="it comes with the dev extra")
    statek_llm_server.script(SCRIPT)
    asked: Any = {"model": "gpt-4o", "messages": HELLO, "stream": stream}
    found: list[list[str]] = []
    with sdk.OpenAI(base_url=statek_llm_server.openai_url, api_key="none", max_retries=0) as client:
        for _ in SCRIPT:
            answer = client.chat.completions.create(**asked)
            said = [chunk.choices[0].delta for chunk in answer] if stream else [answer.choices[0].message]
            members = ("reasoning_content", "content", "refusal")
            found.append(["".join(getattr(one, key, None) or "" for one in said) for key in members])
    assert found == [["Look at the sky.", "Rain.", ""], ["", "", "I will not say."]]


@BOTH
def test_gemini_gets_a_thought_and_stops_for_safety(statek_llm_server: LLMServer, *, stream: bool) -> None:
    genai = pytest.importorskip("google.genai", reason="it comes with the dev extra")
    statek_llm_server.script(SCRIPT)
    client = genai.Client(
        api_key="none", http_options=genai.types.HttpOptions(base_url=statek_llm_server.url)
    )
    config = {"thinking_config": {"include_thoughts": True}}
    asked: Any = {"model": "gemini-2.5-pro", "contents": "Hello?", "config": config}
    found: list[tuple[str, str, str]] = []
    for _ in SCRIPT:
        models = client.models
        pieces = [*models.generate_content_stream(**asked)] if stream else [models.generate_content(**asked)]
        parts = [part for piece in pieces for part in piece.candidates[0].content.parts or []]
        thought = "".join(part.text for part in parts if part.thought)
        said = "".join(part.text for part in parts if not part.thought)
        found.append((thought, said, pieces[-1].candidates[0].finish_reason.value))
    assert found == [("Look at the sky.", "Rain.", "STOP"), ("", "", "SAFETY")]


def test_a_thought_of_gemini_comes_before_its_call() -> None:
    body = gemini(tools=GEMINI_TOOLS, **SHOWN)
    answer = whole(ask(FakeLLM([tool_call("look").thinking("Look.")]), body, GEMINI))
    thought, call = answer["candidates"][0]["content"]["parts"]
    assert thought == {"text": "Look.", "thought": True}
    assert call["functionCall"]["name"] == "look"


def test_anthropic_stops_for_a_refusal() -> None:
    answer = whole(ask(FakeLLM([refusal("I will not say.")]), anthropic(), ANTHROPIC))
    assert (answer["stop_reason"], answer["content"][0]["text"]) == ("refusal", "I will not say.")


def test_a_refusal_answers_a_request_for_json() -> None:
    body = openai(response_format={"type": "json_object"})
    assert whole(ask(FakeLLM([refusal("No.")]), body))["choices"][0]["message"]["refusal"] == "No."


@table_test(
    ("target", "body", "parameter"),
    [
        (ANTHROPIC, anthropic(), "(thinking)"),
        (RESPONSES, {"model": "gpt-5", "input": "hi"}, "(reasoning.summary)"),
        (GEMINI, gemini(), "(generationConfig.thinkingConfig.includeThoughts)"),
    ],
)
def test_thoughts_that_nobody_asked_for_fail_the_test(target: str, body: Any, parameter: str) -> None:
    status, said = error(ask(FakeLLM([text("Rain.").thinking("Look.")]), body, target))
    assert status == 422
    assert f"reply 1 contains thinking, but the request does not ask for it {parameter}" in said


def test_what_was_thought_is_counted() -> None:
    plain, thoughtful = (
        whole(ask(FakeLLM([reply]), openai()))["usage"]["completion_tokens"]
        for reply in (text("Rain."), text("Rain.").thinking("Look at the sky."))
    )
    assert thoughtful > plain


def test_the_record_of_a_run_counts_what_was_thought(statek_llm_server: LLMServer) -> None:
    statek_llm_server.script([text("Rain.").thinking("Look at the sky.")])
    ask(statek_llm_server.llm, openai())
    (request,) = trajectory(statek_llm_server).requests
    assert request.completion_tokens > len(["Rain", "."])


def test_only_a_message_shows_what_was_thought() -> None:
    with pytest.raises(BadInput, match=r"thinking\(\) requires a reply with a message, got HttpError"):
        fault(429).thinking("Look.")


def test_a_raw_body_is_no_stream() -> None:
    status, said = error(ask(FakeLLM([raw(json.dumps({"choices": []}))]), openai(stream=True)))
    assert status == 422
    assert "reply 1 is raw(...), but the request asks for a stream; use raw_stream(" in said
