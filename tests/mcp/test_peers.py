"""MCP's own programs: their server under our connection, their conformance tests against our server and connection."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.tools.registry import Registry
from statek_sim.mcp.client import Bounds, Http, McpServerSpec, McpSource, Stdio
from statek_sim.mcp.connection import McpConnection
from statek_sim.mcp.server import McpServer
from statek_sim.mcp.transports import McpHttpServer
from tests.mcp.conformance_tools import PROMPTS, RESOURCES, TOOLS
from tests.mcp.serving import ROOT, told
from tools.mcp_peers import Peers, ensure_peers
from tools.npm import NotHere

pytestmark = pytest.mark.slow

APPLY = {
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "json-schema-2020-12",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
}
"""The scenarios for what our server has: the protocol, tools, resources and prompts."""

NOT_OURS = {
    "completion-complete": "the server completes no arguments",
    "resources-templates-read": "the server has no templates",
    "resources-subscribe": "resources do not change",
    "resources-unsubscribe": "resources do not change",
    "logging-set-level": "the server logs nothing",
    "tools-call-with-logging": "the server logs nothing",
    "tools-call-with-progress": "tools tell no progress",
    "tools-call-sampling": "tools ask nothing of a client",
    "tools-call-elicitation": "tools ask nothing of a client",
    "elicitation-sep1034-defaults": "tools ask nothing of a client",
    "elicitation-sep1330-enums": "tools ask nothing of a client",
    "server-sse-polling": "streams that are taken up again are optional and not here; it checks nothing then",
}
"""The scenarios that do not apply, and why."""


@pytest.fixture(scope="module")
def peers() -> Peers:
    try:
        return ensure_peers()
    except NotHere as why:
        if os.environ.get("STATEK_MCP_PEERS_REQUIRED"):
            raise
        pytest.skip(f"MCP's own programs are not here: {why}")


# -- their server -----------------------------------------------------------------------------------------------


@pytest.fixture
def everything(peers: Peers) -> McpServerSpec:
    command, *arguments = peers.everything
    return McpServerSpec(
        name="every", at=Stdio(command=command, arguments=arguments), bounds=Bounds(call=20.0)
    )


def with_everything(spec: McpServerSpec, act: Callable[[McpConnection], Awaitable[None]]) -> None:
    async def main() -> None:
        async with McpConnection(spec) as connection:
            await act(connection)

    asyncio.run(main())


def test_the_reference_servers_tools_are_registered_and_called(everything: McpServerSpec) -> None:
    async def act(connection: McpConnection) -> None:
        registry = Registry()
        registry.follow(McpSource(connection))
        assert {"every__echo", "every__get-sum", "every__get-structured-content"} <= set(
            registry.offer().names
        )
        assert told(await connection.call("echo", {"message": "hi"})) == ("returned", "Echo: hi")
        assert told(await connection.call("get-sum", {"a": 1, "b": 2})) == (
            "returned",
            "The sum of 1 and 2 is 3.",
        )

    with_everything(everything, act)


def test_every_kind_of_content_of_the_reference_server_is_text_to_a_model(everything: McpServerSpec) -> None:
    async def act(connection: McpConnection) -> None:
        image = await connection.call("get-tiny-image", {})
        assert "[image image/png, 4033 bytes]" in image.text
        links = await connection.call("get-resource-links", {"count": 2})
        assert "demo://resource/dynamic/blob/1" in links.text
        resource = await connection.call("get-resource-reference", {"resourceType": "Text", "resourceId": 1})
        assert "[resource demo://resource/dynamic/text/1]\nResource 1: " in resource.text
        structured = await connection.call("get-structured-content", {"location": "Chicago"})
        assert set(json.loads(structured.text)) == {"temperature", "conditions", "humidity"}

    with_everything(everything, act)


def test_what_the_reference_server_refuses_is_a_result_with_its_words(everything: McpServerSpec) -> None:
    async def act(connection: McpConnection) -> None:
        status, text = told(await connection.call("get-structured-content", {"location": "Atlantis"}))
        assert status == "raised"
        assert text.startswith("McpToolFailed: MCP error -32602: Input validation error")

    with_everything(everything, act)


def test_a_call_of_the_reference_server_that_is_given_up_leaves_it_usable(everything: McpServerSpec) -> None:
    async def act(connection: McpConnection) -> None:
        call = asyncio.create_task(
            connection.call("trigger-long-running-operation", {"duration": 60, "steps": 2})
        )
        await asyncio.sleep(0.2)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert told(await connection.call("echo", {"message": "on"})) == ("returned", "Echo: on")

    with_everything(everything, act)


@pytest.fixture
def everything_over_http(peers: Peers) -> Iterator[McpServerSpec]:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = (*peers.everything, "streamableHttp")
    environment = {**os.environ, "PORT": str(port)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if str(port) in line:
                break
        yield McpServerSpec(
            name="every", at=Http(url=f"http://127.0.0.1:{port}/mcp"), bounds=Bounds(call=20.0)
        )
        process.kill()


def test_the_reference_server_is_called_over_http(everything_over_http: McpServerSpec) -> None:
    async def act(connection: McpConnection) -> None:
        assert told(await connection.call("get-sum", {"a": 20, "b": 22})) == (
            "returned",
            "The sum of 20 and 22 is 42.",
        )

    with_everything(everything_over_http, act)


def test_an_agent_calls_the_reference_server(everything: McpServerSpec) -> None:
    from statek_sim import ScriptedLLM, text, tool_call
    from statek_sim.agent.async_driver import AsyncDriver, LoopClock, model_of

    async def act(connection: McpConnection) -> None:
        registry = Registry()
        registry.follow(McpSource(connection))
        clock = LoopClock()
        run = AgentHarness(tools=registry).begin("Add 1 and 2.", clock=clock)
        model = model_of(ScriptedLLM([tool_call("every__get-sum", a="1", b=2), text("3.")]))
        await AsyncDriver(model, clock=clock.now).run(run)
        assert run.answer == "3."
        assert [call["result"] for call in run.calls] == ["The sum of 1 and 2 is 3."]

    with_everything(everything, act)


# -- their conformance tests ------------------------------------------------------------------------------------


def ran(peers: Peers, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = (*peers.conformance, *arguments, "-o", str(folder))
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def checks(folder: Path, scenario: str) -> list[str]:
    """Return the outcomes of a scenario's checks."""
    found = [place for place in folder.iterdir() if place.name.startswith(f"{scenario}-2")]
    assert len(found) == 1, f"{scenario}: {[place.name for place in folder.iterdir()]}"
    told = json.loads((found[0] / "checks.json").read_text("utf-8"))
    return [one["status"] for one in told if one["status"] != "INFO"]


def test_the_server_scenarios_are_those_that_are_known_here(peers: Peers) -> None:
    listed = subprocess.run((*peers.conformance, "list"), capture_output=True, text=True, check=True).stdout
    servers = listed.partition("Client scenarios")[0]
    names = {line.split()[1] for line in servers.splitlines() if line.startswith("  - ")}
    assert names == APPLY | set(NOT_OURS)


def test_our_server_passes_every_conformance_scenario_that_applies(peers: Peers, tmp_path: Path) -> None:
    with McpHttpServer(McpServer(TOOLS, resources=RESOURCES, prompts=PROMPTS)) as server:
        ran(peers, tmp_path, "server", "--url", server.url, "--suite", "all")
    outcomes = {name: checks(tmp_path, f"server-{name}") for name in sorted(APPLY)}
    assert {name: found for name, found in outcomes.items() if set(found) != {"SUCCESS"}} == {}
    failed = {name for name in NOT_OURS if "FAILURE" in checks(tmp_path, f"server-{name}")}
    assert failed == set(NOT_OURS) - {"server-sse-polling"}


@pytest.mark.parametrize("scenario", ["initialize", "tools_call", "sse-retry"])
def test_our_connection_passes_the_conformance_scenarios_of_clients(
    peers: Peers, tmp_path: Path, scenario: str
) -> None:
    command = f"{sys.executable} -m tests.mcp.client"
    done = ran(peers, tmp_path, "client", "--command", command, "--scenario", scenario)
    assert done.returncode == 0, done.stdout[-2000:]
    assert set(checks(tmp_path, scenario)) == {"SUCCESS"}
