"""The fake LLM as an ASGI application, driven as the ASGI specification says a server drives one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

import pytest

from statek_sim.providers.script import text, timeout
from statek_sim.server.asgi import ConnectionResetOnCommand, asgi_app
from statek_sim.server.exchange import Limits
from statek_sim.server.fault import FaultRule, Reset, SlowTokens
from statek_sim.server.llm import FakeLLM
from tests.server.asking import OPENAI, openai

Messages = list[MutableMapping[str, Any]]


def scope(method: str = "POST", path: str = OPENAI) -> dict[str, Any]:
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }


def drive(llm: FakeLLM, body: bytes, *, pieces: int = 1, limits: Limits | None = None) -> Messages:
    """Return what the application sends for one request, whose body comes in so many pieces."""
    app = asgi_app(llm.begin, limits=limits or Limits())
    size = -(-len(body) // pieces) or 1
    parts = [body[at : at + size] for at in range(0, len(body), size)] or [b""]
    incoming: Messages = [
        {"type": "http.request", "body": part, "more_body": number < len(parts)}
        for number, part in enumerate(parts, 1)
    ]
    incoming.append({"type": "http.disconnect"})
    sent: Messages = []

    async def receive() -> MutableMapping[str, Any]:
        return incoming.pop(0)

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope(), receive, send))
    return sent


def test_an_answer_is_a_start_and_a_body_with_its_length() -> None:
    start, body = drive(FakeLLM([text("Hello.")]), json.dumps(openai()).encode(), pieces=3)
    assert start["status"] == 200
    assert dict(start["headers"])[b"content-length"] == str(len(body["body"])).encode()
    assert json.loads(body["body"])["choices"][0]["message"]["content"] == "Hello."
    assert not body["more_body"]


def test_a_stream_is_a_body_per_event() -> None:
    start, *bodies = drive(FakeLLM([text("Hello there.")]), json.dumps(openai(stream=True)).encode())
    assert dict(start["headers"])[b"content-type"] == b"text/event-stream; charset=utf-8"
    assert [message["more_body"] for message in bodies] == [True] * (len(bodies) - 1) + [False]
    assert bodies[-2]["body"] == b"data: [DONE]\n\n"


def test_a_large_request_is_read_in_a_thread_here_too() -> None:
    start, body = drive(FakeLLM([text("Hello.")]), json.dumps(openai("word " * 60_000)).encode(), pieces=3)
    assert start["status"] == 200
    assert json.loads(body["body"])["choices"][0]["message"]["content"] == "Hello."


def test_a_body_over_the_limit_is_refused() -> None:
    start, _ = drive(FakeLLM([text("x")]), b"a" * 101, pieces=3, limits=Limits(body=100))
    assert start["status"] == 413


def test_silence_waits_for_the_client_to_leave() -> None:
    assert drive(FakeLLM([timeout()]), json.dumps(openai()).encode()) == []


def test_a_reset_breaks_out_of_the_application_after_the_events_before_it() -> None:
    llm = FakeLLM()
    faults = [FaultRule(fault=Reset(after=2), rate=1), FaultRule(fault=SlowTokens(0.001), rate=1)]
    llm.play([text("Hello there.")], faults=faults)
    with pytest.raises(ConnectionResetOnCommand, match=r"^the script resets this connection here$"):
        drive(llm, json.dumps(openai(stream=True)).encode())


def test_the_lifespan_is_followed_to_its_end() -> None:
    app = asgi_app(FakeLLM().answer)
    incoming: Messages = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent: Messages = []

    async def receive() -> MutableMapping[str, Any]:
        return incoming.pop(0)

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app({"type": "lifespan"}, receive, send))
    assert [message["type"] for message in sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
