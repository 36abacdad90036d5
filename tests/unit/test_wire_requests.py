"""Requests as a provider reads them: what SDKs may write, and what is refused."""

from __future__ import annotations

import pytest

from statek_sim.errors import BadRequest
from statek_sim.providers.wire import anthropic, gemini, openai
from statek_sim.providers.wire.format import (
    FORMATS,
    OPENAI_PROVIDERS,
    WireFormat,
    format_at,
    format_of,
    format_of_url,
)
from statek_sim.values import JSON
from tests.tables import table_test

GEMINI_URL = "https://llm.invalid/v1beta/models/gemini-2.5-pro:generateContent"


def test_text_parts_of_a_message_are_one_text_and_other_parts_stay() -> None:
    image: JSON = {"type": "image_url", "image_url": {"url": "data:"}}
    read = openai.read_request(
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                {"role": "user", "content": [image]},
            ],
            "max_completion_tokens": 9,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    )
    assert [message["content"] for message in read.messages] == ["a\nb", [image]]
    assert (read.max_tokens, read.stream, read.stream_usage) == (9, True, True)


def test_anthropic_results_and_texts_of_a_message_are_messages_in_their_order() -> None:
    read = anthropic.read_request(
        {
            "model": "m",
            "max_tokens": 5,
            "system": [{"type": "text", "text": "Be brief."}],
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "before"},
                        {
                            "type": "tool_result",
                            "tool_use_id": "1",
                            "content": [{"type": "text", "text": "r"}],
                        },
                        {"type": "text", "text": "after"},
                    ],
                }
            ],
        }
    )
    assert read.messages == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "before"},
        {"role": "tool", "content": "r", "tool_call_id": "1"},
        {"role": "user", "content": "after"},
    )


def test_gemini_takes_both_spellings_and_its_model_from_the_address() -> None:
    read = gemini.read_request(
        {
            "system_instruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                {"parts": [{"text": "hi"}]},
                {"role": "user", "parts": [{"function_response": {"name": "t", "response": {"n": 1}}}]},
            ],
            "generation_config": {"temperature": 0.5, "maxOutputTokens": 4},
        },
        GEMINI_URL.replace("generate", "streamGenerate") + "?alt=sse",
    )
    assert read.messages == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "tool", "content": '{"n": 1}', "tool_call_id": "t"},
    )
    assert (read.model, read.stream, read.temperature, read.max_tokens) == ("gemini-2.5-pro", True, 0.5, 4)


@table_test(
    ("wire", "body", "message"),
    [
        (openai, [], r"the body: expected an object, got \[\]"),
        (openai, {"messages": []}, "model: expected a string, got nothing"),
        (openai, {"model": "m", "messages": None}, "messages: expected a list, got None"),
        (openai, {"model": "m", "messages": ["a"]}, r"messages\[0\]: expected an object, got 'a'"),
        (
            openai,
            {"model": "m", "messages": [{"role": "me"}]},
            r"messages\[0\]\.role: expected one of .*'me'",
        ),
        (
            openai,
            {"model": "m", "messages": [{"role": "user"}]},
            r"messages\[0\]\.content: expected a string .*",
        ),
        (
            openai,
            {"model": "m", "messages": [], "temperature": "x"},
            "temperature: expected a number, got 'x'",
        ),
        (anthropic, {"model": "m", "messages": []}, "max_tokens: expected a whole number, got nothing"),
        (
            anthropic,
            {"model": "m", "max_tokens": 1, "messages": [{"role": "tool", "content": "x"}]},
            r"messages\[0\]\.role: expected 'user' or 'assistant', got 'tool'",
        ),
        (
            gemini,
            {"contents": [{"role": "assistant", "parts": []}]},
            r"contents\[0\]\.role: expected 'user', .*",
        ),
        (gemini, {"contents": [{"parts": "x"}]}, r"contents\[0\]\.parts: expected a list, got 'x'"),
    ],
)
def test_a_wrong_request_is_told_with_its_place(wire: WireFormat, body: JSON, message: str) -> None:
    with pytest.raises(BadRequest, match=rf"^{message}$"):
        wire.read_request(body, GEMINI_URL)


def test_gemini_needs_an_address_that_names_a_model() -> None:
    message = r"^expected a URL that ends in MODEL:generateContent or MODEL:streamGenerateContent, got '/v1/models'$"
    with pytest.raises(BadRequest, match=message):
        gemini.read_request({}, "/v1/models")


@table_test(
    ("api_url", "url"),
    [
        ("https://host/v1/models", "https://host/v1/models/m:generateContent"),
        ("https://host/v1/models/", "https://host/v1/models/m:generateContent"),
        ("https://host/{model}:generateContent?x=1", "https://host/m:generateContent?x=1"),
        ("https://host/fixed:generateContent", "https://host/fixed:generateContent"),
    ],
)
def test_the_address_of_a_gemini_model(api_url: str, url: str) -> None:
    assert gemini.request_url(api_url, "m") == url


@table_test(
    ("provider", "name"),
    [("openrouter", "openai"), ("KIMI", "openai"), ("Claude_AI", "anthropic"), ("google", "gemini")],
)
def test_a_provider_speaks_its_format_in_any_letter_case(provider: str, name: str) -> None:
    assert name == format_of(provider).NAME


def test_an_unknown_provider_is_refused_unless_it_was_added() -> None:
    with pytest.raises(ValueError, match=r"^Unsupported LLM API provider: MyCo$"):
        format_of("MyCo")
    assert format_of("MyCo", custom={"MYCO"}) is openai
    assert len(OPENAI_PROVIDERS) == 61


def test_the_format_of_a_request_shows_in_its_address() -> None:
    urls = {name: wire.request_url("https://host/v1", "m") for name, wire in FORMATS.items()}
    read = {name: format_of_url(url).NAME for name, url in urls.items()}
    # STATEK speaks no Responses API: whatever its OPENAI_API_URL ends in, it sends chat completions there.
    assert read == {**{name: name for name in FORMATS}, "responses": "openai"}
    assert format_of_url("https://host/m:generateContent?key=k") is gemini


def test_anyone_s_request_shows_its_format_in_its_address() -> None:
    ends = {"/chat/completions": "openai", "/responses": "responses", "/messages": "anthropic"}
    found = {end: format_at(f"https://host/v1{end}?a=b") for end in ends}
    assert {end: wire.NAME for end, wire in found.items() if wire} == ends
    assert format_at("https://host/v1/embeddings") is None


@table_test(
    ("wire", "status", "body"),
    [
        (
            openai,
            429,
            b'{"error":{"message":"no","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}',
        ),
        (openai, 500, b'{"error":{"message":"no","type":"server_error","param":null,"code":null}}'),
        (anthropic, 529, b'{"type":"error","error":{"type":"overloaded_error","message":"no"}}'),
        (anthropic, 418, b'{"type":"error","error":{"type":"invalid_request_error","message":"no"}}'),
        (gemini, 429, b'{"error":{"code":429,"message":"no","status":"RESOURCE_EXHAUSTED"}}'),
        (gemini, 599, b'{"error":{"code":599,"message":"no","status":"INTERNAL"}}'),
    ],
)
def test_errors_have_the_formats_own_shape(wire: WireFormat, status: int, body: bytes) -> None:
    assert wire.error_body(status, "no") == body
