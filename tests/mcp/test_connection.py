"""Connections to MCP servers that are real processes and real HTTP, with everything that goes wrong with them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from statek_sim.agent.tools.registry import Registry
from statek_sim.mcp.client import (
    Bounds,
    Http,
    McpBadAnswer,
    McpServerDied,
    McpServerGone,
    McpServerSpec,
    McpTimedOut,
    Stdio,
)
from statek_sim.mcp.connection import McpConnection
from statek_sim.mcp.fault import fault_from
from statek_sim.mcp.scripted import ScriptedConnection, served
from statek_sim.mcp.server import McpServer
from statek_sim.mcp.transports import McpHttpServer
from tests.mcp.serving import TOOLS, Process, alive, told
from tests.tables import table_test

DIED = "McpServerDied: MCP server 'wiki' ended before it answered the call to 'search'"


@pytest.fixture
def process(tmp_path: Path) -> Process:
    return Process(tmp_path / "journal.jsonl")


def with_server(spec: McpServerSpec, act: Callable[[McpConnection], Awaitable[None]]) -> None:
    async def main() -> None:
        async with McpConnection(spec) as connection:
            await act(connection)

    asyncio.run(main())


# -- what a connection is for -----------------------------------------------------------------------------------


def test_a_servers_tools_are_listed_over_all_pages_and_can_be_called(process: Process) -> None:
    async def act(connection: McpConnection) -> None:
        assert [one.name for one in connection.definitions] == ["search", "edit", "wait"]
        assert connection.definitions[0].description == "Search pages."
        assert told(await connection.call("search", {"q": "rain"})) == ("returned", "a page about rain")

    with_server(process.spec(options=["--page", "2"]), act)
    assert process.methods.count("tools/list") == 2
    assert process.gone()


def test_calls_side_by_side_each_get_their_own_answer(process: Process) -> None:
    async def act(connection: McpConnection) -> None:
        found = await asyncio.gather(*(connection.call("search", {"q": str(number)}) for number in range(20)))
        assert [one.text for one in found] == [f"a page about {number}" for number in range(20)]

    with_server(process.spec(), act)


def test_a_changed_list_waits_to_be_asked_for(process: Process) -> None:
    async def act(connection: McpConnection) -> None:
        assert connection.changes() is None
        await connection.call("search", {})
        async with asyncio.timeout(5):
            while (news := connection.changes()) is None:
                await asyncio.sleep(0.01)
        assert [one.name for one in news] == ["edit"]
        assert connection.changes() is None

    with_server(process.spec("changes:search@1=edit"), act)


# -- death ------------------------------------------------------------------------------------------------------


def test_a_server_that_is_killed_during_a_call_while_the_call_is_cancelled_leaves_nothing(
    process: Process,
) -> None:
    """The two happen in one moment, then the call first, then the server; none may hang or leave a process."""

    async def act(connection: McpConnection) -> None:
        for first in ("both", "cancel", "kill"):
            call = asyncio.create_task(connection.call("wait", {"seconds": 60}))
            await asyncio.sleep(0.1)
            if first == "cancel":
                call.cancel()
                await asyncio.sleep(0.01)
            os.kill(process.pids[-1], signal.SIGKILL)
            if first == "kill":
                await asyncio.sleep(0.05)
            call.cancel()
            async with asyncio.timeout(5):
                with suppress(asyncio.CancelledError):
                    assert told(await call) == ("raised", DIED.replace("search", "wait"))
            await asyncio.sleep(0.1)  # until the end of the stream was read
            assert told(await connection.call("edit", {})) == ("returned", "edited")

    with_server(process.spec(bounds=Bounds(restarts=3)), act)
    assert len(process.pids) == 4
    assert process.gone()


def test_a_program_that_is_cancelled_twice_during_a_call_waits_until_the_server_is_gone(
    process: Process,
) -> None:
    async def main() -> None:
        async with McpConnection(process.spec()) as connection:
            await connection.call("wait", {"seconds": 60})

    async def cancelled() -> None:
        task = asyncio.create_task(main())
        async with asyncio.timeout(20):
            while not process.journal.exists() or "tools/call" not in process.methods:
                await asyncio.sleep(0.02)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert process.gone()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(cancelled())


def test_a_death_is_named_at_once_and_the_next_call_starts_the_server_again(process: Process) -> None:
    async def act(connection: McpConnection) -> None:
        before = time.monotonic()
        assert told(await connection.call("search", {})) == ("raised", DIED)
        assert time.monotonic() - before < 2
        assert told(await connection.call("search", {})) == ("raised", DIED)
        gone = "McpServerGone: MCP server 'wiki' died after 1 restart and is not restarted"
        assert told(await connection.call("edit", {})) == ("raised", gone)

    with_server(process.spec("dies:search"), act)
    assert len(process.pids) == 2
    assert process.gone()


def test_a_server_that_died_between_calls_is_started_again_before_the_call(process: Process) -> None:
    async def act(connection: McpConnection) -> None:
        os.kill(process.pids[0], signal.SIGKILL)
        await asyncio.sleep(0.1)
        assert told(await connection.call("edit", {})) == ("returned", "edited")

    with_server(process.spec(), act)
    assert [one.get("name") for one in process.entries if one.get("method") == "tools/call"] == ["edit"]


def test_a_server_that_takes_no_notice_of_its_end_is_killed(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = f"""
import os, signal, time
from pathlib import Path
from statek_sim.mcp.server import McpServer
from statek_sim.mcp.transports import serve_stdio
signal.signal(signal.SIGTERM, signal.SIG_IGN)
Path({str(pid_file)!r}).write_text(str(os.getpid()))
serve_stdio(McpServer([]))
while True:
    time.sleep(1)
"""
    environment = {"PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    at = Stdio(command=sys.executable, arguments=["-c", code], environment=environment)

    async def act(connection: McpConnection) -> None:
        assert connection.definitions == ()

    with_server(McpServerSpec(name="stubborn", at=at), act)
    assert not alive(int(pid_file.read_text("utf-8")))


# -- faults -----------------------------------------------------------------------------------------------------

FAULTS = [
    "dies:search",
    "dies:search=0.2",
    "silent:search",
    "wrong-id:search",
    "no-json:search",
    "malformed:search",
    "huge:search=5000",
    "fails:search=no index",
    "refuses:search=go away",
    "slow:search=0.1",
    "changes:search=edit",
]
BOUNDS = Bounds(call=10.0, text=100)
UNANSWERED = ("silent", "wrong-id", "no-json")


def bounds_for(fault: str) -> Bounds:
    """Return seconds that pass soon where nothing comes, and late on a machine that is busy where something does."""
    return Bounds(call=0.5, text=100) if fault.startswith(UNANSWERED) else BOUNDS


ON_HTTP = [fault for fault in FAULTS if not fault.startswith(("wrong-id", "no-json", "dies"))]
"""Those that are the same over HTTP, where a server needs no process: over stdio they are for `make thorough`."""


@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=pytest.mark.slow) if fault in ON_HTTP else fault for fault in FAULTS]
)
def test_a_fault_is_the_same_to_a_model_from_a_process_and_in_virtual_time(
    process: Process, fault: str
) -> None:
    scripted = McpServer(served(Registry(TOOLS)), faults=[fault_from(fault)])
    spec = process.spec(fault, bounds=bounds_for(fault))

    async def act(connection: McpConnection) -> None:
        real = await connection.call("search", {"q": "rain"})
        assert real == await ScriptedConnection(spec, scripted).call("search", {"q": "rain"})

    with_server(spec, act)
    assert process.gone()


def test_a_fault_that_struck_does_not_strike_the_server_that_is_started_again(process: Process) -> None:
    async def act(connection: McpConnection) -> None:
        assert told(await connection.call("search", {})) == ("raised", DIED)
        assert told(await connection.call("search", {"q": "rain"})) == ("returned", "a page about rain")

    with_server(process.spec("dies:search@1"), act)


def test_a_call_that_is_given_up_is_told_to_the_server(process: Process) -> None:
    async def act(connection: McpConnection) -> None:
        said = "McpTimedOut: MCP server 'wiki' did not answer the call to 'wait' within 0.3 seconds"
        assert told(await connection.call("wait", {"seconds": 60})) == ("timed_out", said)

    with_server(process.spec(bounds=Bounds(call=0.3)), act)
    assert [one["what"] for one in process.entries][-2:] == ["notification", "cancelled"]


@pytest.mark.parametrize(
    ("fault", "failure", "said"),
    [
        (
            "loops:tools/list",
            McpBadAnswer,
            r"sent an invalid answer to tools/list: the cursor '0' leads to itself$",
        ),
        (
            "malformed:tools/list",
            McpBadAnswer,
            r"sent an invalid answer to tools/list: 1 validation error",
        ),
        ("dies:tools/list", McpServerDied, r"ended before it answered the handshake$"),
        ("silent:tools/list", McpTimedOut, r"did not answer the handshake within 2 seconds$"),
    ],
)
def test_a_server_that_cannot_list_its_tools_is_an_error_by_name(
    process: Process, fault: str, failure: type[Exception], said: str
) -> None:
    async def main() -> None:
        seconds = 2.0 if fault.startswith(UNANSWERED) else 30.0
        async with McpConnection(process.spec(fault, bounds=Bounds(connect=seconds))):
            raise AssertionError("it listed them")

    with pytest.raises(failure, match=rf"^MCP server 'wiki' {said}"):
        asyncio.run(main())
    assert process.gone()


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (Stdio(command="/no/such/server"), r"^MCP server 'far' cannot be started: .*/no/such/server"),
        (Http(url="http://127.0.0.1:9/mcp"), r"^MCP server 'far' cannot be reached: "),
    ],
)
def test_a_server_that_is_not_there_is_an_error_that_says_why(at: Stdio | Http, said: str) -> None:
    async def main() -> None:
        async with McpConnection(McpServerSpec(name="far", at=at)):
            raise AssertionError("it is there")

    with pytest.raises(McpServerGone, match=said):
        asyncio.run(main())


# -- streamable HTTP --------------------------------------------------------------------------------------------


def over_http(
    act: Callable[[McpConnection, McpServer], Awaitable[None]], *faults: str, bounds: Bounds = BOUNDS
) -> McpServer:
    server = McpServer(served(Registry(TOOLS)), faults=[fault_from(text) for text in faults], page=2)
    with McpHttpServer(server) as http:
        spec = McpServerSpec(name="wiki", at=Http(url=http.url), bounds=bounds)

        async def both(connection: McpConnection) -> None:
            await act(connection, server)

        with_server(spec, both)
    return server


def test_tools_are_listed_and_called_over_http_and_the_session_is_ended() -> None:
    async def act(connection: McpConnection, server: McpServer) -> None:
        assert [one.name for one in connection.definitions] == ["search", "edit", "wait"]
        assert told(await connection.call("search", {"q": "rain"})) == ("returned", "a page about rain")

    server = over_http(act)
    assert server.journal.calls == [("search", {"q": "rain"})]
    assert server.journal.methods[:2] == ["initialize", "notifications/initialized"]


LONG = 3 * 1024 * 1024


def test_an_answer_of_three_megabytes_is_cut_for_the_model_over_stdio_and_http(process: Process) -> None:
    async def of_process(connection: McpConnection) -> None:
        status, text = told(await connection.call("search", {"q": "x" * LONG}))
        whole = "a page about " + "x" * LONG
        assert status == "returned"
        assert text == f"{whole[:100]}\n[{len(whole) - 100} of {len(whole)} characters are left out]"

    async def act(connection: McpConnection, server: McpServer) -> None:
        await of_process(connection)

    with_server(process.spec(bounds=BOUNDS), of_process)
    over_http(act)


def test_a_changed_list_is_heard_of_over_http() -> None:
    async def act(connection: McpConnection, server: McpServer) -> None:
        server.list_only(["edit"])
        async with asyncio.timeout(5):
            while (news := connection.changes()) is None:
                await asyncio.sleep(0.01)
        assert [one.name for one in news] == ["edit"]

    over_http(act)


@table_test("fault", ON_HTTP)
def test_a_fault_over_http_is_what_it_is_over_stdio(fault: str) -> None:
    scripted = McpServer(served(Registry(TOOLS)), faults=[fault_from(fault)])

    async def act(connection: McpConnection, server: McpServer) -> None:
        real = await connection.call("search", {"q": "rain"})
        assert real == await ScriptedConnection(connection.spec, scripted).call("search", {"q": "rain"})

    over_http(act, fault, bounds=bounds_for(fault))


def test_a_server_that_dies_over_http_is_named_and_then_out_of_reach() -> None:
    async def act(connection: McpConnection, server: McpServer) -> None:
        assert told(await connection.call("search", {})) == ("raised", DIED)
        again = await connection.call("edit", {})
        gone = "McpServerGone: MCP server 'wiki' died after 1 restart and is not restarted"
        assert again.text.startswith(f"{gone}: MCP server 'wiki' cannot be reached: ")

    over_http(act, "dies:search", bounds=Bounds(call=5.0))


def test_a_server_that_was_started_again_gets_a_new_session_and_the_call_is_made_once() -> None:
    """It answers 404 to the old session (transports, session management), having done nothing."""
    first, second = (McpServer(served(Registry(TOOLS))) for _ in range(2))

    async def main() -> None:
        with McpHttpServer(first) as http:
            port = int(http.url.split(":")[2].split("/")[0])
            connection = McpConnection(McpServerSpec(name="wiki", at=Http(url=http.url), bounds=BOUNDS))
            await connection.__aenter__()
        with McpHttpServer(second, port=port):
            found = await asyncio.gather(*(connection.call("search", {"q": str(n)}) for n in range(3)))
            assert [one.text for one in found] == [f"a page about {n}" for n in range(3)]
            assert connection.restarts == 1
            await connection.__aexit__()

    asyncio.run(main())
    assert sorted(str(arguments["q"]) for _, arguments in second.journal.calls) == ["0", "1", "2"]


def test_the_sdk_takes_any_id_for_the_answer_to_a_post() -> None:
    """Of the official client: over HTTP it gives what comes in the stream of a request that request's own id."""

    async def act(connection: McpConnection, server: McpServer) -> None:
        assert (await connection.call("edit", {})).text == "edited"

    over_http(act, "wrong-id:edit")


def test_a_call_that_is_cancelled_over_http_ends_on_the_server() -> None:
    async def act(connection: McpConnection, server: McpServer) -> None:
        call = asyncio.create_task(connection.call("wait", {"seconds": 60}))
        while not server.journal.calls:
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        async with asyncio.timeout(5):
            while server.journal.entries[-1].what != "cancelled":
                await asyncio.sleep(0.01)

    over_http(act, bounds=Bounds(call=30.0))
