"""A weather assistant with the OpenAI Agents SDK: an agent with a tool, which hands off to a second agent."""

from collections.abc import AsyncIterator

from agents import Agent, ModelSettings, Runner, function_tool
from openai.types.responses import ResponseTextDeltaEvent
from pydantic import BaseModel


class Forecast(BaseModel):
    """A forecast for one city."""

    city: str
    degrees: int


@function_tool
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"rain in {city}, 9 degrees"


geographer = Agent(name="geographer", instructions="You know about places.", model="gpt-4o")
desk = Agent(
    name="desk",
    instructions="You know about the weather.",
    model="gpt-4o",
    tools=[get_weather],
    handoffs=[geographer],
)
forecaster = desk.clone(name="forecaster", output_type=Forecast, model_settings=ModelSettings(temperature=0))


def answer(question: str) -> str:
    """Answer a question about the weather."""
    return str(Runner.run_sync(desk, question).final_output)


def forecast(question: str) -> Forecast:
    """Answer with a forecast."""
    return Runner.run_sync(forecaster, question).final_output_as(Forecast)


async def stream(question: str) -> AsyncIterator[str]:
    """Answer piece by piece."""
    async for event in Runner.run_streamed(desk, question).stream_events():
        if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent):
            yield event.data.delta
