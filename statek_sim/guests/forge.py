"""Runs Forge as a guest: Forge's runner and guardrails use a scripted LLM through Forge's own OpenAI-compatible client.

Forge (forge-guardrails 0.10) needs Python 3.12 or newer.
"""

from __future__ import annotations

from typing import Any

import httpx
from forge.clients.openai_compat import OpenAICompatClient

from statek_sim.guests.guest import Guest, client_of


class ScriptedClient(OpenAICompatClient):
    """A client for a `WorkflowRunner` that gets its replies from the guest's script. Use it inside `Guest.run`."""

    def __init__(self, guest: Guest) -> None:
        super().__init__(guest.model, "http://scripted.invalid/v1")
        # Forge accepts no httpx client, so its own is replaced. It was never used and holds no connection.
        own: Any = self
        own._http = client_of(guest, httpx, timeout=own._http.timeout, headers=own._http.headers)
