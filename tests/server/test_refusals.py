"""What providers refuse with status 400 although it is well formed, and what looks like it and is taken."""

from __future__ import annotations

import json
import re
from typing import Any

from statek_sim.providers.script import raw, text, tool_call
from statek_sim.server.exchange import Whole
from statek_sim.server.llm import FakeLLM
from tests.server.asking import (
    ANTHROPIC,
    ANTHROPIC_TOOLS,
    GEMINI,
    GEMINI_TOOLS,
    OPENAI,
    anthropic,
    ask,
    gemini,
    openai,
    streamed,
    whole,
)
from tests.tables import table_test

RESPONSES = "/v1/responses"
GEMINI_3 = "/v1beta/models/gemini-3-pro-preview:generateContent"
GEMINI_3_STREAM = "/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse"
CITY: Any = {"type": "object", "properties": {"city": {"type": "string"}}}
STRICT: Any = {**CITY, "required": ["city"], "additionalProperties": False}
CACHED: Any = {"cache_control": {"type": "ephemeral"}}
CALL: Any = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
RESULT: Any = {"type": "tool_result", "tool_use_id": "c1", "content": "seen"}
THOUGHT: Any = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
ENABLED: Any = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2048}


def function(parameters: Any = STRICT, name: str = "look", **options: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters, **options}}


def responses(*items: Any, **options: Any) -> dict[str, Any]:
    return {"model": "gpt-5", "input": [*items], **options}


def turns(*blocks: Any, **options: Any) -> dict[str, Any]:
    """Return a request at Anthropic's whose model said some blocks, one of them a call that has its result."""
    said = [{"role": "assistant", "content": [*blocks]}, {"role": "user", "content": [{**RESULT}]}]
    return anthropic(**options) | {"messages": [{"role": "user", "content": "hi"}, *said]}


def gemini_turns(*parts: Any) -> dict[str, Any]:
    answered = {"functionResponse": {"name": "look", "response": {"content": "seen"}}}
    first = gemini()["contents"]
    return {
        "contents": [
            *first,
            {"role": "model", "parts": [*parts]},
            {"role": "user", "parts": [answered] * len(parts)},
        ]
    }


def called(**beside: Any) -> dict[str, Any]:
    return {"functionCall": {"name": "look", "args": {}}, **beside}


def listing(items: Any) -> dict[str, Any]:
    return function({"type": "object", "properties": {"all": items}})


def top_level(parameter: str) -> str:
    return re.split(r"[.\[]", parameter)[0]


def words(number: int, **beside: Any) -> list[Any]:
    return [{"type": "text", "text": f"word {one}", **beside} for one in range(number)]


def answered(schema: Any, *, strict: bool = True) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "note", "schema": schema, "strict": strict}}


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def strictly(schema: Any) -> dict[str, Any]:
    return openai(tools=[function(schema, strict=True)])


PARAMETERS = "tools[0].function.parameters"
USER: Any = {"role": "user", "content": "hi"}
REASONING: Any = {"type": "reasoning", "id": "rs_1", "summary": []}
CALLED: Any = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
OUTPUT: Any = {"type": "function_call_output", "call_id": "c1", "output": "seen"}
SPOKEN: Any = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "So."}]}


@table_test(
    ("target", "body", "parameter", "words"),
    [
        (OPENAI, openai(tool_choice="auto"), "tool_choice", "'tool_choice' is only allowed when 'tools' are specified"),
        (OPENAI, openai(tools=[], parallel_tool_calls=True), "parallel_tool_calls", "only allowed when 'tools'"),
        (OPENAI, openai(tools=[function()] * 129), "tools", "maximum length 128, but got an array with length 129"),
        (OPENAI, openai(tools=[function(name="get.it")]), "tools[0].function.name", "does not match pattern"),
        (OPENAI, openai(tools=[function(name="")]), "tools[0].function.name", "'^[a-zA-Z0-9_-]+$'"),
        (
            OPENAI,
            openai(tools=[function(), function({"type": "object"}, strict=True)]),
            "tools[1].function.parameters",
            "Invalid schema for function 'look': In context=(), object schema missing properties.",
        ),
        (
            OPENAI,
            openai(tools=[listing({"type": "array"})]),
            PARAMETERS,
            "In context=('properties', 'all'), array schema missing items.",
        ),
        (
            OPENAI,
            openai(tools=[listing({"type": "array", "items": {"type": "array"}})]),
            PARAMETERS,
            "In context=('properties', 'all', 'items'), array schema missing items.",
        ),
        (
            OPENAI,
            openai(tools=[function({"anyOf": [CITY, CITY]})]),
            PARAMETERS,
            "schema must have type 'object' and not have 'oneOf'/'anyOf'",
        ),
        (
            OPENAI,
            openai(tools=[function({**CITY, "required": ["city"]}, strict=True)]),
            PARAMETERS,
            "'additionalProperties' is required to be supplied and to be false.",
        ),
        (
            OPENAI,
            openai(tools=[function({**CITY, "additionalProperties": False}, strict=True)]),
            PARAMETERS,
            "Missing 'city'.",
        ),
        (OPENAI, openai(tools=[function(name="a" * 65)]), "tools[0].function.name", "maximum length 64, but got"),
        (OPENAI, openai(tools=[function({"type": "string"})]), PARAMETERS, "got 'type: \"string\"'."),
        (OPENAI, openai(tools=[function({"properties": {}})]), PARAMETERS, "got 'type: \"None\"'."),
        (
            OPENAI,
            strictly(closed(city={"$ref": "#/$defs/City", "description": "Where."})),
            PARAMETERS,
            "context=('properties', 'city'), $ref cannot have keywords {'description'}.",
        ),
        (OPENAI, strictly(closed(city={"oneOf": [STRICT]})), PARAMETERS, "'oneOf' is not permitted."),
        (OPENAI, strictly(closed(city={})), PARAMETERS, "schema must have a 'type' key."),
        (OPENAI, strictly({**STRICT, "required": ["city", "day"]}), PARAMETERS, "Extra required key 'day'"),
        (
            OPENAI,
            openai(response_format=answered(CITY)),
            "response_format",
            "Invalid schema for response_format 'note': In context=(), 'additionalProperties' is required",
        ),
        (OPENAI, openai(response_format=answered(closed(all={"type": "array"}))), "response_format", "missing items."),
        (
            RESPONSES,
            responses(USER, text={"format": {"type": "json_schema", "name": "note", "schema": CITY, "strict": True}}),
            "text.format.schema",
            "Invalid schema for response_format 'note'",
        ),
        (
            OPENAI,
            {"model": "gpt-4o", "messages": [USER, {"role": "assistant", "content": "Hm.", "tool_calls": []}, USER]},
            "messages[1].tool_calls",
            "Expected an array with minimum length 1, but got an empty array instead.",
        ),
        (RESPONSES, responses(USER, tools=[function()]), "tools[0].name", "Missing required parameter"),
        (
            RESPONSES,
            responses(USER, tools=[{"type": "function", "name": "look", "parameters": {"oneOf": []}}]),
            "tools[0].parameters",
            "at the top level",
        ),
        (RESPONSES, responses(USER, REASONING), "input", "Item 'rs_1' of type 'reasoning' was provided without"),
        (RESPONSES, responses(USER, REASONING, USER), "input", "its required following item"),
        (RESPONSES, responses(USER, CALLED, REASONING, OUTPUT), "input", "its required following item"),
        (
            ANTHROPIC,
            anthropic(thinking={"type": "enabled", "budget_tokens": 2048}, max_tokens=2048),
            "thinking.budget_tokens",
            "`max_tokens` must be greater than `thinking.budget_tokens`",
        ),
        (
            ANTHROPIC,
            anthropic(thinking={"type": "enabled", "budget_tokens": 100}, max_tokens=2048),
            "thinking",
            "greater than or equal to 1024",
        ),
        (ANTHROPIC, anthropic([{"type": "text", "text": ""}]), "messages", "text content blocks must be non-empty"),
        (ANTHROPIC, anthropic([{"type": "text", "text": " \n"}]), "messages", "must contain non-whitespace text"),
        (ANTHROPIC, anthropic(words(5, **CACHED)), "cache_control", "A maximum of 4 blocks"),
        (ANTHROPIC, anthropic(words(4, **CACHED), system=words(1, **CACHED)), "cache_control", "Found 5."),
        (
            ANTHROPIC,
            anthropic(tools=[{"name": "look", "input_schema": {"oneOf": [CITY]}}]),
            "tools",
            "does not support oneOf, allOf, or anyOf at the top level",
        ),
        (ANTHROPIC, turns(CALL, **ENABLED), "messages", "Expected `thinking` or"),
        (ANTHROPIC, turns(*words(1), CALL, **ENABLED), "messages", "messages.1.content.0.type"),
        (ANTHROPIC, turns(THOUGHT | {"signature": ""}, CALL, **ENABLED), "messages", "Invalid `signature`"),
        (ANTHROPIC, turns({"type": "thinking"}, CALL, **ENABLED), "messages", "messages.1.content.0"),
        (ANTHROPIC, turns({"type": "thinking", "thinking": "Hm."}, CALL), "messages", "thinking.signature: Field"),
        (ANTHROPIC, turns({"type": "thinking", "signature": "c2ln"}, CALL), "messages", "thinking.thinking: Field"),
        (ANTHROPIC, anthropic(**ENABLED, temperature=0.5), "temperature", "may only be set to 1 when"),
        (
            ANTHROPIC,
            anthropic(**ENABLED, tools=ANTHROPIC_TOOLS, tool_choice={"type": "any"}),
            "thinking",
            "Thinking may not be enabled when tool_choice forces tool use.",
        ),
        (ANTHROPIC, anthropic(system=[{"type": "text", "text": " "}]), "system", "system: text content blocks"),
        (ANTHROPIC, anthropic(system=" "), "system", "system: text content blocks must contain non-whitespace text"),
        (ANTHROPIC, anthropic(""), "messages", "messages.0: all messages must have non-empty content"),
        (ANTHROPIC, anthropic(" "), "messages", "messages: text content blocks must contain non-whitespace text"),
        (
            ANTHROPIC,
            anthropic() | {"messages": [USER, {"role": "assistant", "content": "So "}]},
            "messages",
            "final assistant content cannot end with trailing whitespace",
        ),
        (ANTHROPIC, anthropic(tools=[{"name": "a.b", "input_schema": CITY}]), "tools", "tools.0.custom.name: String"),
        (ANTHROPIC, anthropic(tools=ANTHROPIC_TOOLS * 2), "tools", "tools: Tool names must be unique."),
        (ANTHROPIC, anthropic(tools=[{"name": "look", "input_schema": {}}]), "tools", "input_schema.type: Field"),
        (ANTHROPIC, anthropic(tools=[{"name": "look"}]), "tools", "tools.0.custom.input_schema: Field required"),
        (
            GEMINI,
            gemini(tools=[{"functionDeclarations": [{"name": "look", "parameters": closed(all={"type": "ARRAY"})}]}]),
            "tools",
            "tools[0].function_declarations[0].parameters.properties[all].items: missing field.",
        ),
        (GEMINI, gemini(tools=[{"functionDeclarations": [{"name": "2nd look"}]}]), "tools", "Invalid function name."),
        (GEMINI_3, gemini_turns(called()), "contents", "missing a thought_signature in functionCall parts"),
        (GEMINI_3, gemini_turns(called(), called(thoughtSignature="x")), "contents", "`default_api:look`, position 2"),
    ],
)  # fmt: skip
def test_what_the_provider_refuses_is_a_400_in_its_words(
    target: str, body: Any, parameter: str, words: str
) -> None:
    answer = ask(FakeLLM([text("x")]), body, target)
    assert isinstance(answer, Whole)
    said = json.loads(answer.body)["error"]
    assert answer.status == 400
    assert words in said["message"]
    assert f"ignored=['{top_level(parameter)}']" in said["message"]
    if target in (OPENAI, RESPONSES):
        assert said["param"] == parameter
    taken = ask(FakeLLM([raw("{}")], ignored=[top_level(parameter)]), body, target)
    assert isinstance(taken, Whole)
    assert taken.status == 200, taken.body


@table_test(
    ("target", "body"),
    [
        (OPENAI, openai(tools=[function()] * 128)),
        (OPENAI, openai(tools=[function({"type": "object"}), function(name="get-it_2")])),
        (OPENAI, openai(tools=[function(STRICT, strict=True)], tool_choice="auto")),
        (OPENAI, openai(tools=[listing({"anyOf": [CITY, {"type": "null"}]})])),
        (OPENAI, strictly({**closed(city={"$ref": "#/$defs/City"}), "$defs": {"City": {"enum": ["Oslo"]}}})),
        (OPENAI, openai(tools=[function({}, name="a" * 64)])),
        (RESPONSES, responses(USER, REASONING, CALLED, OUTPUT)),
        (RESPONSES, responses(USER, REASONING, SPOKEN, USER)),
        (ANTHROPIC, anthropic(words(2, **CACHED), system=words(2, **CACHED))),
        (ANTHROPIC, anthropic(thinking={"type": "adaptive"})),
        (ANTHROPIC, turns(CALL)),
        (ANTHROPIC, turns(CALL, max_tokens=2048, thinking={"type": "disabled"})),
        (ANTHROPIC, turns(THOUGHT, CALL, **ENABLED)),
        (ANTHROPIC, anthropic(**ENABLED, temperature=1, tools=ANTHROPIC_TOOLS, tool_choice={"type": "auto"})),
        (ANTHROPIC, anthropic() | {"messages": [USER, {"role": "assistant", "content": ""}]}),
        (ANTHROPIC, anthropic(system="")),
        (ANTHROPIC, anthropic(tools=[{"type": "bash_20250124", "name": "bash"}])),
        (ANTHROPIC, turns({"type": "redacted_thinking", "data": "x"}, CALL, **ENABLED)),
        (GEMINI, gemini_turns(called())),
        (GEMINI_3, gemini_turns(called(thoughtSignature="x"), called())),
        (GEMINI_3, gemini_turns(called(thought_signature="x"))),
        (GEMINI, gemini_turns(called(), called()) | {"contents": gemini_turns(called(), called())["contents"][:2]}),
        (GEMINI_3, {"contents": [*gemini_turns(called())["contents"], *gemini()["contents"]]}),
    ],
)  # fmt: skip
def test_what_looks_like_it_is_taken(target: str, body: Any) -> None:
    answer = ask(FakeLLM([text("x")]), body, target)
    assert isinstance(answer, Whole)
    assert answer.status == 200, answer.body


def test_a_budget_above_max_tokens_is_taken_with_interleaved_thinking() -> None:
    body = anthropic(thinking={"type": "enabled", "budget_tokens": 4096}, max_tokens=2048)
    answer = ask(FakeLLM([text("x")]), body, ANTHROPIC, anthropic_beta="interleaved-thinking-2025-05-14")
    assert isinstance(answer, Whole)
    assert answer.status == 200


def test_a_model_that_thinks_signs_what_it_is_asked_for_again() -> None:
    asked = anthropic(**ENABLED, tools=ANTHROPIC_TOOLS)
    said = whole(ask(FakeLLM([tool_call("look")]), asked, ANTHROPIC))["content"]
    assert [block["type"] for block in said] == ["thinking", "tool_use"]
    again = turns(*said, **ENABLED)
    again["messages"][-1]["content"][0]["tool_use_id"] = said[1]["id"]
    assert whole(ask(FakeLLM([text("x")]), again, ANTHROPIC))["content"][-1]["text"] == "x"

    answer = whole(ask(FakeLLM([tool_call("look")]), gemini(tools=GEMINI_TOOLS), GEMINI_3))
    [part] = answer["candidates"][0]["content"]["parts"]
    assert whole(ask(FakeLLM([text("x")]), gemini_turns(part), GEMINI_3))["candidates"]


def test_signatures_are_streamed_too() -> None:
    asked = anthropic(**ENABLED, tools=ANTHROPIC_TOOLS, stream=True)
    assert b'"type":"signature_delta"' in streamed(ask(FakeLLM([tool_call("look")]), asked, ANTHROPIC))
    events = streamed(ask(FakeLLM([tool_call("look")]), gemini(tools=GEMINI_TOOLS), GEMINI_3_STREAM))
    assert b'"thoughtSignature"' in events


def test_turns_of_one_role_in_a_row_are_one_turn() -> None:
    """Two messages of the model with one call each, and both results in one message of the user."""
    other = {**CALL, "id": "c2"}
    body = turns(CALL)
    body["messages"].insert(2, {"role": "assistant", "content": [other]})
    body["messages"][-1]["content"].append({**RESULT, "tool_use_id": "c2"})
    assert whole(ask(FakeLLM([text("x")]), body, ANTHROPIC))
    split_turn = turns(THOUGHT, CALL, **ENABLED)
    split_turn["messages"][1:2] = [{"role": "assistant", "content": [block]} for block in (THOUGHT, CALL)]
    assert whole(ask(FakeLLM([text("x")]), split_turn, ANTHROPIC))
    split = gemini_turns(called(), called())
    first, second = split["contents"][1]["parts"]
    split["contents"][1:2] = [{"role": "model", "parts": [first]}, {"role": "model", "parts": [second]}]
    assert whole(ask(FakeLLM([text("x")]), split, GEMINI))
    first["thoughtSignature"] = "x"
    assert whole(ask(FakeLLM([text("x")]), split, GEMINI_3))


def test_a_part_of_the_results_is_not_enough_for_google() -> None:
    body = gemini_turns(called(), called())
    del body["contents"][-1]["parts"][1:]
    answer = ask(FakeLLM([text("x")]), body, GEMINI)
    assert isinstance(answer, Whole)
    assert (answer.status, b"the number of function response parts" in answer.body) == (400, True)
