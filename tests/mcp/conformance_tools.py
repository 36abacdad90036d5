"""The tools, resources and prompts that the scenarios of `@modelcontextprotocol/conformance` use."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from statek_sim.mcp.primitives import PromptCode
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

RESOURCES: dict[str, str | bytes] = {
    "test://static-text": "This is the content of the static text resource.",
    "test://static-binary": base64.b64decode(PIXEL),
}

Messages = list[dict[str, object]]


def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


def test_prompt_with_embedded_resource(resourceUri: str) -> Messages:  # noqa: N803  # the scenario's
    """A prompt with a resource in it."""
    resource = {
        "uri": resourceUri,
        "mimeType": "text/plain",
        "text": "Embedded resource content for testing.",
    }
    return [
        {"role": "user", "content": {"type": "resource", "resource": resource}},
        {"role": "user", "content": "Please process the embedded resource above."},
    ]


def test_prompt_with_image() -> Messages:
    """A prompt with a picture in it."""
    return [
        {"role": "user", "content": IMAGE},
        {"role": "user", "content": "Please analyze the image above."},
    ]


PROMPTS: list[PromptCode] = [
    test_simple_prompt,
    test_prompt_with_arguments,
    test_prompt_with_embedded_resource,
    test_prompt_with_image,
]
