"""A plain callable is a model."""

from __future__ import annotations

import pytest

from statek_sim.errors import ProviderHTTPError
from statek_sim.providers.contract import example_requests
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import Reply, fault, text
from statek_sim.providers.scripted import FunctionLLM
from statek_sim.providers.wire.openai import read_reply


def test_a_string_is_code_in_the_agents_chat_style() -> None:
    llm = FunctionLLM(lambda request: f"print({request.turn})", styles="MARKDOWN")
    bodies = [llm.complete(request).body for request in example_requests(turns=2)]
    assert [read_reply(body).text for body in bodies] == [
        "```python\nprint(1)\n```",
        "```python\nprint(2)\n```",
    ]


def test_a_reply_may_be_a_fault() -> None:
    def model(request: ChatRequest) -> Reply:
        return fault(500) if request.attempt == 1 else text("ok")

    with pytest.raises(ProviderHTTPError, match="500 Internal Server Error"):
        FunctionLLM(model).complete(example_requests()[0])


def test_requests_are_recorded_in_order() -> None:
    llm = FunctionLLM(lambda _: b"{}")
    for request in example_requests(turns=3):
        llm.complete(request)
    assert [request.turn for request in llm.requests] == [1, 2, 3]


def test_what_the_function_raises_reaches_the_caller() -> None:
    def model(request: ChatRequest) -> str:
        raise LookupError(request.job_id)

    with pytest.raises(LookupError, match=r"^'main'$|^main$"):
        FunctionLLM(model).complete(example_requests()[0])
