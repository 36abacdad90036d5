"""The tools that the scenarios of `@modelcontextprotocol/conformance` call."""

from __future__ import annotations

from collections.abc import Mapping

from statek_sim.mcp.server import CallResult, ServedTool, text_result
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
    async def run(arguments: Mapping[str, JSON]) -> CallResult:
        return CallResult(content=blocks)

    return run


async def fails(arguments: Mapping[str, JSON]) -> CallResult:
    return text_result("This tool intentionally returns an error for testing", is_error=True)


def tool(name: str, run: object, **schema: JSON) -> ServedTool:
    return ServedTool(
        name=name,
        run=run,  # type: ignore[arg-type]  # made above
        description=f"{name}.",
        input_schema={"type": "object", "properties": {}, **schema},
    )


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
    tool("test_error_handling", fails),
    tool(
        "json_schema_2020_12_tool",
        gives({"type": "text", "text": "ok"}),
        **JSON_SCHEMA,
    ),
]
