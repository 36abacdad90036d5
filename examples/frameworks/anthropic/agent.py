"""A weather assistant on the plain Anthropic SDK: a loop, a tool, and a second agent that it asks for facts."""

from collections.abc import Callable, Iterator

from anthropic import Anthropic
from pydantic import BaseModel

MODEL = "claude-sonnet-4-6"


class Forecast(BaseModel):
    """A forecast for one city."""

    city: str
    degrees: int


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"rain in {city}, 9 degrees"


def ask_geographer(question: str) -> str:
    """Ask the agent that knows about places."""
    return _loop("You know about places.", question, {})


def answer(question: str) -> str:
    """Answer a question about the weather."""
    tools = {"get_weather": get_weather, "ask_geographer": ask_geographer}
    return _loop("You know about the weather.", question, tools)


def forecast(question: str) -> Forecast:
    """Answer with a forecast, which the model gives as the arguments of a call."""
    tool = {
        "name": "forecast",
        "description": "Give a forecast.",
        "input_schema": Forecast.model_json_schema(),
    }
    with Anthropic() as client:
        reply = client.messages.create(
            model=MODEL,
            max_tokens=1000,
            messages=[{"role": "user", "content": question}],
            tools=[tool],
            tool_choice={"type": "tool", "name": "forecast"},
        )
    return Forecast.model_validate(next(block.input for block in reply.content if block.type == "tool_use"))


def stream(question: str) -> Iterator[str]:
    """Answer piece by piece."""
    messages = [{"role": "user", "content": question}]
    with (
        Anthropic() as client,
        client.messages.stream(model=MODEL, max_tokens=1000, messages=messages) as answering,
    ):
        yield from answering.text_stream


def _loop(system: str, question: str, tools: dict[str, Callable[[str], str]]) -> str:
    messages: list = [{"role": "user", "content": question}]
    with Anthropic() as client:
        while True:
            reply = client.messages.create(
                model=MODEL,
                max_tokens=1000,
                system=system,
                messages=messages,
                tools=[_described(name) for name in tools],
            )
            calls = [block for block in reply.content if block.type == "tool_use"]
            if not calls:
                return "".join(block.text for block in reply.content if block.type == "text")
            messages.append({"role": "assistant", "content": reply.content})
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": tools[call.name](**call.input)}
                for call in calls
            ]
            messages.append({"role": "user", "content": results})


def _described(name: str) -> dict:
    argument = "city" if name == "get_weather" else "question"
    schema = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return {"name": name, "input_schema": schema}
