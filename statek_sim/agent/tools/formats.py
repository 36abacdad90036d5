"""Tools as the request of each provider's format carries them."""

from __future__ import annotations

from collections.abc import Iterable

from statek_sim.agent.tools.tool import Tool
from statek_sim.providers.wire.gemini import declaration
from statek_sim.providers.wire.request import FormatName
from statek_sim.values import JSON


def api_format(tools: Iterable[Tool], wire: FormatName) -> list[dict[str, JSON]]:
    """Return tools as a request in this format carries them."""
    match wire:
        case "openai":
            return [dict(tool.spec) for tool in tools]
        case "responses":
            return [
                {
                    "type": "function",
                    "name": t.name,
                    "description": t.description,
                    "parameters": dict(t.parameters),
                }
                for t in tools
            ]
        case "anthropic":
            return [
                {"name": t.name, "description": t.description, "input_schema": dict(t.parameters)}
                for t in tools
            ]
        case "gemini":
            declared: list[JSON] = [declaration(t.name, t.description, dict(t.parameters)) for t in tools]
            return [{"functionDeclarations": declared}]
