"""A weather assistant on LiteLLM: a loop, a tool, and a second agent from another provider that it asks for facts."""

import json
from collections.abc import Callable, Iterator

import litellm
from pydantic import BaseModel

DESK, GEOGRAPHER = "openai/gpt-4o", "anthropic/claude-sonnet-4-6"


class Forecast(BaseModel):
    """A forecast for one city."""

    city: str
    degrees: int


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"rain in {city}, 9 degrees"


def ask_geographer(question: str) -> str:
    """Ask the agent that knows about places."""
    return _loop(GEOGRAPHER, question, {})


def answer(question: str) -> str:
    """Answer a question about the weather."""
    return _loop(DESK, question, {"get_weather": get_weather, "ask_geographer": ask_geographer})


def forecast(question: str) -> Forecast:
    """Answer with a forecast."""
    messages = [{"role": "user", "content": question}]
    reply = litellm.completion(model=DESK, messages=messages, response_format=Forecast)
    return Forecast.model_validate_json(reply.choices[0].message.content)


def stream(question: str) -> Iterator[str]:
    """Answer piece by piece."""
    messages = [{"role": "user", "content": question}]
    for chunk in litellm.completion(model=DESK, messages=messages, stream=True):
        if chunk.choices[0].delta.content:
            yield chunk.choices[0].delta.content


def _loop(model: str, question: str, tools: dict[str, Callable[[str], str]]) -> str:
    messages: list = [{"role": "user", "content": question}]
    offered = {"tools": [_described(name) for name in tools]} if tools else {}
    while True:
        reply = litellm.completion(model=model, messages=messages, num_retries=2, **offered)
        message = reply.choices[0].message
        if not message.tool_calls:
            return message.content or ""
        messages.append(message.model_dump())
        for call in message.tool_calls:
            result = tools[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def _described(name: str) -> dict:
    argument = "city" if name == "get_weather" else "question"
    schema = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return {"type": "function", "function": {"name": name, "parameters": schema}}
