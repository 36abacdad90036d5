"""Our connection with servers that are not ours: the SDK's own, in the newest version, and one that says anything."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from mcp_types import ToolListChangedNotification

from statek_sim.agent.tools.registry import Registry
from statek_sim.mcp import connection as connection_module
from statek_sim.mcp.client import Bounds, Definition, Listing, McpServerSpec, McpSource, Stdio, list_of
from statek_sim.mcp.connection import McpConnection
from tests.mcp.serving import ROOT, Process, told


def program(module: str, bounds: Bounds | None = None) -> McpServerSpec:
    environment = {"PYTHONPATH": str(ROOT)}
    at = Stdio(command=sys.executable, arguments=["-m", f"tests.mcp.{module}"], environment=environment)
    return McpServerSpec(name="far", at=at, bounds=bounds or Bounds())


def test_the_sdks_own_server_in_the_newest_version_is_called_and_its_changes_are_heard() -> None:
    async def main() -> None:
        async with McpConnection(program("modern_server")) as connection:
            assert connection.version == "2026-07-28"
            registry = Registry()
            registry.follow(McpSource(connection))
            assert registry.offer().names == ("far__grow", "far__storm", "far__table", "far__broken")
            assert told(await connection.call("table", {})) == ("returned", '{\n  "rows": 2\n}')
            status, text = told(await connection.call("broken", {}))
            assert (status, text.startswith("McpToolFailed: ")) == ("raised", True)
            assert told(await connection.call("grow", {})) == ("returned", "grown")
            async with asyncio.timeout(10):
                while "far__late" not in registry.offer().names:
                    await asyncio.sleep(0.02)
            assert told(await connection.call("late", {})) == ("returned", "here I am")

    asyncio.run(main())


GOOD = {"jsonrpc": "2.0", "id": "$ID", "result": {"content": [], "structuredContent": {"fine": True}}}


def line(**changes: object) -> str:
    return json.dumps({**GOOD, **changes}).replace('"$ID"', "$ID")


HOSTILE = {
    "result is a list": line(result=[]),
    "result is null": line(result=None),
    "content is null": line(result={"content": None}),
    "a block is a text": line(result={"content": ["hello"]}),
    "a block without a type": line(result={"content": [{"text": "hello"}]}),
    "an unknown block": line(result={"content": [{"type": "hologram"}]}),
    "a text that is a number": line(result={"content": [{"type": "text", "text": 1}]}),
    "isError is a text": line(result={"content": [], "isError": "perhaps"}),
    "no structured content": line(result={"content": []}),
    "structured content that does not fit": line(result={"content": [], "structuredContent": {"odd": 1}}),
    "error and result": line(error={"code": 1, "message": "both"}),
    "error is a text": json.dumps({"jsonrpc": "2.0", "id": "$ID", "error": "no"}).replace('"$ID"', "$ID"),
    "error without a code": '{"jsonrpc": "2.0", "id": $ID, "error": {"message": "no"}}',
    "error with a huge message": line(result=None)[:-1] + "}",
    "no version": '{"id": $ID, "result": {"content": []}}',
    "an id as text": line(id="1"),
    "an id that is null": line(id=None),
    "a fraction for an id": line(id=1.5),
    "a batch": "[" + line() + "]",
    "nothing": "",
    "a number": "42",
    "half a message": line()[:40],
    "deep": "[" * 50_000,
    "no UTF-8": '{"jsonrpc": "2.0", "id": $ID, "result": "\udcff"}',
    "NUL": "\x00",
    "a request of its own": '{"jsonrpc": "2.0", "id": 7, "method": "roots/list"}',
    "an unknown notification": '{"jsonrpc": "2.0", "method": "notifications/odd", "params": {"a": 1}}',
    "a cancelled notification with no id": '{"jsonrpc": "2.0", "method": "notifications/cancelled"}',
    "an odd list change": '{"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": 1}',
}


@pytest.mark.slow
def test_whatever_a_server_says_a_call_ends_in_time_with_a_name() -> None:
    """One server says it all; where it can still be spoken with, the next call is answered."""

    async def main() -> None:
        odd: dict[str, str] = {}
        async with McpConnection(
            program("raw_server", Bounds(call=0.7, restarts=len(HOSTILE)))
        ) as connection:
            for name, said in HOSTILE.items():
                before = time.monotonic()
                status, text = told(await connection.call("say", {"line": said}))
                if status == "returned" or not text.startswith("Mcp") or time.monotonic() - before > 8:
                    odd[name] = text
                again = told(await connection.call("say", {"line": line()}))
                if again != ("returned", '{"fine":true}'):
                    odd[f"after {name}"] = again[1]
        assert odd == {}

    asyncio.run(main())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the servers, one for each time that one is asked for its list."""
    servers: list[str] = []

    async def counted(client: Listing, spec: McpServerSpec) -> tuple[Definition, ...]:
        servers.append(spec.name)
        return await list_of(client, spec)

    monkeypatch.setattr(connection_module, "list_of", counted)
    return servers


def test_a_server_that_tells_of_changes_without_end_is_asked_for_its_list_a_few_times(
    asked: list[str],
) -> None:
    storm = "\n".join([json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})] * 300)

    async def main() -> None:
        async with McpConnection(program("raw_server")) as connection:
            said = await connection.call("say", {"line": f"{storm}\n{line()}"})
            assert told(said) == ("returned", '{"fine":true}')
            assert told(await connection.call("say", {"line": line()})) == ("returned", '{"fine":true}')

    asyncio.run(main())
    assert 2 <= len(asked) < 30


def test_changes_that_a_server_of_the_newest_version_tells_of_are_looked_at_together(
    asked: list[str],
) -> None:

    async def main() -> None:
        async with McpConnection(program("modern_server")) as connection:
            assert told(await connection.call("storm", {})) == ("returned", "calm")
            assert told(await connection.call("table", {}))[0] == "returned"
            await asyncio.gather(*connection._listing)

    asyncio.run(main())
    assert 2 <= len(asked) < 150


def test_a_change_told_at_the_moment_that_the_list_has_come_is_looked_at_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    answered = asyncio.Event()
    answered.set()

    async def listed(client: Listing, spec: McpServerSpec) -> tuple[Definition, ...]:
        asked.append(spec.name)
        await answered.wait()
        return ()

    monkeypatch.setattr(connection_module, "list_of", listed)

    async def main() -> None:
        async with McpConnection(program("raw_server")) as connection:
            answered.clear()
            await connection._on_message(ToolListChangedNotification())
            await asyncio.sleep(0)
            answered.set()
            # It runs after the task that fetches the list, and before the event loop says that this one is done.
            again = asyncio.create_task(connection._on_message(ToolListChangedNotification()))
            for _ in range(5):
                await asyncio.sleep(0)
            await again

    asyncio.run(main())
    assert len(asked) == 3, "the list is fetched at the beginning and for each of two changes"


PROGRAM = """
import asyncio, sys
from pathlib import Path
from statek_sim.mcp.connection import McpConnection
from tests.mcp.serving import Process

async def main():
    async with McpConnection(Process(Path(sys.argv[1])).spec()) as connection:
        await connection.call("wait", {"seconds": 60})

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda one: one.name)
def test_a_program_that_is_ended_during_a_call_leaves_no_server(
    tmp_path: Path, number: signal.Signals
) -> None:
    process = Process(tmp_path / "journal.jsonl")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM, str(process.journal)]
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.DEVNULL, start_new_session=True
    ) as client:
        latest = time.monotonic() + 30
        while not process.journal.exists() or "tools/call" not in process.methods:
            assert time.monotonic() < latest
            time.sleep(0.05)
        client.send_signal(number)
        client.wait(30)
    assert process.gone()
