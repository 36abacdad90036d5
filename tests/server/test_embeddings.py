"""Embeddings and counts of tokens: OpenAI's, Anthropic's and Google's own SDKs, scripts, faults, cassettes."""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim.backends.serving import load_playable
from statek_sim.cassettes.session import CassetteSession, RecordMode
from statek_sim.cassettes.tap import tapped
from statek_sim.errors import BadInput, UnmatchedRequest, UnusedReplies
from statek_sim.providers.script import embedding, text
from statek_sim.server.embedding import vector_of
from statek_sim.server.exchange import Whole
from statek_sim.server.fault import EmptyChoices, FaultRule, HttpError, NoUsage, NullUsage
from statek_sim.server.llm import FakeLLM
from statek_sim.server.llm_server import LLMServer
from statek_sim.usage.vocabularies import load_encoding
from tests.says import line_with, says
from tests.server.asking import ANTHROPIC, anthropic, ask, error, gemini, openai, whole
from tests.tables import table_test

if TYPE_CHECKING:
    from openai import OpenAI

TARGET = "/v1/embeddings"
SMALL = "text-embedding-3-small"
COUNT = f"{ANTHROPIC}/count_tokens"
GEMINI_COUNT = "/v1beta/models/gemini-2.5-pro:countTokens"


@pytest.fixture
def client(statek_llm_server: LLMServer) -> Iterator[OpenAI]:
    sdk = pytest.importorskip("openai", reason="it comes with the dev extra")
    with sdk.OpenAI(base_url=statek_llm_server.openai_url, api_key="none", max_retries=0, timeout=60) as made:
        yield made


def asked(given: object, **options: Any) -> dict[str, Any]:
    return {"model": SMALL, "input": given, **options}


def vectors(body: Any) -> list[list[float]]:
    return [item["embedding"] for item in body["data"]]


def nearness(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_a_vector_depends_on_its_text_alone() -> None:
    first = vectors(whole(ask(FakeLLM(), asked(["a cat", "a dog", "a cat"]), TARGET)))
    again = vectors(whole(ask(FakeLLM(), asked("a cat"), TARGET)))
    assert (first[0], first[0]) == (again[0], first[2])
    assert first[0] != first[1]
    assert len(first[0]) == 1536
    # Written down: the same on every machine.
    assert vector_of("a cat", SMALL, 4) == (
        -0.514749133907976,
        0.38525249644685,
        -0.25575585898572395,
        0.7219437538457777,
    )


@given(said=st.text(max_size=200), size=st.none() | st.integers(1, 64))
def test_a_vector_has_the_size_that_is_wanted_and_length_1(said: str, size: int | None) -> None:
    vector = vector_of(said, SMALL, size)
    assert len(vector) == (size or 1536)
    assert math.isclose(nearness(vector, vector), 1.0, rel_tol=1e-9)


def test_base64_is_32_bit_floats() -> None:
    body = whole(ask(FakeLLM(), asked("a cat", dimensions=8, encoding_format="base64"), TARGET))
    packed = base64.b64decode(body["data"][0]["embedding"])
    assert struct.unpack("<8f", packed) == pytest.approx(vector_of("a cat", SMALL, 8), abs=1e-6)


def test_tokens_are_the_text_that_they_say() -> None:
    tokens = load_encoding("cl100k_base").encode_ordinary("a cat")
    said = vectors(whole(ask(FakeLLM(), asked(tokens), TARGET)))
    assert said == vectors(whole(ask(FakeLLM(), asked([tokens]), TARGET)))
    assert said == vectors(whole(ask(FakeLLM(), asked("a cat"), TARGET)))


@table_test(
    ("body", "facts"),
    [
        (asked(""), "text; 1; empty"),
        (asked([]), "input: ; string; list; 1 to 2048; got []"),
        (asked(["a"] * 2049), "input: ; string; list; 1 to 2048"),
        (asked([["x"]]), "input:; strings; lists; cl100k_base; tokens"),
        (asked([10**9]), "input: ; strings; lists; cl100k_base tokens; got ["),
        (asked([-1]), "input: ; strings; lists; cl100k_base tokens; got ["),
        (asked("a", dimensions=0), "dimensions: ; 1 or more; got 0"),
        (asked("a", dimensions=10**6), "dimensions: ; at most 8192; got 1000000"),
        (asked("a", dimensions=2.5), "dimensions: ; whole number; got 2.5"),
        (asked("a", encoding_format="hex"), "encoding_format: ; 'float'; 'base64'; got \"hex\""),
        (asked("a", nonsense=1), "Unsupported; `nonsense`"),
        ({"input": "a"}, "model: ; expected a string; got nothing"),
    ],
)
def test_what_cannot_be_embedded_is_a_bad_request(body: Any, facts: str) -> None:
    status, said = error(ask(FakeLLM(), body, TARGET))
    assert status == 400
    assert says(said, *facts.split("; "))


def test_openai_s_sdk_reads_vectors_and_usage(statek_llm_server: LLMServer, client: OpenAI) -> None:
    statek_llm_server.script([])
    answer = client.embeddings.create(model=SMALL, input=["a cat", "a dog"], dimensions=16)
    assert answer.data[1].embedding == pytest.approx(vector_of("a dog", SMALL, 16), abs=1e-6)
    assert (answer.usage.prompt_tokens, answer.model) == (4, SMALL)
    assert [request.line() for request in statek_llm_server.requests] == [
        "1. /v1/embeddings -> 200: computed from the request"
    ]


def test_a_script_says_the_vectors_of_texts_and_they_must_be_asked_for(
    statek_llm_server: LLMServer, client: OpenAI
) -> None:
    statek_llm_server.script([embedding(1, 0).on("a cat"), embedding(0, 1).on("a dog").forever()])
    answer = client.embeddings.create(model=SMALL, input=["a dog", "a cat", "a dog"])
    assert [item.embedding for item in answer.data] == [[0, 1], [1, 0], [0, 1]]
    llm = FakeLLM([embedding(1, 0).on("a cat")])
    with pytest.raises(UnusedReplies, match=line_with("embedding of 2 numbers", "last message", "'a cat'")):
        llm.check_finished()


def test_a_chat_gets_no_embedding_and_a_vector_has_its_own_size() -> None:
    llm = FakeLLM([embedding(1, 0).on("a cat"), text("x")])
    assert whole(ask(llm, openai("a cat")))["choices"][0]["message"]["content"] == "x"
    status, said = error(ask(llm, asked("a cat", dimensions=3), TARGET))
    assert (status, says(said, "reply 1", "2 dimensions", "asks for 3")) == (500, True)
    with pytest.raises(BadInput, match="finite numbers"):
        embedding(float("nan"))


def test_faults_strike_embeddings_and_counts_as_they_strike_chats() -> None:
    rules = [
        FaultRule(fault=HttpError(503), positions=(1,)),
        FaultRule(fault=NullUsage(), positions=(2,)),
        FaultRule(fault=NoUsage(), positions=(3,)),
        FaultRule(fault=EmptyChoices(), positions=(3,)),
        FaultRule(fault=HttpError(529), positions=(4,)),
    ]
    llm = FakeLLM([], faults=rules)
    counted = anthropic("x")
    del counted["max_tokens"]
    assert error(ask(llm, asked("a"), TARGET))[0] == 503
    assert whole(ask(llm, asked("a"), TARGET))["usage"] is None
    assert whole(ask(llm, asked("a"), TARGET)) == {"object": "list", "data": [], "model": SMALL}
    assert json.loads(ask(llm, counted, COUNT).body)["error"]["type"] == "overloaded_error"  # type: ignore[union-attr]
    llm.check_finished()


def test_a_script_file_has_vectors_and_ignored_parameters(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(
        "script: {gpt-4o: [{text: hi}]}\nembeddings: {a cat: [1, 0.5]}\nignored: [logprobs]\n",
        encoding="utf-8",
    )
    playable = load_playable(path)
    llm = FakeLLM(playable.script, ignored=playable.ignored)
    assert vectors(whole(ask(llm, asked(["a cat", "a cat"]), TARGET))) == [[1, 0.5], [1, 0.5]]
    whole(ask(llm, openai(logprobs=True)))
    llm.check_finished()


def test_vectors_of_a_script_by_agent_are_everybody_s(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text("script: {worker: [{text: hi}]}\nembeddings: {a cat: [1, 0.5]}\n", encoding="utf-8")
    llm = FakeLLM(load_playable(path).script)
    assert vectors(whole(ask(llm, asked("a cat"), TARGET, x_statek_agent="worker"))) == [[1, 0.5]]


def test_google_s_sdk_embeds_and_counts(statek_llm_server: LLMServer) -> None:
    genai = pytest.importorskip("google.genai", reason="it comes with the dev extra")
    options = genai.types.HttpOptions(base_url=statek_llm_server.url, timeout=60_000)
    statek_llm_server.script([embedding(1, 0).on("scripted")])
    with genai.Client(api_key="none", http_options=options) as client:
        model = "gemini-embedding-001"
        found = client.models.embed_content(model=model, contents=["a cat", "a dog"]).embeddings
        assert [tuple(item.values) for item in found] == [
            vector_of(said, model, 3072) for said in ("a cat", "a dog")
        ]
        config = {"output_dimensionality": 8, "task_type": "RETRIEVAL_QUERY"}
        small = client.models.embed_content(model=model, contents="a cat", config=config).embeddings
        assert len(small[0].values) == 8
        assert client.models.embed_content(model=model, contents="scripted").embeddings[0].values == [1, 0]
        assert client.models.count_tokens(model="gemini-2.5-pro", contents="Hello there").total_tokens == 9


def test_one_content_is_embedded_by_itself_too() -> None:
    body = {
        "model": "models/m",
        "content": {"parts": [{"text": "a"}, {"text": "cat"}]},
        "outputDimensionality": 4,
    }
    answer = whole(ask(FakeLLM(), body, "/v1beta/models/m:embedContent"))
    assert tuple(answer["embedding"]["values"]) == vector_of("a\ncat", "m", 4)


EMBEDDED: dict[str, Any] = {"content": {"parts": [{"text": "a cat"}]}, "outputDimensionality": 2}


@table_test(
    ("changed", "said"),
    [
        (
            {"content": {"parts": [{"text": "a"}, {"text": 5}]}},
            "content.parts[1].text: expected a string, got '5'",
        ),
        ({"content": {"parts": [{"text": "a"}, None]}}, "content.parts[1]: expected an object, got None"),
        ({"content": {"parts": [[[]]]}}, "content.parts[0]: expected an object, got [[]]"),
        (
            {"content": {"parts": [{"text": "a"}, {"type": 1}]}},
            "content.parts[1]: expected a member such as text",
        ),
        ({"content": 5}, "content: expected an object, got 5"),
        ({"model": 5}, "model: expected a string, got 5"),
        ({"embedContentConfig": 5}, "embedContentConfig: expected an object, got 5"),
        ({"nonsense": 1}, "nonsense`: remove it"),
    ],
)
def test_what_google_does_not_embed_is_refused_alone_and_in_a_batch(changed: Any, said: str) -> None:
    request = {**EMBEDDED, **changed}
    for target, body in (("embedContent", request), ("batchEmbedContents", {"requests": [request]})):
        status, message = error(ask(FakeLLM(), body, f"/v1beta/models/m:{target}"))
        assert (status, said in message) == (400, True), message


def test_what_stands_around_a_batch_is_not_passed_over() -> None:
    target, body = "/v1beta/models/m:batchEmbedContents", {"requests": [EMBEDDED], "model": "models/m"}
    whole(ask(FakeLLM(), body, target))
    status, message = error(ask(FakeLLM(), {**body, "nonsense": 1}, target))
    assert (status, message.partition(":")[0]) == (400, "Unsupported parameter `nonsense`")
    whole(ask(FakeLLM(ignored=["nonsense"]), {**body, "nonsense": 1}, target))


def test_anthropic_s_sdk_counts_what_the_answer_will_report(statek_llm_server: LLMServer) -> None:
    sdk = pytest.importorskip("anthropic", reason="it comes with the dev extra")
    statek_llm_server.script([text("Hello.")])
    messages: Any = [{"role": "user", "content": "Hello?"}]
    tools: Any = [
        {"name": "look", "description": "Look.", "input_schema": {"type": "object", "properties": {}}}
    ]
    with closing(sdk.Anthropic(base_url=statek_llm_server.url, api_key="none", max_retries=0)) as client:
        counted = client.messages.count_tokens(
            model="claude-x", system="Be nice.", messages=messages, tools=tools
        )
        answer = client.messages.create(
            model="claude-x", max_tokens=50, system="Be nice.", messages=messages, tools=tools
        )
    assert counted.input_tokens == answer.usage.input_tokens > 20


def test_each_api_counts_in_its_own_words() -> None:
    llm = FakeLLM()
    said = anthropic("Hello there")
    del said["max_tokens"]
    assert whole(ask(llm, said, COUNT)) == {"input_tokens": 9}
    assert whole(ask(llm, gemini("Hello there"), GEMINI_COUNT)) == {"totalTokens": 9}
    whole_request = {"generateContentRequest": {"model": "models/m", **gemini("Hello there")}}
    assert whole(ask(llm, whole_request, GEMINI_COUNT)) == {"totalTokens": 9}
    asked_first = {"model": "gpt-4o", "input": "Hello there"}
    counted = whole(ask(llm, asked_first, "/v1/responses/input_tokens"))
    assert counted == {"object": "response.input_tokens", "input_tokens": 9}
    llm.check_finished()


def test_what_a_cassette_recorded_is_played_and_nothing_else(
    statek_llm_server: LLMServer, client: OpenAI, tmp_path: Path
) -> None:
    path = tmp_path / "recorded.yaml"
    statek_llm_server.script([embedding(0.25, 0.5).on("a cat"), embedding(0.125, 1).on("a dog")])
    with tapped(session := CassetteSession(path, RecordMode.REWRITE)):
        client.embeddings.create(model=SMALL, input=["a cat", "a dog"])
        client.responses.input_tokens.count(model="gpt-4o", input="Hello there")
    session.close()
    statek_llm_server.script(load_playable(path).script)
    llm = statek_llm_server.llm
    found = client.embeddings.create(model=SMALL, input=["a cat", "a dog"])
    assert [item.embedding for item in found.data] == [[0.25, 0.5], [0.125, 1]]
    counting = {"model": "gpt-4o", "input": "Hello there"}
    assert whole(ask(llm, counting, "/v1/responses/input_tokens"))["input_tokens"] == 9
    answer = ask(llm, counting, "/v1/responses/input_tokens")
    assert isinstance(answer, Whole)
    assert answer.status == 422
    with pytest.raises(UnmatchedRequest, match="needs another reply"):
        llm.check_finished()
    llm.play([])
