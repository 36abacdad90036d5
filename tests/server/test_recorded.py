"""Recordings played by the server: the same bytes, in the same pieces, at the recorded times."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from statek_sim.backends.serving import load_playable
from statek_sim.cassettes.exchange import Chunk, Exchange, Request, Response
from statek_sim.cassettes.store import write
from statek_sim.providers.contract import example_requests
from statek_sim.providers.delivery import deliver, manner
from statek_sim.providers.script import raw_stream
from statek_sim.server.exchange import Streamed
from statek_sim.server.llm import FakeLLM
from statek_sim.server.recorded import replies_of
from statek_sim.server.rendering import Pacing
from tests.server.asking import ask, openai, streamed, whole

EVENTS = (
    b'data: {"id":"c","model":"gpt-4o","choices":[{"index":0,"delta":{"role":"assistant","content":"He"}}]}\n\n',
    b'data: {"id":"c","model":"gpt-4o","choices":[{"index":0,"delta":{"content":"llo"},"finish_reason":"stop"}]}\n\n',
    b"data: [DONE]\n\n",
)
TIMES = (0.5, 0.75, 2.0)


def recorded(body: Any, response: Response) -> Exchange:
    uri = "https://api.openai.com/v1/chat/completions"
    return Exchange(
        request=Request(method="POST", uri=uri, body=json.dumps(body).encode()), response=response
    )


def stream(*, timed: bool = True) -> Response:
    chunks = tuple(Chunk(at, len(event)) for at, event in zip(TIMES, EVENTS, strict=True)) if timed else ()
    headers = (("content-type", "text/event-stream"),)
    return Response(status=200, headers=headers, body=b"".join(EVENTS), chunks=chunks)


def test_a_recorded_stream_comes_in_its_pieces_at_its_times() -> None:
    script = replies_of([recorded(openai("hi", stream=True), stream())])
    answer = ask(FakeLLM(script, pacing=Pacing(speed=1.0)), openai("hi", stream=True))
    assert isinstance(answer, Streamed)
    assert answer.frames == ((0.5, EVENTS[0]), (0.25, EVENTS[1]), (1.25, EVENTS[2]))


def test_in_virtual_time_it_takes_none_and_the_journal_says_what_it_would_take() -> None:
    llm = FakeLLM(replies_of([recorded(openai("hi", stream=True), stream())]))
    answer = ask(llm, openai("hi", stream=True))
    assert isinstance(answer, Streamed)
    assert [frame.delay for frame in answer.frames] == [0.0, 0.0, 0.0]
    assert llm.journal.entries()[0].latency == 2.0


def test_without_timing_the_stream_is_one_piece() -> None:
    llm = FakeLLM(replies_of([recorded(openai("hi", stream=True), stream(timed=False))]))
    assert streamed(ask(llm, openai("hi", stream=True))) == b"".join(EVENTS)


def test_a_client_that_wants_one_piece_gets_what_the_stream_adds_up_to() -> None:
    llm = FakeLLM(replies_of([recorded(openai("hi", stream=True), stream())]))
    assert whole(ask(llm, openai("hi")))["choices"][0]["message"]["content"] == "Hello"


def test_the_scripted_provider_takes_a_stream_too() -> None:
    request = example_requests()[0]
    reply = deliver(raw_stream(zip(TIMES, EVENTS, strict=True)), request, manner(None, None))
    assert json.loads(reply.body)["choices"][0]["message"]["content"] == "Hello"
    assert reply.latency == sum(TIMES)


def test_a_cassette_is_served_by_model_and_last_message(tmp_path: Path) -> None:
    good = Response(status=200, headers=(("content-type", "application/json"),), body=b'{"choices": []}')
    limited = Response(status=429, headers=(("retry-after", "2"),), body=b"{}")
    elsewhere = Exchange(request=Request(method="GET", uri="https://api.openai.com/v1/models"), response=good)
    path = tmp_path / "conversation.yaml"
    write(path, [elsewhere, recorded(openai("one"), good), recorded(openai("two", model="o3"), limited)])
    playable = load_playable(path)
    assert playable.models == ("gpt-4o", "o3")
    llm = FakeLLM(playable.script, models=playable.models)
    refused = ask(llm, openai("two", model="o3"))
    assert not isinstance(refused, Streamed)
    assert whole(ask(llm, openai("one"))) == {"choices": []}
    llm.check_finished()


@pytest.mark.parametrize("body", [b"", b"not json", b'{"model": 1}'])
def test_a_recorded_request_that_is_no_chat_request_is_left_out(body: bytes) -> None:
    request = Request(method="POST", uri="https://api.openai.com/v1/chat/completions", body=body)
    assert replies_of([Exchange(request=request, response=stream())]) == []


def test_a_body_that_vcrpy_kept_compressed_is_played() -> None:
    headers = (("content-type", "application/json"), ("content-encoding", "gzip"))
    body = b'{"choices": [{"message": {"role": "assistant", "content": "Paris"}}]}'
    one = recorded(openai("hi"), Response(status=200, headers=headers, body=gzip.compress(body)))
    assert whole(ask(FakeLLM(replies_of([one])), openai("hi"))) == json.loads(body)
