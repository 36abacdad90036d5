"""The rules by which providers reject requests: structure, schemas, thinking, signatures and turns.

`RULES` maps each format to its rules, which are functions of the parsed body. Each rule links to the public report that
it is based on. Requests from STATEK and in cassettes are not checked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from statek_sim.errors import BadRequest
from statek_sim.providers.wire.gemini import needs_signatures
from statek_sim.providers.wire.parameters import Refusal
from statek_sim.providers.wire.request import FormatName
from statek_sim.server.anthropic_refusals import ANTHROPIC_RULES, INTERLEAVED, THINKING_BUDGET
from statek_sim.server.request_shapes import (
    Body,
    Refusals,
    no_string,
    numbered_objects,
    typed,
    typed_contents,
)
from statek_sim.server.schema_refusals import gemini_arrays, openai_problem
from statek_sim.values import JSON, Message


def refusals(wire: FormatName, body: JSON, model: str) -> Refusals:
    """Yield the provider's reasons for rejecting a request body for this model, in rule order."""
    if isinstance(body, dict):
        for rule in RULES[wire]:
            yield from rule(body, model)


def check_refusals(refused: Iterable[Refusal], ignored: Collection[str], betas: str = "") -> None:
    """Raise `BadRequest` for the first refusal whose parameter is not ignored; `betas` is the Anthropic beta header."""
    for refusal in refused:
        name = re.split(r"[.\[]", refusal.parameter)[0]
        if {name, refusal.parameter} & set(ignored):
            continue
        if refusal.parameter == THINKING_BUDGET and INTERLEAVED in betas:
            continue
        why = refusal.why
        if refusal.code != "unsupported_parameter":
            why += (
                " (the provider rejects this; to accept it here, use "
                f"script([...], ignored=[{name!r}]), or serve --ignore {name})"
            )
        raise BadRequest(why, parameter=refusal.parameter, code=refusal.code)


# ---- OpenAI

MOST_TOOLS: Final = 128
"""https://github.com/zed-industries/zed/issues/32946"""

TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]+")
"""https://github.com/run-llama/llama_index/issues/16093, https://github.com/mcp-use/mcp-use/issues/90 for calls"""

LONGEST_TOOL_NAME: Final = 64
"""https://github.com/danny-avila/LibreChat/issues/7435"""

ONLY_WITH_TOOLS: Final = ("tool_choice", "parallel_tool_calls")
"""https://github.com/openai/swarm/issues/30, https://github.com/writer/writer-framework/pull/1013"""


def _openai_shapes(body: Body, model: str) -> Refusals:
    yield from typed_contents(body, "messages")
    yield from typed(body.get("tools"), "tools", "tools")


def _responses_shapes(body: Body, model: str) -> Refusals:
    yield from typed_contents(body, "input")
    yield from typed(body.get("tools"), "tools", "tools")


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
    """Reject a reasoning item that is not followed by the model's next item.

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
    if isinstance(name, str):
        yield from _tool_name(name, f"{where}.name")
    schema = function.get("parameters")
    if isinstance(schema, dict) and (why := openai_problem(schema, strict=function.get("strict") is True)):
        yield Refusal(
            f"{where}.parameters",
            f"Invalid schema for function '{name}': {why}",
            "invalid_function_parameters",
        )


def _tool_name(name: str, where: str) -> Refusals:
    if not TOOL_NAME.fullmatch(name):
        yield Refusal(
            where,
            f"Invalid '{where}': string does not match pattern. Expected a string that matches the pattern "
            f"'^{TOOL_NAME.pattern}$'.",
        )
    elif len(name) > LONGEST_TOOL_NAME:
        yield Refusal(
            where,
            f"Invalid '{where}': string too long. Expected a string with maximum length {LONGEST_TOOL_NAME}, but got a "
            f"string with length {len(name)} instead.",
            "string_above_max_length",
        )


def _openai_calls(body: Body, model: str) -> Refusals:
    """Empty lists of calls: https://github.com/openai/openai-node/pull/1341."""
    for number, message in numbered_objects(body.get("messages")):
        calls, where = message.get("tool_calls"), f"messages[{number}].tool_calls"
        if calls == []:
            yield Refusal(
                where,
                f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array "
                "instead.",
                "empty_array",
            )
        for place, call in numbered_objects(calls):
            function = call.get("function")
            name = function.get("name") if isinstance(function, dict) else None
            if isinstance(name, str):
                yield from _tool_name(name, f"{where}[{place}].function.name")


def _openai_answer(body: Body, model: str) -> Refusals:
    """https://github.com/dottxt-ai/outlines/issues/844."""
    wanted = body.get("response_format")
    yield from _answer_format(
        wanted.get("json_schema") if isinstance(wanted, dict) else None, "response_format"
    )


def _responses_answer(body: Body, model: str) -> Refusals:
    """https://github.com/mavam/pi-web-providers/issues/14."""
    text = body.get("text")
    yield from _answer_format(text.get("format") if isinstance(text, dict) else None, "text.format.schema")


def _answer_format(wanted: JSON, parameter: str) -> Refusals:
    if not isinstance(wanted, dict) or wanted.get("strict") is not True:
        return
    schema = wanted.get("schema")
    if isinstance(schema, dict) and (why := openai_problem(schema, strict=True)):
        why = f"Invalid schema for response_format '{wanted.get('name')}': {why}"
        yield Refusal(parameter, why, "invalid_json_schema")


# ---- Google

GEMINI_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
"""https://github.com/google-gemini/gemini-cli/issues/6704; newer versions of the API accept colons."""

_PART: Final = frozenset(
    {
        "text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode",
        "codeExecutionResult", "toolCall", "toolResponse", "thought", "thoughtSignature",
    }
)  # fmt: skip
"""The keys that determine a part's kind."""

_TOOL: Final = frozenset(
    {
        "functionDeclarations", "googleSearch", "googleSearchRetrieval", "codeExecution", "urlContext", "googleMaps",
        "computerUse", "fileSearch", "retrieval", "enterpriseWebSearch", "mcpServers", "parallelAiSearch",
    }
)  # fmt: skip
"""The keys that determine a tool's kind."""


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
            yield Refusal(
                "tools", f"tools[{number}]: expected a known kind of tool, got {', '.join(tool)[:80]}"
            )


def _declared(body: Body, model: str) -> Refusals:
    for number, tool in numbered_objects(body.get("tools")):
        for place, declared in numbered_objects(tool.get("functionDeclarations")):
            where = f"GenerateContentRequest.tools[{number}].function_declarations[{place}]"
            name, schema = declared.get("name"), declared.get("parameters")
            if isinstance(name, str) and not GEMINI_NAME.fullmatch(name):
                yield Refusal(
                    "tools",
                    f"{where}.name: Invalid function name. Must start with a letter or an underscore. Must be "
                    "alphameric (a-z, A-Z, 0-9), underscores (_), dots (.) or dashes (-), with a maximum length of 64.",
                )
            for array in gemini_arrays(schema, f"{where}.parameters") if isinstance(schema, dict) else ():
                yield Refusal("tools", f"{array}: missing field.")


def wrong_parts(parts: JSON, where: str, parameter: str) -> Refusals:
    """Yield the errors in a message's parts; `where` is the path to the list, `parameter` the rejected parameter."""
    for number, part in numbered_objects(parts):
        text, place = part.get("text"), f"{where}[{number}]"
        if _PART.isdisjoint(part):
            yield Refusal(parameter, f"{place}: expected a member such as text or inlineData")
        elif text is not None and not isinstance(text, str):
            yield Refusal(parameter, no_string(f"{place}.text", part, "text"))


def _signatures(body: Body, model: str) -> Refusals:
    """Reject a call without a signature if it is the first call in a step after the user's last message.

    https://github.com/nearai/ironclaw/issues/1510
    """
    if not needs_signatures(model):
        return
    contents = numbered_objects(body.get("contents"))
    signed = False
    for number, content in contents[_start_of_turn(contents) :]:
        # Contents of the model in a row are one step.
        signed = signed and content.get("role") == "model"
        calls = [part for _, part in numbered_objects(content.get("parts")) if part.get("functionCall")]
        if content.get("role") != "model" or not calls or signed:
            continue
        signed = bool(calls[0].get("thoughtSignature"))
        if not signed:
            call = calls[0].get("functionCall")
            name = call.get("name") if isinstance(call, dict) else call
            yield Refusal(
                "contents",
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                f"work correctly. Additional data, function call `default_api:{name}`, position {number + 1}.",
            )


def _start_of_turn(contents: list[tuple[int, dict[str, Any]]]) -> int:
    """Return the index of the user's last content that is not a tool result, or 0."""
    for place in range(len(contents) - 1, -1, -1):
        content = contents[place][1]
        parts = [part for _, part in numbered_objects(content.get("parts"))]
        if content.get("role", "user") == "user" and not any(part.get("functionResponse") for part in parts):
            return place
    return 0


Rule = Callable[[Body, str], Refusals]

RULES: Final[Mapping[FormatName, tuple[Rule, ...]]] = {
    "openai": (
        _openai_shapes,
        _only_with_tools,
        _number_of_tools,
        _openai_functions,
        _openai_calls,
        _openai_answer,
    ),
    "responses": (
        _responses_shapes,
        _number_of_tools,
        _responses_functions,
        _responses_answer,
        _reasoning_alone,
    ),
    "anthropic": ANTHROPIC_RULES,
    "gemini": (_gemini_shapes, _declared, _signatures),
}
"""The rules for each format: functions of the body and the model that yield refusals."""


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
"""Formats that merge consecutive messages with the same role: https://platform.claude.com/docs/en/api/messages."""


def out_of_turn(messages: Sequence[Message], wire: FormatName) -> Refusals:
    """Yield at most one reason why a provider rejects a conversation: calls without results, or vice versa.

    `messages` are in the OpenAI format.
    """
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
        # Google accepts a turn of calls at the end, but not with a part of its results.
        if wire == "gemini" and role == "assistant":
            return
    if open_calls.total():
        ids = ", ".join(name for name, times in open_calls.items() if times)
        yield Refusal("messages", _WITHOUT_RESULT[wire].format(ids=ids))


def _key(name: JSON, wire: FormatName) -> str:
    """Return the key shared by a call and its result. Google counts calls, because call ids are optional."""
    return "" if wire == "gemini" else str(name)
