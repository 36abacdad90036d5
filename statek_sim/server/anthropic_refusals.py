"""The rules by which Anthropic rejects requests, each with a link to a public source."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Final

from statek_sim.providers.wire.anthropic import is_thinking
from statek_sim.providers.wire.parameters import Refusal
from statek_sim.server.request_shapes import (
    Body,
    Refusals,
    no_string,
    numbered_objects,
    typed,
    typed_contents,
)
from statek_sim.values import JSON

LEAST_THINKING: Final = 1024
"""https://github.com/themaximalist/llm.js/issues/30"""

ANTHROPIC_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
"""https://github.com/modelcontextprotocol/modelcontextprotocol/issues/1345"""

MOST_CACHED: Final = 4
"""https://github.com/tghamm/Anthropic.SDK/issues/50"""

THINKING_BUDGET: Final = "thinking.budget_tokens"
INTERLEAVED: Final = "interleaved-thinking"
"""The beta feature that allows `THINKING_BUDGET` to be larger than `max_tokens`.

https://platform.claude.com/docs/en/build-with-claude/extended-thinking
"""

_THOUGHT: Final = ("thinking", "redacted_thinking")


def _anthropic_shapes(body: Body, model: str) -> Refusals:
    yield from typed(body.get("system"), "system", "system")
    yield from typed_contents(body, "messages")
    for number, tool in numbered_objects(body.get("tools")):
        kind = tool.get("type")
        if kind is not None and not isinstance(kind, str):
            yield Refusal("tools", no_string(f"tools[{number}].type", tool, "type"))
        elif kind is None and not isinstance(tool.get("name"), str):
            yield Refusal("tools", no_string(f"tools[{number}].name", tool, "name"))
        elif kind in (None, "custom"):
            yield from _anthropic_tool(tool, f"tools.{number}.custom")


def _anthropic_tool(tool: Body, where: str) -> Refusals:
    name, schema = tool.get("name"), tool.get("input_schema")
    if isinstance(name, str) and not ANTHROPIC_NAME.fullmatch(name):
        yield Refusal("tools", f"{where}.name: String should match pattern '^{ANTHROPIC_NAME.pattern}$'")
    if not isinstance(schema, dict):
        # https://github.com/su-kaka/gcli2api/issues/392
        yield Refusal("tools", f"{where}.input_schema: Field required")
    elif not schema.keys().isdisjoint(("oneOf", "allOf", "anyOf")):
        # https://github.com/marianfoo/mcp-sap-docs/pull/51
        why = "input_schema does not support oneOf, allOf, or anyOf at the top level"
        yield Refusal("tools", f"{where}.input_schema: {why}")
    elif "type" not in schema:
        # https://github.com/Kilo-Org/kilocode/issues/12238
        yield Refusal("tools", f"{where}.input_schema.type: Field required")


def _unique_names(body: Body, model: str) -> Refusals:
    """https://github.com/anthropics/claude-code/issues/10687."""
    names = [tool.get("name") for _, tool in numbered_objects(body.get("tools"))]
    if any(count > 1 for count in Counter(map(str, names)).values()):
        yield Refusal("tools", "tools: Tool names must be unique.")


def _thinking_budget(body: Body, model: str) -> Refusals:
    thinking = body.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    limit = body.get("max_tokens")
    if not isinstance(budget, int):
        return
    if budget < LEAST_THINKING:
        yield Refusal(
            "thinking",
            f"thinking.enabled.budget_tokens: Input should be greater than or equal to {LEAST_THINKING}",
        )
    if isinstance(limit, int) and limit <= budget:
        # https://github.com/liuw1535/antigravity2api-nodejs/issues/150
        yield Refusal(THINKING_BUDGET, "`max_tokens` must be greater than `thinking.budget_tokens`.")


def _sampled_thinking(body: Body, model: str) -> Refusals:
    """https://github.com/MartialBE/one-hub/issues/529, https://github.com/mastra-ai/mastra/issues/7507."""
    if not is_thinking(body):
        return
    if body.get("temperature") not in (None, 1):
        yield Refusal("temperature", "`temperature` may only be set to 1 when thinking is enabled.")
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") in ("any", "tool"):
        yield Refusal("thinking", "Thinking may not be enabled when tool_choice forces tool use.")


def _empty_texts(body: Body, model: str) -> Refusals:
    """https://github.com/anthropics/claude-code/issues/59812, https://github.com/anthropics/claude-code/issues/23440.

    A prompt: https://github.com/BoltAI/BoltAI/issues/165; no content: https://github.com/anthropics/claude-code/issues/6774;
    the beginning of an answer: https://github.com/tailcallhq/forgecode/issues/1872
    """
    messages = numbered_objects(body.get("messages"))
    for number, message in messages:
        is_prefix = message.get("role") == "assistant" and number + 1 == len(messages)
        content = message.get("content")
        if content in ("", []) and not is_prefix:
            yield Refusal(
                "messages",
                f"messages.{number}: all messages must have non-empty content except for the optional final assistant "
                "message",
            )
        texts = _texts(content) if content else []
        yield from _blank(texts, "messages")
        if is_prefix and texts and texts[-1] != texts[-1].rstrip():
            yield Refusal("messages", "messages: final assistant content cannot end with trailing whitespace")
    yield from _blank(_texts(body.get("system") or []), "system")


def _texts(content: JSON) -> list[str]:
    if isinstance(content, str):
        return [content]
    found = [block.get("text") for _, block in numbered_objects(content) if block.get("type") == "text"]
    return [text for text in found if isinstance(text, str)]


def _blank(texts: Iterable[str], parameter: str) -> Refusals:
    for text in texts:
        if not text.strip():
            must = "contain non-whitespace text" if text else "be non-empty"
            yield Refusal(parameter, f"{parameter}: text content blocks must {must}")


def _cached(body: Body, model: str) -> Refusals:
    blocks = [tool for _, tool in numbered_objects(body.get("tools"))] + [
        part for _, part in numbered_objects(body.get("system"))
    ]
    for _, message in numbered_objects(body.get("messages")):
        for _, block in numbered_objects(message.get("content")):
            blocks += [block, *(inner for _, inner in numbered_objects(block.get("content")))]
    found = sum(isinstance(block.get("cache_control"), dict) for block in blocks)
    if found > MOST_CACHED:
        yield Refusal(
            "cache_control",
            f"A maximum of {MOST_CACHED} blocks with cache_control may be provided. Found {found}.",
        )


def _thinking_of_the_turn(body: Body, model: str) -> Refusals:
    """If the model called tools in its last turn, that turn must be sent back with its thinking.

    https://github.com/pydantic/pydantic-ai/issues/2075
    """
    messages = numbered_objects(body.get("messages"))
    while messages and messages[-1][1].get("role") != "assistant":
        messages.pop()
    turn = list(takewhile(lambda message: message[1].get("role") == "assistant", reversed(messages)))
    blocks = [block for _, message in reversed(turn) for _, block in numbered_objects(message.get("content"))]
    if not is_thinking(body) or not any(block.get("type") == "tool_use" for block in blocks):
        return
    first = blocks[0].get("type")
    if first not in _THOUGHT:
        yield Refusal(
            "messages",
            f"messages.{turn[-1][0]}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`. "
            "When `thinking` is enabled, a final `assistant` message must start with a thinking block.",
        )


def _signed_thinking(body: Body, model: str) -> Refusals:
    """Every thinking block must contain its text and signature, even if thinking is now disabled.

    https://github.com/justlovemaki/AIClient2API/issues/437, https://github.com/LibreChat-AI/agents/pull/279,
    https://github.com/cytostack/openwolf/issues/19
    """
    for number, message in numbered_objects(body.get("messages")):
        for place, block in numbered_objects(message.get("content")):
            if block.get("type") != "thinking":
                continue
            where = f"messages.{number}.content.{place}"
            for field in ("thinking", "signature"):
                if not isinstance(block.get(field), str):
                    yield Refusal("messages", f"{where}.thinking.{field}: Field required")
            if block.get("signature") == "":
                yield Refusal("messages", f"{where}: Invalid `signature` in `thinking` block")


ANTHROPIC_RULES: Final[tuple[Callable[[Body, str], Refusals], ...]] = (
    _anthropic_shapes,
    _unique_names,
    _thinking_budget,
    _sampled_thinking,
    _empty_texts,
    _cached,
    _thinking_of_the_turn,
    _signed_thinking,
)
"""Functions of a request body and a model."""
