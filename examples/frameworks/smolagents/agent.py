"""A weather assistant in smolagents: an agent with a tool, which manages a second agent."""

from collections.abc import Iterator

from smolagents import ChatMessageStreamDelta, OpenAIModel, ToolCallingAgent, tool


@tool
def get_weather(city: str) -> str:
    """Return the weather of a city.

    Args:
        city: The name of the city.
    """
    return f"rain in {city}, 9 degrees"


def answer(question: str) -> str:
    """Answer a question about the weather."""
    return str(_agent().run(question))


def forecast(question: str) -> dict:
    """Answer with a forecast."""
    return _agent().run(question)


def stream(question: str) -> Iterator[str]:
    """Stream the agent's reasoning piece by piece."""
    for event in _agent(stream_outputs=True).run(question, stream=True):
        if isinstance(event, ChatMessageStreamDelta) and event.content:
            yield event.content


def _agent(stream_outputs: bool = False) -> ToolCallingAgent:
    model = OpenAIModel("gpt-4o")
    geographer = ToolCallingAgent(
        [], model, name="geographer", description="Knows about places.", verbosity_level=0
    )
    return ToolCallingAgent(
        [get_weather], model, managed_agents=[geographer], stream_outputs=stream_outputs, verbosity_level=0
    )
