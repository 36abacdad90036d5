"""Which provider speaks which format: STATEK's provider names (behaviour 12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from statek_sim.providers.wire import anthropic, gemini, openai
from statek_sim.providers.wire.format import FormatName, WireFormat

FORMATS: Final[Mapping[FormatName, WireFormat]] = {
    "openai": openai,
    "anthropic": anthropic,
    "gemini": gemini,
}
"""The formats by name."""

ANTHROPIC_PROVIDERS: Final = ("CLAUDEAI", "CLAUDE_AI", "CLAUDE", "ANTHROPIC")
GEMINI_PROVIDERS: Final = ("VERTEXAI", "VERTEX_AI", "GOOGLE_VERTEXAI", "GOOGLE")


DEFAULT_URL: Final = "https://llm.invalid/v1/chat/completions"
"""The `<P>_API_URL` of a fake that speaks OpenAI's format; `.invalid` never resolves (RFC 6761)."""

FAKE_URLS: Final[Mapping[FormatName, str]] = {
    "openai": DEFAULT_URL,
    "anthropic": DEFAULT_URL,
    "gemini": "https://llm.invalid/v1/models",
}
"""The `<P>_API_URL` of a fake by format; STATEK does not look at Anthropic's."""


def format_of(provider: str) -> WireFormat:
    """Return the format that STATEK uses for a provider; every other name is one that speaks OpenAI's.

    STATEK knows the others by name too, and takes unknown ones once `add_provider` made them known.
    """
    key = provider.upper()
    if key in ANTHROPIC_PROVIDERS:
        return anthropic
    return gemini if key in GEMINI_PROVIDERS else openai
