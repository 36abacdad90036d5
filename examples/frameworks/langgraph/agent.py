"""A weather assistant in LangGraph: an agent with a tool, and a second agent that it asks for facts."""

from collections.abc import Iterator

from langchain.agents import create_agent
from langchain.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel


class Forecast(BaseModel):
    """A forecast for one city."""

    city: str
    degrees: int


@tool
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"rain in {city}, 9 degrees"


@tool
def ask_geographer(question: str) -> str:
    """Ask the agent that knows about places."""
    geographer = create_agent(_model(), system_prompt="You know about places.")
    return str(geographer.invoke(_asked(question))["messages"][-1].text)


def answer(question: str) -> str:
    """Answer a question about the weather."""
    return str(_agent().invoke(_asked(question))["messages"][-1].text)


def forecast(question: str) -> Forecast:
    """Answer with a forecast."""
    found: Forecast = _agent(response_format=Forecast).invoke(_asked(question))["structured_response"]
    return found


def stream(question: str) -> Iterator[str]:
    """Answer piece by piece."""
    for chunk, _ in _agent().stream(_asked(question), stream_mode="messages"):
        if chunk.type == "AIMessageChunk" and chunk.text:
            yield str(chunk.text)


def _model() -> ChatOpenAI:
    return ChatOpenAI(model="gpt-4o", max_retries=2)


def _agent(response_format: type[BaseModel] | None = None) -> CompiledStateGraph:
    return create_agent(_model(), [get_weather, ask_geographer], response_format=response_format)


def _asked(question: str) -> dict:
    return {"messages": [{"role": "user", "content": question}]}
