"""pydantic-ai as a guest: a real Agent of it, with our scripted LLM behind its own OpenAI client."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import httpx2
from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from statek_sim.guests.guest import Guest
from statek_sim.guests.transport import client_of


def scripted_model(guest: Guest, *, retries: int = 2, timeout: float = 60.0) -> OpenAIChatModel:
    """Return a model for an `Agent`: pydantic-ai's own, over openai's own client, answered by the guest's script.

    `retries` and `timeout` (seconds) are the client's; what it sleeps in between is virtual inside `Guest.run`.
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
    """Return the guest's tools as an `Agent` takes them, each a coroutine function.

    pydantic-ai runs plain functions in threads, and virtual time has none.
    """
    return [_awaited(tool) for tool in guest.tools.values()]


def _awaited(tool: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(tool):
        return tool

    @wraps(tool)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        return tool(*args, **kwargs)

    return awaited
