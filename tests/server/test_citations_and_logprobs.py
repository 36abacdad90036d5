"""Citations and log probabilities in the form of each format, as the SDKs read them, whole and streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from statek_sim import fault, text
from statek_sim.errors import BadInput
from statek_sim.providers.script import code, refusal
from statek_sim.providers.wire.format import FORMATS
from statek_sim.server.llm import FakeLLM
from statek_sim.server.llm_server import LLMServer
from tests.server.asking import ANTHROPIC, GEMINI, anthropic, ask, error, gemini, openai, whole
from tests.tables import table_test

RESPONSES = "/v1/responses"
HELLO: Any = [{"role": "user", "content": "Hello?"}]
SAID = "In Zürich it rains. Bring a coat."
CITED = (
    text(SAID)
    .citing("https://met.example/z", title="Met", span="In Zürich it rains.", quote="Rain in Zürich.")
    .citing("https://coats.example", span="Bring a coat.")
)
SCORED = text("Rain.").logprobs(("Rain", -0.25, {"Snow": -2.5, "Sun": -1.5}), (".", 0.0))
BOTH = pytest.mark.parametrize("stream", [False, True])


@BOTH
def test_chat_completions_have_annotations_and_logprobs(
    statek_llm_server: LLMServer, *, stream: bool
) -> None:
    sdk = pytest.importorskip("openai", reason="it comes with the dev extra")
    statek_llm_server.script([CITED.logprobs((SAID, -1.0)), SCORED])
    found: list[Any] = []
    asked: Any = {"model": "gpt-4o", "messages": HELLO, "logprobs": True, "top_logprobs": 3}
    with sdk.OpenAI(base_url=statek_llm_server.openai_url, api_key="none", max_retries=0) as client:
        for _ in range(2):
            if stream:
                with client.chat.completions.stream(**asked) as events:
                    found.append(events.get_final_completion().choices[0])
            else:
                found.append(client.chat.completions.create(**asked).choices[0])
    cites = [one["url_citation"] for one in found[0].message.to_dict()["annotations"]]
    assert [(SAID[one["start_index"] : one["end_index"]], one["url"], one["title"]) for one in cites] == [
        ("In Zürich it rains.", "https://met.example/z", "Met"),
        ("Bring a coat.", "https://coats.example", ""),
    ]
    rain, dot = found[1].logprobs.content
    assert (rain.token, rain.logprob, rain.bytes) == ("Rain", -0.25, [*b"Rain"])
    assert [(one.token, one.logprob) for one in rain.top_logprobs] == [
        ("Rain", -0.25),
        ("Sun", -1.5),
        ("Snow", -2.5),
    ]
    assert (dot.token, dot.logprob, dot.top_logprobs) == (".", 0.0, [])


@BOTH
def test_responses_have_annotations_and_logprobs(statek_llm_server: LLMServer, *, stream: bool) -> None:
    sdk = pytest.importorskip("openai", reason="it comes with the dev extra")
    statek_llm_server.script([CITED.logprobs((SAID, -1.0)), SCORED])
    asked: Any = {"model": "gpt-5", "input": "Hello?", "include": ["message.output_text.logprobs"]}
    found: list[Any] = []
    events: list[Any] = []
    with sdk.OpenAI(base_url=statek_llm_server.openai_url, api_key="none", max_retries=0) as client:
        for _ in range(2):
            if stream:
                with client.responses.stream(**asked) as streamed:
                    events += streamed
                    found.append(streamed.get_final_response().output[0].content[0])
            else:
                found.append(client.responses.create(**asked).output[0].content[0])
    first, second = found[0].annotations
    assert (first.type, first.url, SAID[first.start_index : first.end_index]) == (
        "url_citation",
        "https://met.example/z",
        "In Zürich it rains.",
    )
    assert (second.url, SAID[second.start_index : second.end_index]) == (
        "https://coats.example",
        "Bring a coat.",
    )
    assert [(one.token, one.logprob) for one in found[1].logprobs] == [("Rain", -0.25), (".", 0.0)]
    if stream:
        added = [one for one in events if one.type == "response.output_text.annotation.added"]
        assert [one.annotation_index for one in added] == [0, 1]
        deltas = [one for one in events if one.type == "response.output_text.delta"]
        assert [(one.delta, one.logprobs[0].logprob) for one in deltas][1:] == [("Rain", -0.25), (".", 0.0)]


@BOTH
def test_anthropic_has_a_text_block_for_each_citation(statek_llm_server: LLMServer, *, stream: bool) -> None:
    sdk = pytest.importorskip("anthropic", reason="it comes with the dev extra")
    statek_llm_server.script([CITED])
    asked: Any = {"model": "m", "max_tokens": 2048, "messages": HELLO}
    with sdk.Anthropic(base_url=statek_llm_server.url, api_key="none", max_retries=0) as client:
        if stream:
            with client.messages.stream(**asked) as events:
                answer = events.get_final_message()
        else:
            answer = client.messages.create(**asked)
    assert "".join(block.text for block in answer.content) == SAID
    cited = [
        (block.text, [(one.type, one.url, one.title, one.cited_text) for one in block.citations or ()])
        for block in answer.content
    ]
    kind = "web_search_result_location"
    assert cited == [
        ("In Zürich it rains.", [(kind, "https://met.example/z", "Met", "Rain in Zürich.")]),
        (" ", []),
        ("Bring a coat.", [(kind, "https://coats.example", "", "Bring a coat.")]),
    ]


@BOTH
def test_gemini_has_grounding_and_logprobs(statek_llm_server: LLMServer, *, stream: bool) -> None:
    genai = pytest.importorskip("google.genai", reason="it comes with the dev extra")
    statek_llm_server.script([CITED.logprobs((SAID, -1.0)), SCORED])
    client = genai.Client(
        api_key="none", http_options=genai.types.HttpOptions(base_url=statek_llm_server.url)
    )
    asked: Any = {
        "model": "gemini-2.5-pro",
        "contents": "Hello?",
        "config": {"response_logprobs": True, "logprobs": 3},
    }
    answers: list[list[Any]] = []
    for _ in range(2):
        models = client.models
        answers.append(
            [*models.generate_content_stream(**asked)] if stream else [models.generate_content(**asked)]
        )
    grounding = answers[0][-1].candidates[0].grounding_metadata
    assert [(one.web.uri, one.web.title) for one in grounding.grounding_chunks] == [
        ("https://met.example/z", "Met"),
        ("https://coats.example", ""),
    ]
    said = SAID.encode()
    assert [
        (said[one.segment.start_index or 0 : one.segment.end_index].decode(), one.segment.text)
        for one in grounding.grounding_supports
    ] == [("In Zürich it rains.",) * 2, ("Bring a coat.",) * 2]
    results = [piece.candidates[0].logprobs_result for piece in answers[1]]
    chosen = [one for result in results for one in result.chosen_candidates]
    assert [(one.token, one.log_probability) for one in chosen] == [("Rain", -0.25), (".", 0.0)]
    top = [
        [one.token for one in place.candidates or ()] for result in results for place in result.top_candidates
    ]
    assert top == [["Rain", "Sun", "Snow"], []]


@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic", "gemini"])
def test_a_stream_joined_is_the_whole_answer(wire: Any) -> None:
    reply = (
        CITED
        if wire == "anthropic"
        else CITED.logprobs(("In Zürich it rains. ", -1.0), ("Bring a coat.", -2.0))
    )
    logprobs: dict[str, Any] = {
        "openai": openai(logprobs=True),
        "responses": {"model": "m", "input": "hi", "include": ["message.output_text.logprobs"]},
        "anthropic": anthropic(),
        "gemini": gemini(generationConfig={"responseLogprobs": True}),
    }
    target = {
        "openai": "/v1/chat/completions",
        "responses": RESPONSES,
        "anthropic": ANTHROPIC,
        "gemini": GEMINI,
    }[wire]
    streamed = GEMINI.replace("generateContent", "streamGenerateContent") + "?alt=sse"
    body = logprobs[wire]
    answer = whole(ask(FakeLLM([reply], count_usage=False), body, target))
    frames: Any = ask(
        FakeLLM([reply], count_usage=False),
        body if wire == "gemini" else {**body, "stream": True},
        streamed if wire == "gemini" else target,
    )
    joined = FORMATS[wire].join_stream(b"".join(frame.data for frame in frames.frames))
    assert FORMATS[wire].read_reply(joined).text == SAID
    assert json.loads(joined) == answer


@table_test(
    ("target", "body", "parameter"),
    [
        ("/v1/chat/completions", openai(), "(logprobs)"),
        (RESPONSES, {"model": "gpt-5", "input": "hi"}, "(include=['message.output_text.logprobs'])"),
        (GEMINI, gemini(), "(generationConfig.responseLogprobs)"),
    ],
)
def test_log_probabilities_that_nobody_asked_for_fail_the_test(
    target: str, body: Any, parameter: str
) -> None:
    status, said = error(ask(FakeLLM([SCORED]), body, target))
    assert status == 422
    assert f"reply 1 has log probabilities, but the request does not ask for them {parameter}" in said


def test_log_probabilities_that_the_script_lacks_fail_the_test() -> None:
    status, said = error(ask(FakeLLM([text("Sun."), SCORED]), openai(logprobs=True)))
    assert status == 422
    assert "reply 1 has none: write text('Sun.').logprobs((token, logprob), ...)" in said
    tolerant = FakeLLM([text("Sun."), SCORED], ignored=["logprobs"])
    assert "logprobs" not in whole(ask(tolerant, openai(logprobs=True)))["choices"][0]


def test_anthropic_has_no_log_probabilities() -> None:
    status, said = error(ask(FakeLLM([SCORED]), anthropic(), ANTHROPIC))
    assert (status, "Anthropic's format does not support log probabilities" in said) == (422, True)


def test_a_text_that_is_cut_keeps_what_is_left_of_its_tokens_and_citations() -> None:
    reply = CITED.logprobs(("In Zürich it rains.", -1.0), (" Bring a coat.", -2.0))
    answer = whole(ask(FakeLLM([reply]), openai(logprobs=True, stop=" Bring")))["choices"][0]
    assert [one["token"] for one in answer["logprobs"]["content"]] == ["In Zürich it rains."]
    assert [one["url_citation"]["url"] for one in answer["message"]["annotations"]] == [
        "https://met.example/z"
    ]


@table_test(
    ("make", "message"),
    [
        (lambda: CITED.citing("https://x.example", span="Snow"), "citing(span='Snow'): expected a part of the text"),
        (lambda: CITED.citing("https://x.example", span="rains. Bring"), "overlaps the span 'In Zürich it rains.'"),
        (lambda: fault(429).citing("https://x.example"), "citing() requires a reply with text"),
        (lambda: code("x").citing("https://x.example"), "citing() requires a reply with text"),
        (lambda: refusal("No.").logprobs(("No.", 0.0)), "logprobs() requires a reply with text"),
        (lambda: text("Rain.").logprobs(("Rain", -1.0)), "expected the tokens of 'Rain.', got ['Rain']"),
        (lambda: text("R").logprobs(("R", 0.5)), "the log probability of 'R' is 0.5, expected 0 or less"),
        (lambda: text("R").logprobs(("R", -1.0, {"S": 2.0})), "the log probability of 'S' is 2.0"),
    ],
)  # fmt: skip
def test_what_no_answer_could_have_is_refused(make: Any, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        make()
    assert message in str(caught.value)
