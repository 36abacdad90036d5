"""What a request demands of a reply: honoured, or refused by name; nothing that changes an answer is ignored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim.errors import UnmatchedRequest
from statek_sim.providers.script import ScriptedCall, raw, text, tool_call, tool_calls
from statek_sim.providers.wire.parameters import Api, parameters_of
from statek_sim.server.exchange import Incoming, Streamed, Whole
from statek_sim.server.llm import FakeLLM
from tests.server.asking import (
    ANTHROPIC,
    ANTHROPIC_TOOLS,
    GEMINI,
    GEMINI_TOOLS,
    OPENAI,
    OPENAI_TOOLS,
    RESPONSES_TOOLS,
    anthropic,
    ask,
    error,
    gemini,
    openai,
    whole,
)
from tests.tables import table_test

RESPONSES = "/v1/responses"
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("look", "see", "a", "b")]
IMAGE = "data:image/png;base64,iVBORw0KGgo="


def responses(message: object = "hi", **options: Any) -> dict[str, Any]:
    return {"model": "gpt-4o", "input": message, **options}


def content(body: Any) -> list[str]:
    """Return the texts of an answer, whatever its format."""
    if "choices" in body:
        return [choice["message"]["content"] for choice in body["choices"]]
    if "candidates" in body:
        return [candidate["content"]["parts"][0]["text"] for candidate in body["candidates"]]
    items = body["content"] if "content" in body else body["output"][0]["content"]
    return [part["text"] for part in items]


def with_image(question: str, target: str) -> dict[str, Any]:
    """Return a request whose last message has text and an image, as clients of each format write it."""
    if target == OPENAI:
        image: Any = {"type": "image_url", "image_url": {"url": IMAGE}}
        return {
            "model": "m",
            "messages": [{"role": "user", "content": [{"type": "text", "text": question}, image]}],
        }
    if target == ANTHROPIC:
        source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
        parts = [{"type": "image", "source": source}, {"type": "text", "text": question}]
        return {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": parts}]}
    if target == RESPONSES:
        said = [{"type": "input_text", "text": question}, {"type": "input_image", "image_url": IMAGE}]
        return responses([{"role": "user", "content": said}])
    inline = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    return {"contents": [{"role": "user", "parts": [{"text": question}, inline]}]}


@table_test("target", [OPENAI, RESPONSES, ANTHROPIC, GEMINI])
def test_a_condition_looks_at_the_text_beside_an_image(target: str) -> None:
    llm = FakeLLM([text("A cat.").on("What is this?"), text("no").when("never")])
    assert content(whole(ask(llm, with_image("What is this?", target), target))) == ["A cat."]
    assert ask(llm, with_image("Or this?", target), target).status == 422  # type: ignore[union-attr]
    assert "[1 part without text]" in llm.journal.problems[0]
    assert "expected contains 'never', got 'Or this?'" in llm.journal.problems[0]


def test_the_image_of_a_tool_result_hides_its_text_no_more_than_that_of_a_message() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    result = {
        "type": "tool_result",
        "tool_use_id": "c",
        "content": [{"type": "text", "text": "rain"}, {"type": "image", "source": source}],
    }
    use = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    messages = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    body = {"model": "m", "max_tokens": 50, "messages": messages}
    llm = FakeLLM([text("Wet.").on(tool_result="rain")])
    assert content(whole(ask(llm, body, ANTHROPIC))) == ["Wet."]


def test_an_image_counts_as_a_few_tokens_whatever_its_bytes() -> None:
    llm = FakeLLM([text("x").forever()])
    small = with_image("What?", OPENAI)
    large = json.loads(json.dumps(small).replace("iVBORw0KGgo=", "iVBORw0KGgo=" * 10_000))
    counted = [whole(ask(llm, body))["usage"]["prompt_tokens"] for body in (small, large)]
    assert counted == [94, 94]


@pytest.mark.parametrize(
    ("target", "body", "reason"),
    [
        (OPENAI, openai(stop=["STOP", " two"]), ("finish_reason", "stop")),
        (ANTHROPIC, anthropic(stop_sequences=["STOP", " two"]), ("stop_reason", "stop_sequence")),
        (GEMINI, gemini(generationConfig={"stopSequences": [" two"]}), ("finishReason", "STOP")),
    ],
)
def test_a_reply_ends_before_the_first_stop(target: str, body: Any, reason: tuple[str, str]) -> None:
    llm = FakeLLM([text("one two STOP three")])
    answer = whole(ask(llm, body, target))
    assert content(answer) == ["one"]
    ended = (answer.get("choices") or answer.get("candidates") or [answer])[0]
    assert ended[reason[0]] == reason[1]
    if target == ANTHROPIC:
        assert answer["stop_sequence"] == " two"
        assert answer["usage"]["output_tokens"] == 1


@table_test(
    ("target", "body", "reason"),
    [
        (OPENAI, openai(max_tokens=2), '"finish_reason":"length"'),
        (OPENAI, openai(max_completion_tokens=2), '"finish_reason":"length"'),
        (RESPONSES, responses(max_output_tokens=2), '"incomplete_details":{"reason":"max_output_tokens"}'),
        (ANTHROPIC, anthropic(max_tokens=2), '"stop_reason":"max_tokens"'),
        (GEMINI, gemini(generationConfig={"maxOutputTokens": 2}), '"finishReason":"MAX_TOKENS"'),
    ],
)
def test_a_reply_ends_with_the_last_token_that_is_allowed(target: str, body: Any, reason: str) -> None:
    llm = FakeLLM([text("Hello there, friend")])
    answer = ask(llm, body, target)
    assert content(whole(answer)) == ["Hello there"]
    assert isinstance(answer, Whole)
    assert reason in answer.body.decode()


def test_the_arguments_of_a_call_are_cut_by_the_limit_too() -> None:
    llm = FakeLLM([tool_call("look", where="here")])
    choice = whole(ask(llm, openai(max_tokens=4, tools=OPENAI_TOOLS)))["choices"][0]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["tool_calls"][0]["function"]["arguments"] == '{"where":'


@table_test(
    ("body", "reply", "problem"),
    [
        (
            openai(tools=TOOLS, tool_choice="required"),
            text("No."),
            "reply 1 calls no tool, but the request requires a call",
        ),
        (
            openai(tools=TOOLS, tool_choice="none"),
            tool_call("look"),
            "reply 1 calls 'look', but the request forbids calls",
        ),
        (
            openai(tools=TOOLS, tool_choice={"type": "function", "function": {"name": "see"}}),
            tool_call("look"),
            "reply 1 calls 'look', but the request allows see",
        ),
        (
            openai(tools=TOOLS, parallel_tool_calls=False),
            tool_calls(ScriptedCall("a", {}), ScriptedCall("b", {})),
            "reply 1 calls 2 tools, but the request allows one call at a time",
        ),
        (openai(response_format={"type": "json_object"}), text("No."), "reply 1 is not a JSON object"),
    ],
)
def test_what_no_provider_would_answer_is_an_error_of_the_script(body: Any, reply: Any, problem: str) -> None:
    llm = FakeLLM([reply])
    status, said = error(ask(llm, body))
    assert status == 422
    assert problem in said
    with pytest.raises(UnmatchedRequest, match=r"send it with raw\(\.\.\.\)"):
        llm.check_finished()


def test_the_same_is_demanded_in_the_words_of_each_api() -> None:
    wanting: list[tuple[str, Any]] = [
        (OPENAI, openai(tools=TOOLS, tool_choice="required")),
        (RESPONSES, responses(tools=RESPONSES_TOOLS, tool_choice={"type": "function", "name": "look"})),
        (ANTHROPIC, anthropic(tools=ANTHROPIC_TOOLS, tool_choice={"type": "any"})),
        (ANTHROPIC, anthropic(tools=ANTHROPIC_TOOLS, tool_choice={"type": "tool", "name": "look"})),
        (GEMINI, gemini(tools=GEMINI_TOOLS, toolConfig={"functionCallingConfig": {"mode": "ANY"}})),
    ]
    for target, body in wanting:
        assert ask(FakeLLM([text("No.")]), body, target).status == 422  # type: ignore[union-attr]
        assert ask(FakeLLM([tool_call("look")]), body, target).status == 200  # type: ignore[union-attr]


def test_raw_says_what_no_provider_would() -> None:
    llm = FakeLLM([raw({"choices": []})])
    assert whole(ask(llm, openai(tools=TOOLS, tool_choice="required"))) == {"choices": []}


@table_test(
    ("target", "body", "name"),
    [
        (OPENAI, openai(logprobs=True), "logprobs"),
        (OPENAI, openai(logprobs=True, top_logprobs=3), "logprobs"),
        (OPENAI, openai(modalities=["text", "audio"]), "modalities"),
        (OPENAI, openai(audio={"voice": "alloy", "format": "wav"}), "audio"),
        (OPENAI, openai(functions=[{"name": "f"}]), "functions"),
        (OPENAI, openai(web_search_options={}), "web_search_options"),
        (OPENAI, openai(nonsense=1), "nonsense"),
        (RESPONSES, responses(background=True), "background"),
        (RESPONSES, responses(conversation="conv_1"), "conversation"),
        (RESPONSES, responses(prompt={"id": "p"}), "prompt"),
        (RESPONSES, responses(include=["message.output_text.logprobs"]), "include"),
        (ANTHROPIC, anthropic(mcp_servers=[{"url": "x"}]), "mcp_servers"),
        (ANTHROPIC, anthropic(nonsense=1), "nonsense"),
        (GEMINI, gemini(cachedContent="cachedContents/1"), "cachedContent"),
        (GEMINI, gemini(generationConfig={"responseLogprobs": True}), "generationConfig.responseLogprobs"),
        (
            GEMINI,
            gemini(generation_config={"response_modalities": ["AUDIO"]}),
            "generationConfig.responseModalities",
        ),
    ],
)
def test_what_the_server_does_not_honour_is_refused_by_name(target: str, body: Any, name: str) -> None:
    llm = FakeLLM([text("x")])
    answer = ask(llm, body, target)
    assert isinstance(answer, Whole)
    said = json.loads(answer.body)["error"]
    assert answer.status == 400
    assert said["message"].startswith(f"Unsupported parameter `{name}`: ")
    if target in (OPENAI, RESPONSES):
        assert (said["param"], said["code"]) == (name, "unsupported_parameter")
    with pytest.raises(UnmatchedRequest, match=rf"^request 1 \(POST .*\): Unsupported parameter `{name}`"):
        llm.check_finished()


def test_what_is_ignored_by_name_is_taken_without_heed() -> None:
    llm = FakeLLM([text("x").forever()], ignored=("logprobs", "top_logprobs"))
    whole(ask(llm, openai(logprobs=True, top_logprobs=3)))
    assert ask(llm, openai(logprobs=True, nonsense=1)).status == 400  # type: ignore[union-attr]
    llm.play([text("x")], ignored=("nonsense",))
    whole(ask(llm, openai(nonsense=1)))


@table_test(
    ("target", "body"),
    [
        (OPENAI, openai(logprobs=False, top_logprobs=0, modalities=["text"], n=1, stop=None, functions=[])),
        (
            OPENAI,
            openai(temperature=2, top_p=0.1, seed=1, user="u", metadata={"a": "b"}, logit_bias={"1": 2}),
        ),
        (RESPONSES, responses(background=False, include=["reasoning.encrypted_content"], truncation="auto")),
        (ANTHROPIC, anthropic(temperature=1, top_k=4, metadata={"user_id": "u"}, service_tier="auto")),
        (GEMINI, gemini(safetySettings=[], generationConfig={"topK": 3, "responseModalities": ["TEXT"]})),
    ],
)
def test_what_asks_for_nothing_or_only_shapes_a_choice_is_accepted(target: str, body: Any) -> None:
    assert content(whole(ask(FakeLLM([text("x")]), body, target))) == ["x"]


WRONG = [
    (OPENAI, "temperature", "hot"),
    (OPENAI, "temperature", 2.5),
    (OPENAI, "temperature", True),
    (OPENAI, "top_p", [1]),
    (OPENAI, "presence_penalty", 3),
    (OPENAI, "seed", 1.5),
    (OPENAI, "stream", "yes"),
    (OPENAI, "stop", ["a", "b", "c", "d", "e"]),
    (OPENAI, "tools", {}),
    (OPENAI, "tool_choice", "sometimes"),
    (OPENAI, "response_format", {"type": "xml"}),
    (OPENAI, "response_format", "json"),
    (OPENAI, "metadata", 5),
    (OPENAI, "parallel_tool_calls", "no"),
    (RESPONSES, "top_p", 1.1),
    (RESPONSES, "text", "json"),
    (RESPONSES, "instructions", ["Help."]),
    (RESPONSES, "max_tool_calls", 0),
    (ANTHROPIC, "temperature", 1.5),
    (ANTHROPIC, "top_k", -1),
    (ANTHROPIC, "tool_choice", "auto"),
    (ANTHROPIC, "tool_choice", {"type": "required"}),
    (ANTHROPIC, "thinking", {"budget_tokens": 1024}),
    (ANTHROPIC, "stop_sequences", "END"),
    (GEMINI, "temperature", 2.1),
    (GEMINI, "topK", 0),
    (GEMINI, "responseMimeType", "application/jsn"),
    (GEMINI, "stopSequences", "END"),
]


@table_test(("target", "name", "value"), WRONG)
def test_a_value_that_no_provider_takes_is_refused_by_name(target: str, name: str, value: Any) -> None:
    write: Any = {OPENAI: openai, RESPONSES: responses, ANTHROPIC: anthropic, GEMINI: gemini}[target]
    body = write(generationConfig={name: value}) if target == GEMINI else write(**{name: value})
    llm = FakeLLM([text("x")])
    answer = ask(llm, body, target)
    assert isinstance(answer, Whole)
    failure = json.loads(answer.body)["error"]
    assert answer.status == 400
    assert f"{name}: expected " in failure["message"]
    if target in (OPENAI, RESPONSES):
        assert failure["param"] == name
    with pytest.raises(UnmatchedRequest, match=f"{name}: expected "):
        llm.check_finished()


GEMINI_PART: Any = {"text": "hi"}
MISSHAPEN: list[tuple[str, Any, str]] = [
    (OPENAI, openai(tool_choice={"a": []}), "tool_choice: expected"),
    (OPENAI, openai(stream_options={"include_usage": True}), "stream_options: allowed only if stream"),
    (OPENAI, openai(tools=[{"type": []}]), "tools[0].type: expected a string, got '[]'"),
    (OPENAI, openai(tools=[{}]), "tools[0].type: expected a string, got nothing"),
    (OPENAI, openai([{}]), "messages[0].content[0].type: expected a string, got nothing"),
    (OPENAI, openai([{"type": 1}]), "messages[0].content[0].type: expected a string, got '1'"),
    (OPENAI, openai([{"type": "text"}]), "messages[0].content[0].text: expected a string, got nothing"),
    (RESPONSES, responses(include=[1]), "include: expected a list of strings"),
    (RESPONSES, responses(tools=[{"type": []}]), "tools[0].type: expected a string"),
    (RESPONSES, responses([{"role": "user", "content": [{}]}]), "input[0].content[0].type: expected"),
    (ANTHROPIC, anthropic(max_tokens=True), "max_tokens: expected a whole number of at least 1, got true"),
    (ANTHROPIC, anthropic(tools=[{"type": []}]), "tools[0].type: expected a string"),
    (ANTHROPIC, anthropic(tools=[{}]), "tools[0].name: expected a string, got nothing"),
    (ANTHROPIC, anthropic([{}]), "messages[0].content[0].type: expected a string, got nothing"),
    (ANTHROPIC, anthropic([{"type": 1}]), "messages[0].content[0].type: expected a string"),
    (ANTHROPIC, anthropic(system=[{"text": "Be brief."}]), "system[0].type: expected a string"),
    (
        f"{ANTHROPIC}/count_tokens",
        {"model": "m", "messages": [{"role": "user", "content": "x"}], "thinking": 5},
        "thinking: expected an object",
    ),
    (GEMINI, gemini(5), "contents[0].parts[0].text: expected a string, got '5'"),
    (GEMINI, {"contents": [{"parts": [GEMINI_PART, {}]}]}, "contents[0].parts[1]: expected a member"),
    (GEMINI, {"contents": [{"parts": [{"type": 1}]}]}, "contents[0].parts[0]: expected a member"),
    (GEMINI, {"contents": [{"parts": [None]}]}, "contents[0].parts[0]: expected an object"),
    (GEMINI, {"contents": [{"parts": [[[]]]}]}, "contents[0].parts[0]: expected an object"),
    (GEMINI, gemini(safetySettings=5), "safetySettings: expected a list"),
    (GEMINI, gemini(safety_settings=5), "safetySettings: expected a list"),
    (GEMINI, gemini(model=5), "model: expected a string"),
    (GEMINI, gemini(toolConfig={"a": []}), "toolConfig: expected an object with only functionCallingConfig"),
    (GEMINI, gemini(tools=[{"type": []}]), "tools[0]: expected a known kind of tool, got type"),
    (
        GEMINI.replace("generateContent", "countTokens"),
        {"generateContentRequest": gemini(5)},
        "contents[0].parts[0].text: expected a string",
    ),
]


@table_test(("target", "body", "said"), MISSHAPEN)
def test_a_shape_that_no_provider_takes_is_refused_by_its_place(target: str, body: Any, said: str) -> None:
    answer = ask(FakeLLM([text("x")]), body, target)
    status, message = error(answer)
    assert status == 400
    assert said in message


def test_a_shape_of_another_server_is_taken_without_heed_by_name() -> None:
    llm = FakeLLM([text("x").forever()], ignored=("messages", "stream_options"))
    whole(ask(llm, openai([{"text": "hi"}], stream_options={"include_usage": True})))
    assert error(ask(llm, openai([{"text": "hi"}], tools=[{}])))[0] == 400


@table_test("constant", ["NaN", "Infinity", "-Infinity"])
@table_test("target", [OPENAI, "/v1/embeddings"])
def test_a_constant_that_is_no_json_is_refused(target: str, constant: str) -> None:
    body = json.dumps(openai(seed=0)).replace('"seed": 0', f'"seed": {constant}').encode()
    answer = FakeLLM().answer(Incoming(method="POST", target=target, headers={}, body=body))
    assert error(answer) == (400, f"cannot parse the request: {constant} is not JSON")


@table_test(("target", "write"), [(OPENAI, openai), (ANTHROPIC, anthropic), (GEMINI, gemini)])
@table_test("encoding", ["gzip", "nope"])
def test_a_body_that_is_encoded_is_refused_and_not_read_as_plain(
    target: str, write: Any, encoding: str
) -> None:
    llm = FakeLLM([text("x").forever()])
    status, message = error(ask(llm, write(), target, content_encoding=encoding))
    assert (
        status,
        f"content-encoding {encoding!r} is not supported; send the body uncompressed" in message,
    ) == (415, True)
    assert ask(llm, write(), target, content_encoding="identity").status == 200  # type: ignore[union-attr]
    with pytest.raises(UnmatchedRequest, match="content-encoding"):
        llm.check_finished()


def test_a_value_of_another_server_is_taken_without_heed_by_name() -> None:
    llm = FakeLLM([text("x").forever()], ignored=("top_p", "generationConfig.topK"))
    whole(ask(llm, openai(top_p=7)))
    whole(ask(llm, gemini(generationConfig={"topK": 0}), GEMINI))
    status, message = error(ask(llm, openai(top_p=7, seed="x" * 500)))
    assert (status, message[:40]) == (400, 'seed: expected a whole number, got "xxxx')
    assert len(message) < 250


@table_test(
    ("target", "body"),
    [
        (
            OPENAI,
            openai(temperature=0, top_p=1, seed=-3.0, stop=["a", "b", "c", "d"], stream=False, tools=[]),
        ),
        (
            OPENAI,
            openai(temperature=None, stream=None, metadata=None, tool_choice=None, response_format=None),
        ),
        (
            OPENAI,
            openai(
                tools=TOOLS, tool_choice="auto", reasoning_effort="minimal", response_format={"type": "text"}
            ),
        ),
        (
            RESPONSES,
            responses(reasoning={"effort": "low"}, text={"format": {"type": "text"}}, max_tool_calls=1),
        ),
        (ANTHROPIC, anthropic(temperature=0.5, top_k=0, thinking={"type": "adaptive"}, stop_sequences=[])),
        (ANTHROPIC, anthropic(tool_choice={"type": "none"}, metadata={})),
        (ANTHROPIC, anthropic(tools=[{"type": "web_search_20250305", "name": "web_search"}])),
        (
            OPENAI,
            openai(
                tools=TOOLS,
                tool_choice={"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}},
            ),
        ),
        (RESPONSES, responses(tools=[{"type": "file_search", "vector_store_ids": []}], include=[])),
        (GEMINI, gemini(tools=[{}, {"google_search": {}}], tool_config={"retrieval_config": {}})),
        (GEMINI, gemini(generationConfig={"temperature": 2, "topK": 40.0, "responseMimeType": "text/plain"})),
    ],
)
def test_every_value_that_providers_take_is_accepted(target: str, body: Any) -> None:
    assert content(whole(ask(FakeLLM([text("x")]), body, target))) == ["x"]


@pytest.mark.parametrize("number", ["1e400", "-1e400"])
def test_a_number_that_no_float_holds_is_refused(number: str) -> None:
    body = json.dumps(openai(n=0)).replace('"n": 0', f'"n": {number}').encode()
    answer = FakeLLM().answer(Incoming(method="POST", target=OPENAI, headers={}, body=body))
    assert error(answer)[0] == 400


def test_what_is_said_of_a_large_body_is_short() -> None:
    llm = FakeLLM()
    status, said = error(ask(llm, ["a" * 10_000] * 100, OPENAI))
    assert (status, len(said) < 2100) == (400, True)
    assert said.startswith("cannot parse the request: the body: expected an object, got ['aaa")
    with pytest.raises(UnmatchedRequest) as failed:
        llm.check_finished()
    assert len(str(failed.value)) < 2200


def test_a_number_that_no_provider_takes_is_refused() -> None:
    for body in (openai(n=0), openai(n=129), openai(max_tokens=0), openai(stop=[1]), openai(n="two")):
        assert ask(FakeLLM([text("x")]), body).status == 400  # type: ignore[union-attr]


APIS: list[tuple[str, Any, Api]] = [
    (OPENAI, openai, "openai"),
    (RESPONSES, responses, "responses"),
    (ANTHROPIC, anthropic, "anthropic"),
    (GEMINI, gemini, "gemini"),
]


@pytest.mark.parametrize(("target", "write", "api"), APIS)
@given(
    name=st.from_regex(r"[a-z][a-z_]{0,15}", fullmatch=True),
    value=st.booleans() | st.integers(1) | st.text(min_size=1),
)
def test_no_parameter_is_ignored_that_no_table_names(
    target: str, write: Any, api: Api, name: str, value: Any
) -> None:
    camel = parameters_name(name, target)
    accepted, off, _ = parameters_of(api)
    if camel in accepted or camel in off:
        return
    answer = ask(FakeLLM([text("x")]), write(**{name: value}), target)
    assert not isinstance(answer, Streamed)
    assert answer.status == 400  # type: ignore[union-attr]


def parameters_name(name: str, target: str) -> str:
    """Return the name that a table has: Gemini's API takes either spelling."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest) if target == GEMINI else name


@table_test(
    ("target", "body"),
    [
        (OPENAI, {"model": "m", "messages": []}),
        (ANTHROPIC, {"model": "m", "max_tokens": 1, "messages": []}),
        (f"{ANTHROPIC}/count_tokens", {"model": "m", "messages": []}),
        (GEMINI, {"contents": [], "systemInstruction": {"parts": [{"text": "Be brief."}]}}),
    ],
)
def test_a_request_without_a_message_is_refused_as_providers_do(target: str, body: dict[str, Any]) -> None:
    answer = ask(FakeLLM([text("x").forever()]), body, target)
    assert isinstance(answer, Whole)
    assert answer.status == 400
    assert b"expected at least one non-empty message" in answer.body


def test_what_an_agent_of_anthropics_sends_beside_its_messages_is_accepted() -> None:
    request = anthropic(
        context_management={"edits": [{"type": "clear_tool_uses_20250919"}]},
        metadata={"user_id": "somebody"},
        service_tier="auto",
        thinking={"type": "adaptive"},
        output_config={"effort": "medium"},
        system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    )
    betas = "context-management-2025-06-27,interleaved-thinking-2025-05-14"
    llm = FakeLLM([text("Yes.")])
    assert (
        whole(ask(llm, request, f"{ANTHROPIC}?beta=true", anthropic_beta=betas))["content"][0]["text"]
        == "Yes."
    )
    llm.check_finished()
