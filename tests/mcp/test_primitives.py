"""Resources and prompts of a server, asked for through the official SDK."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp import Client, MCPError

from statek_sim.errors import BadInput
from statek_sim.mcp.primitives import Prompts, Resources, ServedResource
from statek_sim.mcp.server import McpServer
from statek_sim.mcp.transports import McpHttpServer
from tests.tables import table_test

PICTURE = b"\x89PNG"


def greet(name: str, tone: str = "warm") -> str:
    """Greet somebody."""
    return f"Say hello to {name}, in a {tone} tone."


def review(code: str) -> list[dict[str, object]]:
    if not code:
        raise ValueError("no code")
    return [
        {"role": "user", "content": {"type": "text", "text": code}},
        {"role": "assistant", "content": "I read it."},
    ]


def with_client(server: McpServer, act: Callable[[Any], Awaitable[Any]]) -> Any:
    async def main(url: str) -> Any:
        async with Client(url) as client:
            return await act(client)

    with McpHttpServer(server) as http:
        return asyncio.run(main(http.url))


def refused(server: McpServer, act: Callable[[Any], Awaitable[Any]]) -> tuple[int, str]:
    """Return the code and message of the error that the SDK raises."""

    async def caught(client: Any) -> tuple[int, str]:
        with pytest.raises(MCPError) as error:
            await act(client)
        return error.value.error.code, error.value.error.message

    found: tuple[int, str] = with_client(server, caught)
    return found


def made(resources: Resources = (), prompts: Prompts = (greet, review)) -> McpServer:
    return McpServer([], resources=resources, prompts=prompts)


NOTES: dict[str, str | bytes] = {"notes://today": "Rain.", "notes://picture": PICTURE}


def test_resources_are_listed_and_read_by_the_sdk() -> None:
    server = made(NOTES)

    async def act(client: Any) -> Any:
        listed = (await client.list_resources()).resources
        return (
            listed,
            await client.read_resource("notes://today"),
            await client.read_resource("notes://picture"),
        )

    listed, text, picture = with_client(server, act)
    assert [(one.uri, one.mime_type) for one in listed] == [
        ("notes://today", "text/plain"),
        ("notes://picture", "application/octet-stream"),
    ]
    assert text.contents[0].text == "Rain."
    assert base64.b64decode(picture.contents[0].blob) == PICTURE
    read = [entry.name for entry in server.journal.entries if entry.method == "resources/read"]
    assert read == ["notes://today", "notes://picture"]


def test_a_resource_may_have_a_name_a_type_and_a_description() -> None:
    plan = ServedResource(
        uri="file:///plan.md",
        content="# Plan",
        name="plan",
        description="What to do.",
        mime_type="text/markdown",
    )

    async def act(client: Any) -> Any:
        templates = await client.list_resource_templates()
        return (await client.list_resources()).resources, templates.resource_templates

    (listed,), templates = with_client(made([plan]), act)
    assert (listed.name, listed.description, listed.mime_type) == ("plan", "What to do.", "text/markdown")
    assert templates == []


def test_prompts_are_listed_and_made_by_the_sdk() -> None:
    server = made()

    async def act(client: Any) -> Any:
        listed = (await client.list_prompts()).prompts
        return (
            listed,
            await client.get_prompt("greet", {"name": "Ada"}),
            await client.get_prompt("review", {"code": "x = 1"}),
        )

    listed, greeting, reviewed = with_client(server, act)
    assert [(one.name, one.description) for one in listed] == [("greet", "Greet somebody."), ("review", None)]
    assert [(one.name, one.required) for one in listed[0].arguments] == [("name", True), ("tone", False)]
    assert greeting.messages[0].content.text == "Say hello to Ada, in a warm tone."
    assert [(one.role, one.content.text) for one in reviewed.messages] == [
        ("user", "x = 1"),
        ("assistant", "I read it."),
    ]
    got = [(entry.name, entry.arguments) for entry in server.journal.entries if entry.method == "prompts/get"]
    assert got == [("greet", {"name": "Ada"}), ("review", {"code": "x = 1"})]


@table_test(
    ("act", "code", "message"),
    [
        (
            lambda client: client.read_resource("notes://toady"),
            -32002,
            "Resource not found: notes://toady. Did you mean 'notes://today'?",
        ),
        (lambda client: client.get_prompt("gret"), -32602, "Unknown prompt: gret. Did you mean 'greet'?"),
        (
            lambda client: client.get_prompt("greet", {"nam": "Ada"}),
            -32602,
            "prompt 'greet' has no argument 'nam'. Did you mean 'name'?",
        ),
        (lambda client: client.get_prompt("greet"), -32602, "prompt 'greet': missing arguments 'name'"),
        (lambda client: client.get_prompt("review", {"code": ""}), -32603, "ValueError: no code"),
    ],
)  # fmt: skip
def test_what_a_server_does_not_have_is_an_error(act: Any, code: int, message: str) -> None:
    assert refused(made(NOTES), act) == (code, message)


def test_a_server_without_resources_and_prompts_does_not_offer_them() -> None:
    async def act(client: Any) -> Any:
        return client.server_capabilities

    capabilities = with_client(made(prompts=()), act)
    assert (capabilities.resources, capabilities.prompts) == (None, None)
    missing = refused(made(), lambda client: client.read_resource("notes://today"))
    assert missing == (-32601, "Method not found: resources/read")


@table_test(
    ("resources", "prompts", "message"),
    [
        ((), (greet, greet), "MCP server 'statek-sim': prompt 'greet' is listed twice"),
        (
            [ServedResource(uri="a://b", content="")] * 2,
            (),
            "MCP server 'statek-sim': resource 'a://b' is listed twice",
        ),
        ((), greet, "expected a list, prompts=[...]"),
    ],
)  # fmt: skip
def test_what_cannot_be_served_is_refused(resources: Any, prompts: Any, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        made(resources, prompts)
    assert message in str(caught.value)
