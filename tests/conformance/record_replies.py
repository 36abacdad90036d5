"""Record what the real package reads: `INTERPRETER -m tests.conformance.record_replies`, with one that has it."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
from typing import Any

import httpx
from statek.llm_api import ClaudeAI_API, DefaultLLM_API_Impl, VertexAI_API
from statek.settings import LLM_API_Settings

from tests.conformance.replies import BODIES, Read, path_of

_ADAPTERS: Any = {"openai": DefaultLLM_API_Impl, "anthropic": ClaudeAI_API, "gemini": VertexAI_API}
_client = httpx.AsyncClient


def main() -> None:
    """Write the record of the release that runs this."""
    read = {
        name: {body: asyncio.run(_read(_ADAPTERS[name], body)) for body in bodies}
        for name, bodies in BODIES.items()
    }
    path = path_of(importlib.metadata.version("statek"))
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(read, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


async def _read(adapter: Any, body: str) -> Read:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=body.encode(), request=request)

    transport = httpx.MockTransport(answer)
    httpx.AsyncClient = lambda **options: _client(**{**options, "transport": transport})  # type: ignore[misc,assignment]
    api = adapter(LLM_API_Settings(api_url="https://llm.invalid/v1", api_key="none"))
    try:
        response = await api._process_request(model="m", metadata={"PROVIDER": "P"})
    except Exception as error:  # noqa: BLE001  # whatever STATEK raises is what is recorded
        return {"error": type(error).__name__, "text": str(error)}
    step, stats = response.step_data, response.stats
    return {
        "text": step.text,
        "calls": [[call.id, call.name, call.kwargs] for call in step.call_requests or ()],
        "usage": [stats.input_tokens, stats.output_tokens, stats.cached_tokens, stats.cost],
        "reasoning": _reasoning(step.reasoning_payload),
    }


def _reasoning(payload: Any) -> Any:
    if payload is None:
        return None
    return payload.get("fields") or payload.get("content") or payload.get("parts")


if __name__ == "__main__":
    main()
