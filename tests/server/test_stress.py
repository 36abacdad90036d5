"""Crowds of clients, bounded in number and time; `python -m bench.server_stress` runs the same with more of them."""

from __future__ import annotations

import gc
import json
import socket
import tracemalloc

import httpx
import pytest

from bench.server_stress import (
    Outcome,
    given_back,
    pipelined,
    slow_clients,
    stops,
    struck_clients,
)
from statek_sim.providers.script import text
from statek_sim.server import journal
from statek_sim.server.exchange import ESTIMATED, Incoming, Whole
from statek_sim.server.llm import FakeLLM
from statek_sim.server.llm_server import LLMServer
from statek_sim.server.parsed_request import LARGEST_COUNTED
from tests.server.asking import OPENAI, ask, error, openai, whole
from tests.tables import table_test


def held(outcome: Outcome) -> None:
    assert outcome.held, str(outcome)


def test_pipelined_requests_beyond_the_limit_of_a_head_are_all_answered_in_order() -> None:
    held(pipelined(2000))


def test_slow_clients_at_once_all_get_their_stream() -> None:
    held(slow_clients(60))


def test_clients_that_faults_strike_leave_the_others_alone() -> None:
    held(struck_clients(60))


def test_a_server_that_is_asked_stops_in_time() -> None:
    held(stops(4, clients=4))


def test_what_clients_that_left_had_sent_is_given_back() -> None:
    held(given_back(8, 4_000_000))


def test_tokens_of_a_large_request_are_estimated_and_the_answer_says_so() -> None:
    llm = FakeLLM([text("x").forever()])
    words = "several words and more of them "
    exact = whole(ask(llm, openai(words * 8_000)))["usage"]["prompt_tokens"]
    answer = ask(llm, openai(words * 80_000))
    estimated = whole(answer)["usage"]["prompt_tokens"]
    assert isinstance(answer, Whole)
    assert answer.headers == ESTIMATED
    assert len(words) * 8_000 < LARGEST_COUNTED
    assert exact < estimated <= len(words) * 80_000 // 4 + 10
    assert whole(ask(FakeLLM([text("x")]), openai(words * 80_000)))["usage"]["prompt_tokens"] == estimated


@table_test(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"messages":' + b"[" * 300 + b"]" * 300 + b"}",
    ],
)
def test_a_body_nested_deep_is_a_bad_request_and_the_journal_stays_readable(body: bytes) -> None:
    llm = FakeLLM([text("x")])
    assert error(llm.answer(Incoming("POST", OPENAI, {}, body)))[0] == 400
    page = llm.answer(Incoming("GET", "/statek/journal", {}, b""))
    assert isinstance(page, Whole)
    (entry,) = json.loads(page.body)
    assert entry["status"] == 400
    assert len(entry["body"]) < 11_000


def test_http_1_0_gets_a_large_request_answered_in_one_piece(statek_llm_server: LLMServer) -> None:
    statek_llm_server.script([text("Hello there.")])
    body = json.dumps(openai("word " * 60_000, stream=True)).encode()
    host, _, port = statek_llm_server.url.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(
            b"POST %s HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % (OPENAI.encode(), len(body)) + body
        )
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    assert b"transfer-encoding" not in received
    assert received.endswith(b"data: [DONE]\n\n")


def test_brackets_in_a_text_are_no_nesting() -> None:
    assert whole(ask(FakeLLM([text("x")]), openai("[{" * 50_000)))


def test_the_memory_of_large_bodies_that_are_refused_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "KEPT_BYTES", 3_000_000)
    body = json.dumps(openai("x" * 2_000_000, nonsense=1))
    with LLMServer() as server:
        server.llm.play([text("x")])
        tracemalloc.start()
        try:
            for _ in range(8):
                answer = httpx.post(f"{server.openai_url}/chat/completions", content=body)
                assert answer.status_code == 400
            gc.collect()
            assert tracemalloc.get_traced_memory()[0] < 3 * len(body)
        finally:
            tracemalloc.stop()
