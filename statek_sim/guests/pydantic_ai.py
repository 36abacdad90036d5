"""Runs pydantic-ai as a guest: an unchanged Agent uses a scripted LLM through its own OpenAI client."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import wraps
from itertools import groupby
from typing import Any

import httpx2
from openai import AsyncOpenAI
from pydantic_ai import Tool
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    RetryFeedbackPart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from statek_sim.guests.guest import Guest, client_of
from statek_sim.values import JSON, Message

Processor = Callable[[list[ModelMessage]], list[ModelMessage]]
"""A pydantic-ai history processor, which returns the messages to send instead of the history."""


def scripted_model(guest: Guest, *, retries: int = 2, timeout: float = 60.0) -> OpenAIChatModel:
    """Return a model for an `Agent` that gets its responses from the guest's script.

    The model is pydantic-ai's own, with the openai package's client. `retries` and `timeout` (in seconds) are passed to
    the client, which sleeps in virtual time inside `Guest.run`.
    """
    client = AsyncOpenAI(
        base_url="http://scripted.invalid/v1",
        api_key="none",
        max_retries=retries,
        timeout=timeout,
        http_client=client_of(guest, httpx2),
    )
    return OpenAIChatModel(guest.model, provider=OpenAIProvider(openai_client=client))


def recorded_tools(guest: Guest) -> list[Callable[..., Any]]:
    """Return the guest's tools for an `Agent`, as coroutine functions.

    pydantic-ai runs plain functions in threads, which are not available in virtual time.
    """
    return [_awaited(tool) for tool in guest.tools.values()]


def _awaited(tool: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(tool):
        return tool

    @wraps(tool)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        return tool(*args, **kwargs)

    return awaited


def tools_of(
    given: Iterable[tuple[str, str, Mapping[str, Any], Callable[..., Awaitable[Any]]]],
) -> list[Tool[Any]]:
    """Return tools for an `Agent`, each from a name, a description, a JSON Schema and a coroutine function."""
    return [
        Tool.from_schema(call, name, description, dict(schema)) for name, description, schema, call in given
    ]


# -- history processors -----------------------------------------------------------------------------------------


def compaction_of(processor: Processor) -> Callable[[list[Message]], list[Message]]:
    """Convert a history processor to a function that takes messages in the OpenAI format, for `check_compaction`."""

    def compact(messages: list[Message]) -> list[Message]:
        return [written for message in processor(history_of(messages)) for written in _told(message)]

    return compact


def processor_of(compact: Callable[[list[Message]], Sequence[Message] | None]) -> Processor:
    """Convert a compactor for OpenAI-format messages to a history processor; None leaves the history unchanged."""

    def process(history: list[ModelMessage]) -> list[ModelMessage]:
        shorter = compact([written for message in history for written in _told(message)])
        return history if shorter is None else history_of(shorter)

    return process


def history_of(messages: Sequence[Message]) -> list[ModelMessage]:
    """Convert OpenAI-format messages to a history; everything between two model answers becomes one request."""
    names = {call["id"]: call["function"]["name"] for message in messages for call in _calls(message)}
    history: list[ModelMessage] = []
    for answers, group in groupby(messages, key=lambda message: message.get("role") == "assistant"):
        if answers:
            history += [ModelResponse(parts=_said(message)) for message in group]
        else:
            history.append(ModelRequest(parts=[_asked(message, names) for message in group]))
    return history


def _calls(message: Message) -> list[Any]:
    calls = message.get("tool_calls")
    return calls if isinstance(calls, list) else []


def _said(message: Message) -> list[ModelResponsePart]:
    content = message.get("content")
    parts: list[ModelResponsePart] = [TextPart(content)] if isinstance(content, str) and content else []
    for call in _calls(message):
        function = call["function"]
        parts.append(ToolCallPart(function["name"], function["arguments"], tool_call_id=call["id"]))
    return parts


def _asked(message: Message, names: dict[Any, Any]) -> ModelRequestPart:
    content = str(message.get("content") or "")
    match message.get("role"):
        case "system":
            return SystemPromptPart(content)
        case "tool":
            id_ = str(message.get("tool_call_id"))
            return ToolReturnPart(str(names.get(id_, "unknown")), content, tool_call_id=id_)
        case _:
            return UserPromptPart(content)


def _told(message: ModelMessage) -> list[Message]:
    if isinstance(message, ModelRequest):
        return [_part(part) for part in message.parts]
    text = "".join(part.content for part in message.parts if isinstance(part, TextPart))
    calls: list[JSON] = [
        {
            "id": part.tool_call_id,
            "type": "function",
            "function": {
                "name": part.tool_name,
                "arguments": part.args if isinstance(part.args, str) else part.args_as_json_str(),
            },
        }
        for part in message.parts
        if isinstance(part, ToolCallPart)
    ]
    fields: dict[str, JSON] = {"role": "assistant", "content": text or None}
    return [{**fields, "tool_calls": calls} if calls else fields]


def _part(part: ModelRequestPart) -> Message:
    match part:
        case SystemPromptPart():
            return {"role": "system", "content": part.content}
        case ToolReturnPart():
            content = part.model_response_str()
            return {"role": "tool", "content": content, "tool_call_id": part.tool_call_id}
        case RetryFeedbackPart():
            return {"role": "user", "content": part.model_response()}
        case UserPromptPart(content=str(content)):
            return {"role": "user", "content": content}
        case _:
            raise TypeError(f"a history processor returned {part!r}; expected text, calls and results")
