"""The names of spans and attributes, from OpenTelemetry's conventions for generative AI and from Langfuse.

The conventions are not stable. A new version should require changes only in this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Final

VERSION: Final = "1.40.0"
"""The version of the semantic conventions that the names come from."""

SCHEMA_URL: Final = f"https://opentelemetry.io/schemas/{VERSION}"
"""The schema URL of exported spans."""


class Operation(StrEnum):
    """What a span measures. The first three operations are OpenTelemetry's; the others are this toolkit's own."""

    AGENT = "invoke_agent"
    CHAT = "chat"
    TOOL = "execute_tool"
    STEP = "step"
    GUARD = "guard"
    CHECKPOINT = "checkpoint"
    PERSON = "ask_person"


GEN_AI: Final = frozenset({Operation.AGENT, Operation.CHAT, Operation.TOOL})
"""Operations defined by the conventions."""

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
MODEL: Final = "gen_ai.request.model"
AGENT: Final = "gen_ai.agent.name"
CONVERSATION: Final = "gen_ai.conversation.id"
TOOL: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL: Final = "gen_ai.tool.call.id"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
ERROR: Final = "error.type"

COST: Final = "gen_ai.usage.cost"
"""In US dollars. The conventions have no name for it, but Langfuse reads this one."""

SESSION: Final = "session.id"
TRACE_NAME: Final = "langfuse.trace.name"
OBSERVATION: Final = "langfuse.observation.type"
LEVEL: Final = "langfuse.observation.level"
STATUS_MESSAGE: Final = "langfuse.observation.status_message"
INPUT: Final = "langfuse.observation.input"
OUTPUT: Final = "langfuse.observation.output"

OBSERVATIONS: Final[Mapping[Operation, str]] = MappingProxyType(
    {
        Operation.AGENT: "agent",
        Operation.STEP: "chain",
        Operation.CHAT: "generation",
        Operation.TOOL: "tool",
        Operation.GUARD: "guardrail",
        Operation.CHECKPOINT: "event",
        Operation.PERSON: "span",
    }
)
"""Langfuse's type for each operation's spans. Langfuse drops span events, so every event is also a span."""

ALWAYS: Final[Mapping[Operation, Mapping[str, str]]] = MappingProxyType(
    {
        operation: {
            **({OPERATION: operation.value} if operation in GEN_AI else {}),
            **({TOOL_TYPE: "function"} if operation is Operation.TOOL else {}),
            OBSERVATION: OBSERVATIONS[operation],
        }
        for operation in Operation
    }
)
"""Attributes on every span of an operation; in the conventions' terms, every tool here is a function."""

PROVIDERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ANTHROPIC": "anthropic",
        "AZURE": "azure.ai.openai",
        "DEEPSEEK": "deepseek",
        "GEMINI": "gcp.gemini",
        "GOOGLE": "gcp.gemini",
        "GROQ": "groq",
        "MISTRAL": "mistral_ai",
        "OPENAI": "openai",
    }
)
"""The conventions' provider names, keyed by STATEK's names; other providers keep their name, in lower case."""

MAKERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "claude": "anthropic",
        "codestral": "mistral_ai",
        "command": "cohere",
        "deepseek": "deepseek",
        "gemini": "gcp.gemini",
        "gpt": "openai",
        "grok": "x_ai",
        "ministral": "mistral_ai",
        "mistral": "mistral_ai",
        "mixtral": "mistral_ai",
        "o1": "openai",
        "o3": "openai",
        "o4": "openai",
        "sonar": "perplexity",
    }
)
"""Model vendors, keyed by model name prefix: the best guess if no provider is named."""

UNKNOWN_PROVIDER: Final = "unknown"
"""The provider of an unknown model, since the conventions require one."""

STOPPED: Final = "statek.stop"
TURN: Final = "statek.turn"
ATTEMPT: Final = "statek.attempt"
NUMBER: Final = "statek.step"
VIA: Final = "statek.tool.via"
VERDICT: Final = "statek.guard.action"
DETAIL: Final = "statek.detail"
OPEN: Final = "statek.open"
"""Whether the span was still open when the trace was read."""


def provider_name(name: str) -> str:
    """Return the conventions' name for a provider."""
    return PROVIDERS.get(name.upper(), name.lower())


@lru_cache(maxsize=256)
def provider_of(model: str) -> str:
    """Return a model's vendor, based on the model's name: `openai` for `gpt-4o` and for `openai/gpt-4o`."""
    family, slash, name = model.lower().rpartition("/")
    if slash and family.rpartition("/")[2].upper() in PROVIDERS:
        return provider_name(family.rpartition("/")[2])
    return next(
        (maker for beginning, maker in MAKERS.items() if name.startswith(beginning)), UNKNOWN_PROVIDER
    )
