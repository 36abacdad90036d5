"""The tools that the scenarios of `@modelcontextprotocol/conformance` call."""

from __future__ import annotations

from collections.abc import Mapping

from statek_sim.mcp.server import Asking, CallResult, ServedTool, text_result
from statek_sim.values import JSON

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SILENCE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
RESOURCE: dict[str, JSON] = {
    "type": "resource",
    "resource": {
        "uri": "test://embedded-resource",
        "mimeType": "text/plain",
        "text": "This is an embedded resource content.",
    },
}
IMAGE: dict[str, JSON] = {"type": "image", "data": PIXEL, "mimeType": "image/png"}


def gives(*blocks: Mapping[str, JSON]) -> object:
    async def run(arguments: Mapping[str, JSON], asking: Asking) -> CallResult:
        return CallResult(content=blocks)

    return run


async def logs(arguments: Mapping[str, JSON], asking: Asking) -> CallResult:
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await asking.log("info", line)
        await asking.sleep(0.05)
    return text_result("logged")


async def fails(arguments: Mapping[str, JSON], asking: Asking) -> CallResult:
    return text_result("This tool intentionally returns an error for testing", is_error=True)


async def progresses(arguments: Mapping[str, JSON], asking: Asking) -> CallResult:
    for done in (0, 50, 100):
        await asking.progress(done, 100)
        await asking.sleep(0.05)
    return text_result("done")


async def samples(arguments: Mapping[str, JSON], asking: Asking) -> CallResult:
    message: dict[str, JSON] = {"role": "user", "content": {"type": "text", "text": str(arguments["prompt"])}}
    said = await asking.ask("sampling/createMessage", {"messages": [message], "maxTokens": 100})
    return text_result(f"LLM response: {said}")


async def elicits(arguments: Mapping[str, JSON], asking: Asking) -> CallResult:
    properties: dict[str, JSON] = {"response": {"type": "string", "description": "User's response"}}
    schema: dict[str, JSON] = {"type": "object", "properties": properties, "required": ["response"]}
    said = await asking.ask(
        "elicitation/create", {"message": str(arguments["message"]), "requestedSchema": schema}
    )
    return text_result(f"User response: {said}")


def asks_for(properties: dict[str, JSON]) -> object:
    async def run(arguments: Mapping[str, JSON], asking: Asking) -> CallResult:
        schema: dict[str, JSON] = {"type": "object", "properties": properties, "required": []}
        said = await asking.ask("elicitation/create", {"message": "Please.", "requestedSchema": schema})
        return text_result(f"Elicitation completed: {said}")

    return run


def tool(name: str, run: object, **schema: JSON) -> ServedTool:
    return ServedTool(
        name=name,
        run=run,  # type: ignore[arg-type]  # made above
        description=f"{name}.",
        input_schema={"type": "object", "properties": {}, **schema},
    )


DEFAULTS: dict[str, JSON] = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
OPTIONS: list[JSON] = ["option1", "option2", "option3"]
TITLED: list[JSON] = [
    {"const": f"value{n}", "title": f"{word} Option"}
    for n, word in enumerate(("First", "Second", "Third"), 1)
]
ENUMS: dict[str, JSON] = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}

JSON_SCHEMA: dict[str, JSON] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}

TOOLS = [
    tool("test_simple_text", gives({"type": "text", "text": "This is a simple text response for testing."})),
    tool("test_image_content", gives(IMAGE)),
    tool("test_audio_content", gives({"type": "audio", "data": SILENCE, "mimeType": "audio/wav"})),
    tool("test_embedded_resource", gives(RESOURCE)),
    tool(
        "test_multiple_content_types",
        gives({"type": "text", "text": "Multiple content types test:"}, IMAGE, RESOURCE),
    ),
    tool("test_tool_with_logging", logs),
    tool("test_error_handling", fails),
    tool("test_tool_with_progress", progresses),
    tool("test_sampling", samples, properties={"prompt": {"type": "string"}}, required=["prompt"]),
    tool("test_elicitation", elicits, properties={"message": {"type": "string"}}, required=["message"]),
    tool("test_elicitation_sep1034_defaults", asks_for(DEFAULTS)),
    tool("test_elicitation_sep1330_enums", asks_for(ENUMS)),
    tool(
        "json_schema_2020_12_tool",
        gives({"type": "text", "text": "ok"}),
        **JSON_SCHEMA,
    ),
]
