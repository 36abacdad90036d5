"""A weather assistant with the Claude Agent SDK: an in-process tool, and a second agent for questions."""

from collections.abc import AsyncIterator
from typing import Any

from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    ResultMessage,
    StreamEvent,
    create_sdk_mcp_server,
    query,
    tool,
)

FORECAST = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
}


@tool("get_weather", "Return the weather of a city.", {"city": str})
async def get_weather(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the weather of a city."""
    return {"content": [{"type": "text", "text": f"rain in {arguments['city']}, 9 degrees"}]}


def options(**more: Any) -> ClaudeAgentOptions:
    """Return the agent's settings."""
    geographer = AgentDefinition(description="Knows about places.", prompt="You know about places.")
    return ClaudeAgentOptions(
        model="claude-sonnet-4-6",
        system_prompt="You know about the weather.",
        mcp_servers={"weather": create_sdk_mcp_server("weather", tools=[get_weather])},
        tools=["Agent"],
        allowed_tools=["mcp__weather__get_weather", "Agent"],
        agents={"geographer": geographer},
        setting_sources=[],
        env={"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"},
        **more,
    )


async def answer(question: str) -> str:
    """Answer a question about the weather."""
    return (await _result(question, options())).result or ""


async def forecast(question: str) -> Any:
    """Answer with a forecast."""
    wanted = options(output_format={"type": "json_schema", "schema": FORECAST})
    return (await _result(question, wanted)).structured_output


async def stream(question: str) -> AsyncIterator[str]:
    """Answer piece by piece."""
    async for message in query(prompt=question, options=options(include_partial_messages=True)):
        if isinstance(message, StreamEvent) and message.event.get("type") == "content_block_delta":
            yield message.event["delta"].get("text", "")


async def _result(question: str, settings: ClaudeAgentOptions) -> ResultMessage:
    found: ResultMessage | None = None
    async for message in query(prompt=question, options=settings):
        if isinstance(message, ResultMessage):
            found = message
    assert found is not None
    return found
