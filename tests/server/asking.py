"""Requests as clients write them, for tests of the fake server that need no client."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from statek_sim.server import parsed_request as known
from statek_sim.server.exchange import Answer, Incoming, Streamed, Whole
from statek_sim.server.llm import FakeLLM

OPENAI = "/v1/chat/completions"
ANTHROPIC = "/v1/messages"
GEMINI = "/v1beta/models/gemini-2.5-pro:generateContent"
GEMINI_STREAM = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"


def openai(message: object = "hi", **options: Any) -> dict[str, Any]:
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": message}], **options}


def anthropic(message: object = "hi", **options: Any) -> dict[str, Any]:
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": message}],
        **options,
    }


def gemini(message: object = "hi", **options: Any) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [{"text": message}]}], **options}


LOOK: Final[Any] = {"type": "object", "properties": {"where": {"type": "string"}}}
OPENAI_TOOLS: Final[Any] = [{"type": "function", "function": {"name": "look", "parameters": LOOK}}]
RESPONSES_TOOLS: Final[Any] = [{"type": "function", "name": "look", "parameters": LOOK}]
ANTHROPIC_TOOLS: Final[Any] = [{"name": "look", "input_schema": LOOK}]
GEMINI_TOOLS: Final[Any] = [{"functionDeclarations": [{"name": "look", "parameters": LOOK}]}]
"""`look(where)` in the words of each format: a scripted call has to be offered."""


def ask(llm: FakeLLM, body: object, target: str = OPENAI, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return llm.answer(Incoming("POST", target, named, json.dumps(body).encode()))


def whole(answer: Answer) -> Any:
    """Return the JSON of an answer that must be whole and good."""
    assert isinstance(answer, Whole)
    assert answer.status == 200, answer.body
    return json.loads(answer.body)


def streamed(answer: Answer) -> bytes:
    """Return the bytes of an answer that must be a stream."""
    assert isinstance(answer, Streamed)
    return b"".join(frame.data for frame in answer.frames)


def error(answer: Answer) -> tuple[int, str]:
    """Return status and message of an error in OpenAI's shape."""
    assert isinstance(answer, Whole)
    return answer.status, json.loads(answer.body)["error"]["message"]


def counted_lengths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the lengths of the texts that are counted from now on, for any model, as a list that grows."""
    lengths: list[int] = []

    class Counting:
        def count(self, text: str) -> int:
            lengths.append(len(text))
            return len(text) // 4

    monkeypatch.setattr(known, "model_tokenizer", lambda model: Counting())
    return lengths
