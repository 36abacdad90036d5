"""A weather assistant in pydantic-ai: an agent with a tool, and a second agent that it asks for facts."""

from collections.abc import AsyncIterator

from pydantic import BaseModel
from pydantic_ai import Agent

desk = Agent("openai-chat:gpt-4o", defer_model_check=True, retries=2)
geographer = Agent("openai-chat:gpt-4o", defer_model_check=True, instructions="You know about places.")


class Forecast(BaseModel):
    """A forecast for one city."""

    city: str
    degrees: int


@desk.tool_plain
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"rain in {city}, 9 degrees"


@desk.tool_plain
async def ask_geographer(question: str) -> str:
    """Ask the agent that knows about places."""
    return (await geographer.run(question)).output


def answer(question: str) -> str:
    """Answer a question about the weather."""
    return desk.run_sync(question).output


def forecast(question: str) -> Forecast:
    """Answer with a forecast."""
    return desk.run_sync(question, output_type=Forecast).output


async def stream(question: str) -> AsyncIterator[str]:
    """Answer piece by piece."""
    async with desk.run_stream(question) as run:
        async for piece in run.stream_text(delta=True, debounce_by=None):
            yield piece
