"""What providers refuse in a request that is well formed: rules about schemas, thinking and signatures.

Each rule is a function of the parsed body that yields a `Refusal`, and names where the refusal was seen. Where no
public report shows the refusal there is no rule, and the request is taken.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

from statek_sim.errors import BadRequest
from statek_sim.providers.wire.anthropic import is_thinking
from statek_sim.providers.wire.gemini import needs_signatures
from statek_sim.providers.wire.request import FormatName
from statek_sim.values import JSON


class Refusal(NamedTuple):
    """A status 400: the parameter that is wrong as the provider writes it, why, and OpenAI's code of the error."""

    parameter: str
    why: str
    code: str = "invalid_value"


Refusals = Iterator[Refusal]
Body = Mapping[str, Any]


def refusals(wire: FormatName, body: JSON, model: str) -> Refusals:
    """Yield what the provider of a format refuses, the first first; `model` is the one that is asked."""
    if not isinstance(body, dict):
        return
    if wire == "openai":
        yield from _openai(body)
    elif wire == "responses":
        yield from _responses(body)
    elif wire == "anthropic":
        yield from _anthropic(body)
    else:
        yield from _gemini(body, model)


def check_refusals(refused: Iterable[Refusal], ignored: Collection[str], betas: str) -> None:
    """Raise `BadRequest` for the first refusal of a parameter that is not ignored; `betas` are those of Anthropic."""
    for refusal in refused:
        name = re.split(r"[.\[]", refusal.parameter)[0]
        if name in ignored or (refusal.parameter == THINKING_BUDGET and INTERLEAVED in betas):
            continue
        why = f"{refusal.why} {how_to_have_it_taken(name)}"
        raise BadRequest(why, parameter=refusal.parameter, code=refusal.code)


def how_to_have_it_taken(parameter: str) -> str:
    """Return what a message about a refused parameter ends with."""
    return (
        "(the provider refuses it; a server that takes it is played with "
        f"script([...], ignored=[{parameter!r}]), or serve --ignore {parameter})"
    )


# ---- OpenAI

MOST_TOOLS: Final = 128
"""https://github.com/zed-industries/zed/issues/32946"""

TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]+")
"""https://github.com/run-llama/llama_index/issues/16093"""

ONLY_WITH_TOOLS: Final = ("tool_choice", "parallel_tool_calls")
"""https://github.com/openai/swarm/issues/30, https://github.com/writer/writer-framework/pull/1013"""

NOT_AT_THE_TOP: Final = ("oneOf", "anyOf", "allOf", "enum", "not")
"""https://github.com/chatanywhere/GPT_API_free/issues/403"""


def _openai(body: Body) -> Refusals:
    for name in ONLY_WITH_TOOLS:
        if body.get(name) is not None and not body.get("tools"):
            yield Refusal(
                name, f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified."
            )
    yield from _number_of_tools(body)
    for number, tool in numbered_objects(body.get("tools")):
        function = tool.get("function")
        if isinstance(function, dict):
            yield from _function(function, f"tools[{number}].function")


def _responses(body: Body) -> Refusals:
    yield from _number_of_tools(body)
    for number, tool in numbered_objects(body.get("tools")):
        if tool.get("type") != "function":
            continue
        if "name" not in tool:
            # Tools as Chat Completions has them: https://github.com/microsoft/autogen/issues/6935
            where = f"tools[{number}].name"
            yield Refusal(where, f"Missing required parameter: '{where}'.", "missing_required_parameter")
        else:
            yield from _function(tool, f"tools[{number}]")
    yield from _reasoning_alone(body)


def _reasoning_alone(body: Body) -> Refusals:
    """A reasoning item belongs to the item of the model that follows it.

    https://github.com/vercel/ai/issues/7099, https://github.com/openai/openai-node/issues/1567
    """
    items = [item for _, item in numbered_objects(body.get("input"))]
    for item, following in pairwise([*items, {}]):
        if item.get("type") == "reasoning" and not _is_of_the_model(following):
            yield Refusal(
                "input",
                f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item.",
            )


def _is_of_the_model(item: Body) -> bool:
    kind = str(item.get("type", "message"))
    return (
        item.get("role") == "assistant" if kind == "message" else bool(item) and not kind.endswith("_output")
    )


def _number_of_tools(body: Body) -> Refusals:
    tools = body.get("tools")
    if isinstance(tools, list) and len(tools) > MOST_TOOLS:
        yield Refusal(
            "tools",
            f"Invalid 'tools': array too long. Expected an array with maximum length {MOST_TOOLS}, but got an array "
            f"with length {len(tools)} instead.",
            "array_above_max_length",
        )


def _function(function: Body, where: str) -> Refusals:
    name = function.get("name")
    if isinstance(name, str) and not TOOL_NAME.fullmatch(name):
        yield Refusal(
            f"{where}.name",
            f"Invalid '{where}.name': string does not match pattern. Expected a string that matches the pattern "
            f"'^{TOOL_NAME.pattern}$'.",
        )
    schema = function.get("parameters")
    if isinstance(schema, dict):
        for context, why in _schema_problems(schema, strict=function.get("strict") is True):
            yield Refusal(
                f"{where}.parameters",
                f"Invalid schema for function '{name}': {context}{why}",
                "invalid_function_parameters",
            )


def _schema_problems(schema: Body, *, strict: bool) -> Iterator[tuple[str, str]]:
    """Yield where in the schema of a function something is wrong, and what."""
    if any(word in schema for word in NOT_AT_THE_TOP):
        listed = "/".join(map(repr, NOT_AT_THE_TOP))
        yield "", f"schema must have type 'object' and not have {listed} at the top level."
        return
    for context, part in _parts(schema, ()):
        for why in _problems(part, strict=strict):
            yield f"In context={context!r}, ", why


def _problems(part: Body, *, strict: bool) -> Iterator[str]:
    kinds = part.get("type")
    if _is_kind(kinds, "array") and "items" not in part:
        # https://github.com/streamnative/streamnative-mcp-server/issues/26
        yield "array schema missing items."
    if not strict or not _is_kind(kinds, "object"):
        return
    properties = part.get("properties")
    if not isinstance(properties, dict):
        # https://github.com/spring-projects/spring-ai/issues/4776
        yield "object schema missing properties."
    if part.get("additionalProperties") is not False:
        # https://github.com/lastmile-ai/openai-agents-mcp/issues/2
        yield "'additionalProperties' is required to be supplied and to be false."
    required = part.get("required")
    for name in properties if isinstance(properties, dict) else ():
        if not isinstance(required, list) or name not in required:
            # https://github.com/kevinwatt/mysql-mcp/issues/5
            yield (
                "'required' is required to be supplied and to be an array including every key in properties. "
                f"Missing '{name}'."
            )
            return


def _is_kind(kinds: JSON, kind: str) -> bool:
    return kind in kinds if isinstance(kinds, list) else kinds == kind


def _parts(schema: Body, context: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Body]]:
    """Yield the schema and those inside it, each with the path that OpenAI calls its context."""
    yield context, schema
    for table in ("properties", "$defs", "definitions"):
        inner = schema.get(table)
        for name, part in inner.items() if isinstance(inner, dict) else ():
            if isinstance(part, dict):
                yield from _parts(part, (*context, table, name))
    if isinstance(schema.get("items"), dict):
        yield from _parts(schema["items"], (*context, "items"))
    for number, part in numbered_objects(schema.get("anyOf")):
        yield from _parts(part, (*context, "anyOf", str(number)))


# ---- Anthropic

LEAST_THINKING: Final = 1024
"""https://github.com/themaximalist/llm.js/issues/30"""

MOST_CACHED: Final = 4
"""https://github.com/tghamm/Anthropic.SDK/issues/50"""

THINKING_BUDGET: Final = "thinking.budget_tokens"
INTERLEAVED: Final = "interleaved-thinking"
"""The beta that lets `THINKING_BUDGET` be larger than `max_tokens`.

https://platform.claude.com/docs/en/build-with-claude/extended-thinking
"""

_THOUGHT: Final = ("thinking", "redacted_thinking")


def _anthropic(body: Body) -> Refusals:
    yield from _thinking_budget(body)
    yield from _empty_texts(body)
    yield from _cached(body)
    yield from _top_of_schemas(body)
    yield from _thinking_of_the_turn(body)


def _thinking_budget(body: Body) -> Refusals:
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


def _empty_texts(body: Body) -> Refusals:
    """https://github.com/anthropics/claude-code/issues/59812, https://github.com/anthropics/claude-code/issues/23440."""
    for _, message in numbered_objects(body.get("messages")):
        for _, block in numbered_objects(message.get("content")):
            text = block.get("text") if block.get("type") == "text" else None
            if isinstance(text, str) and not text.strip():
                must = "contain non-whitespace text" if text else "be non-empty"
                yield Refusal("messages", f"messages: text content blocks must {must}")


def _cached(body: Body) -> Refusals:
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


def _top_of_schemas(body: Body) -> Refusals:
    """https://github.com/marianfoo/mcp-sap-docs/pull/51."""
    for number, tool in numbered_objects(body.get("tools")):
        schema = tool.get("input_schema")
        if isinstance(schema, dict) and not schema.keys().isdisjoint(("oneOf", "allOf", "anyOf")):
            yield Refusal(
                "tools",
                f"tools.{number}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top "
                "level",
            )


def _thinking_of_the_turn(body: Body) -> Refusals:
    """The model's last turn, when it called tools, comes back with its thinking and the signature of that.

    https://github.com/pydantic/pydantic-ai/issues/2075, and of a signature https://github.com/cytostack/openwolf/issues/19
    """
    turns = [
        (number, message)
        for number, message in numbered_objects(body.get("messages"))
        if message.get("role") == "assistant"
    ]
    if not turns or not is_thinking(body):
        return
    number, last = turns[-1]
    blocks = [block for _, block in numbered_objects(last.get("content"))]
    if not any(block.get("type") == "tool_use" for block in blocks):
        return
    first = blocks[0].get("type")
    if first not in _THOUGHT:
        yield Refusal(
            "messages",
            f"messages.{number}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`. When "
            "`thinking` is enabled, a final `assistant` message must start with a thinking block.",
        )
    for place, block in enumerate(blocks):
        if block.get("type") == "thinking" and not block.get("signature"):
            yield Refusal(
                "messages", f"messages.{number}.content.{place}: Invalid `signature` in `thinking` block"
            )


# ---- Google


def _gemini(body: Body, model: str) -> Refusals:
    """The first call of each step since the user's last words must have its signature.

    https://github.com/nearai/ironclaw/issues/1510
    """
    if not needs_signatures(model):
        return
    contents = numbered_objects(body.get("contents"))
    for number, content in contents[_start_of_turn(contents) :]:
        calls = [part for _, part in numbered_objects(content.get("parts")) if part.get("functionCall")]
        if content.get("role") == "model" and calls and not calls[0].get("thoughtSignature"):
            call = calls[0].get("functionCall")
            name = call.get("name") if isinstance(call, dict) else call
            yield Refusal(
                "contents",
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                f"work correctly. Additional data, function call `default_api:{name}`, position {number + 1}.",
            )


def _start_of_turn(contents: list[tuple[int, dict[str, Any]]]) -> int:
    """Return where the turn of the model begins: behind the last content of the user that is no result of a tool."""
    for place in range(len(contents) - 1, -1, -1):
        content = contents[place][1]
        parts = [part for _, part in numbered_objects(content.get("parts"))]
        if content.get("role", "user") == "user" and not any(part.get("functionResponse") for part in parts):
            return place
    return 0


def numbered_objects(values: JSON) -> list[tuple[int, dict[str, Any]]]:
    """Return the objects of a list with their numbers; no list has none."""
    given = values if isinstance(values, list) else []
    return [(number, value) for number, value in enumerate(given) if isinstance(value, dict)]
