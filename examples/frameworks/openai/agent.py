"""A weather assistant on the plain OpenAI SDK: a loop, a tool, and a second agent that it asks for facts."""

import json
from collections.abc import Callable, Iterator

from openai import OpenAI
from pydantic import BaseModel


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


def forecast(question: str) -> Forecast | None:
    """Answer with a forecast."""
    messages = [{"role": "user", "content": question}]
    with OpenAI() as client:
        reply = client.chat.completions.parse(model="gpt-4o", messages=messages, response_format=Forecast)
    return reply.choices[0].message.parsed


def stream(question: str) -> Iterator[str]:
    """Answer piece by piece."""
    messages = [{"role": "user", "content": question}]
    with OpenAI() as client:
        for chunk in client.chat.completions.create(model="gpt-4o", messages=messages, stream=True):
            if chunk.choices and chunk.choices[0].delta.content:
                yield chunk.choices[0].delta.content


def _loop(system: str, question: str, tools: dict[str, Callable[[str], str]]) -> str:
    messages: list = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    offered = {"tools": [_described(name) for name in tools]} if tools else {}
    with OpenAI() as client:
        while True:
            reply = client.chat.completions.create(model="gpt-4o", messages=messages, **offered)
            message = reply.choices[0].message
            if not message.tool_calls:
                return message.content or ""
            messages.append(message)
            for call in message.tool_calls:
                result = tools[call.function.name](**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def _described(name: str) -> dict:
    argument = "city" if name == "get_weather" else "question"
    schema = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return {"type": "function", "function": {"name": name, "parameters": schema}}
