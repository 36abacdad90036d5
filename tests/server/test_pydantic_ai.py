"""An agent framework that nobody here wrote, on two SDKs, against the fake server."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from statek_sim.providers.script import text, tool_call
from statek_sim.server.llm_server import LLMServer

pydantic_ai = pytest.importorskip("pydantic_ai", reason="it comes with the dev extra")


def openai_model(server: LLMServer, http: httpx2.AsyncClient) -> Any:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=server.openai_url, api_key="none", http_client=http)
    return OpenAIChatModel("gpt-4o", provider=provider)


def anthropic_model(server: LLMServer, http: httpx2.AsyncClient) -> Any:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(base_url=server.url, api_key="none", http_client=http)
    return AnthropicModel("claude-test", provider=AnthropicProvider(anthropic_client=client))


@pytest.mark.parametrize("make_model", [openai_model, anthropic_model])
def test_an_agent_uses_its_tool_and_answers(statek_llm_server: LLMServer, make_model: Any) -> None:
    looked: list[str] = []

    def look(where: str) -> str:
        """Look somewhere."""
        looked.append(where)
        return "empty"

    async def ask() -> Any:
        # A client of its own, closed in the loop that it was used in: `run_sync` leaves its connections open.
        async with httpx2.AsyncClient() as http:
            agent: Any = pydantic_ai.Agent(make_model(statek_llm_server, http), tools=[look])
            return await agent.run("Look.")

    statek_llm_server.script([tool_call("look", where="here"), text("Nothing.").on(tool_result="empty")])
    result = asyncio.run(ask())
    assert (result.output, looked) == ("Nothing.", ["here"])
    assert result.usage.requests == 2
