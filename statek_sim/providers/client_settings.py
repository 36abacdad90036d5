"""What LLM clients read to find their provider: base URLs, keys, and the hosts that they call without them.

Sources: the clients in `openai` 3, `anthropic` 2 and `google-genai` 3, the providers of `pydantic-ai` 2, and LiteLLM's
settings for API bases (which LangChain's older releases and CrewAI read too).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """How clients of one provider are pointed at another server."""

    provider: str
    hosts: tuple[str, ...]
    """Where they connect by default."""
    url_variables: tuple[str, ...]
    """Environment variables with the base URL; the first is the provider's own."""
    key_variables: tuple[str, ...]
    """Environment variables without which a client refuses to start."""
    other_credentials: tuple[str, ...] = ()
    """Environment variables that would take the place of the key, or make the client call another host."""
    argument: str
    """What is passed to a client that reads no variable."""
    path: str = ""
    """What follows the server's root in the base URL."""


CLIENT_SETTINGS: Final = (
    ClientSettings(
        provider="OpenAI",
        hosts=("api.openai.com",),
        url_variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        key_variables=("OPENAI_API_KEY",),
        other_credentials=("OPENAI_ORG_ID", "OPENAI_PROJECT_ID"),
        argument="base_url=statek_llm_server.openai_url",
        path="/v1",
    ),
    ClientSettings(
        provider="Anthropic",
        hosts=("api.anthropic.com",),
        url_variables=("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"),
        key_variables=("ANTHROPIC_API_KEY",),
        other_credentials=("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_IDENTITY_TOKEN"),
        argument="base_url=statek_llm_server.url",
    ),
    ClientSettings(
        provider="Gemini",
        hosts=("generativelanguage.googleapis.com",),
        url_variables=("GOOGLE_GEMINI_BASE_URL",),
        key_variables=("GOOGLE_API_KEY",),
        other_credentials=("GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_CLOUD_PROJECT"),
        argument="http_options={'base_url': statek_llm_server.url}",
    ),
)
"""One entry for each wire format that the fake server speaks."""

KEY: Final = "scripted"
"""The key that clients get: they demand one, and the fake server takes any."""


def client_environment(url: str) -> dict[str, str | None]:
    """Return the variables that point clients at the server with root `url`; None: to be unset."""
    found: dict[str, str | None] = {}
    for client in CLIENT_SETTINGS:
        found.update(dict.fromkeys(client.url_variables, url + client.path))
        found.update(dict.fromkeys(client.key_variables, KEY))
        found.update(dict.fromkeys(client.other_credentials))
    return found


def redirection(host: str) -> str | None:
    """Return how a client that calls the provider at `host` is pointed elsewhere; None for other hosts."""
    for client in CLIENT_SETTINGS:
        if host in client.hosts:
            return (
                f"a client of {client.provider} made this call: set {client.url_variables[0]} before it is created "
                f"(statek_llm_server does so), or pass it {client.argument}"
            )
    return None
