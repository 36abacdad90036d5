"""Further rules by which providers refuse requests: shapes, schemas, thinking, signatures and turns.

`RULES` are functions of the parsed body for each format; each names the source of the refusal. A refusal without a
public report has no rule, and the request is accepted. STATEK's requests and those in cassettes are read without these
rules.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from statek_sim.errors import BadRequest
from statek_sim.providers.wire.anthropic import is_thinking
from statek_sim.providers.wire.gemini import needs_signatures
from statek_sim.providers.wire.parameters import Refusal
from statek_sim.providers.wire.request import FormatName
from statek_sim.values import JSON, Message

Refusals = Iterator[Refusal]
Body = Mapping[str, Any]


def refusals(wire: FormatName, body: JSON, model: str) -> Refusals:
    """Yield the refusals of a format's provider in order; `model` is the requested one."""
    if isinstance(body, dict):
        for rule in RULES[wire]:
            yield from rule(body, model)


def check_refusals(refused: Iterable[Refusal], ignored: Collection[str], betas: str = "") -> None:
    """Raise `BadRequest` for the first refusal of a parameter that is not ignored; `betas` are those of Anthropic."""
    for refusal in refused:
        name = re.split(r"[.\[]", refusal.parameter)[0]
        if {name, refusal.parameter} & set(ignored):
            continue
        if refusal.parameter == THINKING_BUDGET and INTERLEAVED in betas:
            continue
        why = refusal.why
        if refusal.code != "unsupported_parameter":
            why += (
                " (the provider refuses it; a server that takes it is played with "
                f"script([...], ignored=[{name!r}]), or serve --ignore {name})"
            )
        raise BadRequest(why, parameter=refusal.parameter, code=refusal.code)


# ---- shapes


def _typed(parts: JSON, where: str, parameter: str) -> Refusals:
    """Yield the errors in objects with a type of their own: a part of a message, a block, a tool."""
    for number, part in numbered_objects(parts):
        place = f"{where}[{number}]"
        if not isinstance(part.get("type"), str):
            yield Refusal(parameter, _no_string(f"{place}.type", part, "type"))
        elif part["type"] == "text" and parameter != "tools" and not isinstance(part.get("text"), str):
            yield Refusal(parameter, _no_string(f"{place}.text", part, "text"))


def _typed_contents(body: Body, parameter: str) -> Refusals:
    for number, message in numbered_objects(body.get(parameter)):
        yield from _typed(message.get("content"), f"{parameter}[{number}].content", parameter)


def _no_string(where: str, given: Body, member: str) -> str:
    found = f"{str(given[member])[:80]!r}" if member in given else "nothing"
    return f"{where}: expected a string, got {found}"


def numbered_objects(values: JSON) -> list[tuple[int, dict[str, Any]]]:
    """Return the objects in a list with their numbers; empty for anything but a list."""
    given = values if isinstance(values, list) else []
    return [(number, value) for number, value in enumerate(given) if isinstance(value, dict)]


# ---- OpenAI

MOST_TOOLS: Final = 128
"""https://github.com/zed-industries/zed/issues/32946"""

TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]+")
"""https://github.com/run-llama/llama_index/issues/16093"""

ONLY_WITH_TOOLS: Final = ("tool_choice", "parallel_tool_calls")
"""https://github.com/openai/swarm/issues/30, https://github.com/writer/writer-framework/pull/1013"""

NOT_AT_THE_TOP: Final = ("oneOf", "anyOf", "allOf", "enum", "not")
"""https://github.com/chatanywhere/GPT_API_free/issues/403"""


def _openai_shapes(body: Body, model: str) -> Refusals:
    yield from _typed_contents(body, "messages")
    yield from _typed(body.get("tools"), "tools", "tools")


def _responses_shapes(body: Body, model: str) -> Refusals:
    yield from _typed_contents(body, "input")
    yield from _typed(body.get("tools"), "tools", "tools")


def _only_with_tools(body: Body, model: str) -> Refusals:
    for name in ONLY_WITH_TOOLS:
        if body.get(name) is not None and not body.get("tools"):
            why = f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified."
            yield Refusal(name, why)


def _openai_functions(body: Body, model: str) -> Refusals:
    for number, tool in numbered_objects(body.get("tools")):
        function = tool.get("function")
        if isinstance(function, dict):
            yield from _function(function, f"tools[{number}].function")


def _responses_functions(body: Body, model: str) -> Refusals:
    for number, tool in numbered_objects(body.get("tools")):
        if tool.get("type") != "function":
            continue
        if "name" in tool:
            yield from _function(tool, f"tools[{number}]")
        else:
            # Tools in the shape of Chat Completions: https://github.com/microsoft/autogen/issues/6935
            where = f"tools[{number}].name"
            yield Refusal(where, f"Missing required parameter: '{where}'.", "missing_required_parameter")


def _reasoning_alone(body: Body, model: str) -> Refusals:
    """A reasoning item requires the model's next item after it.

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


def _number_of_tools(body: Body, model: str) -> Refusals:
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
    """Yield the places of errors in a function's schema, and the errors."""
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
    """Yield the schema and its subschemas, each with the path that OpenAI calls its context."""
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
"""The beta that allows `THINKING_BUDGET` to be larger than `max_tokens`.

https://platform.claude.com/docs/en/build-with-claude/extended-thinking
"""

_THOUGHT: Final = ("thinking", "redacted_thinking")


def _anthropic_shapes(body: Body, model: str) -> Refusals:
    yield from _typed(body.get("system"), "system", "system")
    yield from _typed_contents(body, "messages")
    for number, tool in numbered_objects(body.get("tools")):
        kind = tool.get("type")
        if kind is not None and not isinstance(kind, str):
            yield Refusal("tools", _no_string(f"tools[{number}].type", tool, "type"))
        elif kind is None and not isinstance(tool.get("name"), str):
            yield Refusal("tools", _no_string(f"tools[{number}].name", tool, "name"))


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


def _empty_texts(body: Body, model: str) -> Refusals:
    """https://github.com/anthropics/claude-code/issues/59812, https://github.com/anthropics/claude-code/issues/23440."""
    for _, message in numbered_objects(body.get("messages")):
        for _, block in numbered_objects(message.get("content")):
            text = block.get("text") if block.get("type") == "text" else None
            if isinstance(text, str) and not text.strip():
                must = "contain non-whitespace text" if text else "be non-empty"
                yield Refusal("messages", f"messages: text content blocks must {must}")


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


def _top_of_schemas(body: Body, model: str) -> Refusals:
    """https://github.com/marianfoo/mcp-sap-docs/pull/51."""
    for number, tool in numbered_objects(body.get("tools")):
        schema = tool.get("input_schema")
        if isinstance(schema, dict) and not schema.keys().isdisjoint(("oneOf", "allOf", "anyOf")):
            yield Refusal(
                "tools",
                f"tools.{number}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top "
                "level",
            )


def _thinking_of_the_turn(body: Body, model: str) -> Refusals:
    """The model's last turn, if it called tools, must be sent back with its signed thinking.

    https://github.com/pydantic/pydantic-ai/issues/2075, and for a signature
    https://github.com/cytostack/openwolf/issues/19
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

_PART: Final = frozenset(
    {
        "text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode",
        "codeExecutionResult", "toolCall", "toolResponse", "thought", "thoughtSignature",
    }
)  # fmt: skip
"""The kinds of parts."""

_TOOL: Final = frozenset(
    {
        "functionDeclarations", "googleSearch", "googleSearchRetrieval", "codeExecution", "urlContext", "googleMaps",
        "computerUse", "fileSearch", "retrieval", "enterpriseWebSearch", "mcpServers", "parallelAiSearch",
    }
)  # fmt: skip
"""The kinds of tools."""


def _gemini_shapes(body: Body, model: str) -> Refusals:
    inner = body.get("generateContentRequest")
    members = inner if isinstance(inner, dict) and "contents" not in body else body
    for number, content in numbered_objects(members.get("contents")):
        yield from wrong_parts(content.get("parts"), f"contents[{number}].parts", "contents")
    prompt = members.get("systemInstruction")
    if isinstance(prompt, dict):
        yield from wrong_parts(prompt.get("parts"), "systemInstruction.parts", "systemInstruction")
    for number, tool in numbered_objects(members.get("tools")):
        if tool and _TOOL.isdisjoint(tool):
            yield Refusal("tools", f"tools[{number}]: expected a kind of tool, got {', '.join(tool)[:80]}")


def wrong_parts(parts: JSON, where: str, parameter: str) -> Refusals:
    """Yield the refusals of the parts of a content."""
    for number, part in numbered_objects(parts):
        text, place = part.get("text"), f"{where}[{number}]"
        if _PART.isdisjoint(part):
            yield Refusal(parameter, f"{place}: expected something in it, as text or inlineData")
        elif text is not None and not isinstance(text, str):
            yield Refusal(parameter, _no_string(f"{place}.text", part, "text"))


def _signatures(body: Body, model: str) -> Refusals:
    """The first call of each step since the user's last message must have its signature.

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
    """Return the start of the model's turn: after the user's last content that is not a tool result."""
    for place in range(len(contents) - 1, -1, -1):
        content = contents[place][1]
        parts = [part for _, part in numbered_objects(content.get("parts"))]
        if content.get("role", "user") == "user" and not any(part.get("functionResponse") for part in parts):
            return place
    return 0


Rule = Callable[[Body, str], Refusals]

RULES: Final[Mapping[FormatName, tuple[Rule, ...]]] = {
    "openai": (_openai_shapes, _only_with_tools, _number_of_tools, _openai_functions),
    "responses": (_responses_shapes, _number_of_tools, _responses_functions, _reasoning_alone),
    "anthropic": (
        _anthropic_shapes,
        _thinking_budget,
        _empty_texts,
        _cached,
        _top_of_schemas,
        _thinking_of_the_turn,
    ),
    "gemini": (_gemini_shapes, _signatures),
}
"""The refusals of each provider: functions of the body and the model."""


# ---- calls of tools and their results must alternate

_WITHOUT_RESULT: Final[Mapping[FormatName, str]] = {
    "openai": "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: {ids}",
    "responses": "No tool output found for function call {ids}.",
    "anthropic": "`tool_use` ids were found without `tool_result` blocks immediately after: {ids}. Each `tool_use` "
    "block must have a corresponding `tool_result` block in the next message.",
    "gemini": "Please ensure that the number of function response parts is equal to the number of function call parts "
    "of the function call turn.",
}
_WITHOUT_CALL: Final[Mapping[FormatName, str]] = {
    "openai": "Invalid parameter: messages with role 'tool' must be a response to a preceding message with "
    "'tool_calls'; there is no call {ids}",
    "responses": "No tool call found for function call output with call_id {ids}.",
    "anthropic": "unexpected `tool_use_id` found in `tool_result` blocks: {ids}. Each `tool_result` block must have a "
    "corresponding `tool_use` block in the previous message.",
    "gemini": "Please ensure that function response turn comes immediately after a function call turn.",
}

_MERGED: Final = ("anthropic", "gemini")
"""Formats in which consecutive messages of one role are one turn: https://platform.claude.com/docs/en/api/messages."""


def out_of_turn(messages: Sequence[Message], wire: FormatName) -> Refusals:
    """Yield why a format's provider refuses a conversation, in OpenAI's shape; at most one reason."""
    open_calls: Counter[str] = Counter()
    role: JSON = None
    for message in messages:
        before, role = role, message.get("role")
        if role == "tool":
            answered = _key(message.get("tool_call_id"), wire)
            if not open_calls[answered]:
                yield Refusal("messages", _WITHOUT_CALL[wire].format(ids=answered))
                return
            open_calls[answered] -= 1
            continue
        calls = Counter(_key(call.get("id"), wire) for _, call in numbered_objects(message.get("tool_calls")))
        if wire in _MERGED and before == role == "assistant":
            calls += open_calls
        elif open_calls.total():
            break
        open_calls = calls
    else:
        # Google accepts a turn of calls at the end.
        if wire == "gemini":
            return
    if open_calls.total():
        ids = ", ".join(name for name, times in open_calls.items() if times)
        yield Refusal("messages", _WITHOUT_RESULT[wire].format(ids=ids))


def _key(name: JSON, wire: FormatName) -> str:
    """Return the key that matches a call and its result; Google counts them, and their ids are optional."""
    return "" if wire == "gemini" else str(name)
