"""A weather assistant in CrewAI: an agent with a tool, which delegates to a second agent."""

from collections.abc import Iterator

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from pydantic import BaseModel


class Forecast(BaseModel):
    """A forecast for one city."""

    city: str
    degrees: int


@tool("get_weather")
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"rain in {city}, 9 degrees"


def answer(question: str) -> str:
    """Answer a question about the weather."""
    return str(_crew(question).kickoff().raw)


def forecast(question: str) -> BaseModel | None:
    """Answer with a forecast."""
    return _crew(question, output=Forecast).kickoff().pydantic


def stream(question: str) -> Iterator[str]:
    """Answer piece by piece."""
    for chunk in _crew(question, stream=True).kickoff():
        if chunk.content:
            yield chunk.content


def _crew(question: str, *, output: type[BaseModel] | None = None, stream: bool = False) -> Crew:
    llm = LLM(model="gpt-4o")
    desk = Agent(
        role="desk",
        goal="Tell the weather",
        backstory="You know about the weather.",
        llm=llm,
        tools=[get_weather],
        allow_delegation=True,
    )
    geographer = Agent(role="geographer", goal="Tell places", backstory="You know about places.", llm=llm)
    task = Task(description=question, expected_output="a sentence", agent=desk, output_pydantic=output)
    return Crew(agents=[desk, geographer], tasks=[task], stream=stream)
