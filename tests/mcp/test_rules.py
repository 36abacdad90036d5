"""Faults, names, content, sources: the rules around MCP servers, without any transport."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.step_enforcement import Step
from statek_sim.agent.tools.registry import LONGEST, Registry, server_tool_name
from statek_sim.agent.tools.tool import Tool, tool_from, tool_of_schema
from statek_sim.errors import BadInput, BadTool
from statek_sim.mcp.client import Bounds, Definition, McpServerSpec, McpSource, Stdio, definition_of, text_of
from statek_sim.mcp.fault import LIST, Faults, McpFault, fault_from
from statek_sim.mcp.scripted import ScriptedConnection, served
from statek_sim.mcp.server import McpServer
from statek_sim.mcp.session import RpcError, Session, parsed
from statek_sim.providers.script import ScriptedCall, text, tool_calls
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.values import JSON
from tests.says import line_with, says
from tests.tables import table_test

# -- faults -----------------------------------------------------------------------------------------------------


@table_test(
    ("written", "fault"),
    [
        ("dies", McpFault(kind="dies")),
        ("dies:search@2=0.5", McpFault(kind="dies", on="search", nth=2, value="0.5")),
        ("slow:tools/list=3", McpFault(kind="slow", on="tools/list", value="3")),
        ("fails=a=b:c@1", McpFault(kind="fails", value="a=b:c@1")),
        ("changes:a@1=b,c", McpFault(kind="changes", on="a", nth=1, value="b,c")),
    ],
)
def test_a_fault_is_read_as_it_is_written(written: str, fault: McpFault) -> None:
    assert fault_from(written) == fault
    assert str(fault) == written


@table_test(
    ("written", "facts"),
    [
        ("dyes", "fault 'dyes'; one of slow, silent, dies; 'dies'?"),
        ("slow", "fault slow: ; 0 or more seconds; example slow=5"),
        ("slow=-1", "fault slow=-1: ; 0 or more seconds"),
        ("slow=inf", "fault slow=inf: ; 0 or more seconds"),
        ("huge=many", "fault huge=many: ; 0 or more bytes"),
        ("changes:a", "fault changes:a: ; tools; example changes=a,b"),
        ("dies@0", "fault dies: ; count from 1; got @0"),
        ("loops:search", "fault loops:search: ; only valid for tools/list"),
        ("fails:tools/list=x", "fault fails:tools/list=x: ; only valid for calls"),
        ("Dies!", "fault 'Dies!': ; KIND[:TOOL][@N][=VALUE]"),
    ],
)
def test_what_is_no_fault_is_told(written: str, facts: str) -> None:
    with pytest.raises(BadInput, match=line_with(*facts.split("; "))):
        fault_from(written)


def test_a_fault_counts_the_calls_that_it_is_for() -> None:
    faults = Faults([fault_from("dies:a@2"), fault_from("silent"), fault_from("loops:tools/list@1")])
    struck = [faults.strike(on) for on in ("a", "a", "b", LIST, LIST, "a")]
    assert [str(fault) for fault in struck] == [
        "silent",
        "dies:a@2",
        "silent",
        "loops:tools/list@1",
        "None",
        "silent",
    ]
    assert faults.unused() == ()


# -- names ------------------------------------------------------------------------------------------------------

NAMES = st.text(alphabet=st.sampled_from("abz09_-./é"), min_size=1, max_size=100)


@given(NAMES, NAMES)
def test_names_of_server_tools_are_sendable_and_two_do_not_become_one(one: str, other: str) -> None:
    made = [server_tool_name("wiki", name) for name in (one, other)]
    assert all(
        len(name) <= LONGEST and name.isascii() and "." not in name and "/" not in name for name in made
    )
    assert (made[0] == made[1]) == (one == other)


def test_a_name_that_is_sendable_stays() -> None:
    assert server_tool_name("wiki", "search-all_2") == "wiki__search-all_2"
    assert server_tool_name("", "search") == "search"
    assert server_tool_name("wiki", "db.query") == "wiki__db_query_16088242"


# -- content ----------------------------------------------------------------------------------------------------

BLOCKS: list[tuple[dict[str, JSON], str]] = [
    ({"type": "text", "text": "hello"}, "hello"),
    ({"type": "image", "data": "QUJD", "mimeType": "image/png"}, "[image image/png, 3 bytes]"),
    ({"type": "audio", "data": "QUI=", "mimeType": "audio/wav"}, "[audio audio/wav, 2 bytes]"),
    ({"type": "resource", "resource": {"uri": "a:b", "text": "inside"}}, "[resource a:b]\ninside"),
    (
        {"type": "resource", "resource": {"uri": "a:b", "blob": "QQ==", "mimeType": "x/y"}},
        "[resource a:b x/y, 1 bytes]",
    ),
    ({"type": "resource_link", "uri": "a:b", "name": "B"}, "[resource B a:b]"),
    ({"type": "hologram"}, "[content block of unknown type 'hologram']"),
]


@table_test(("block", "said"), BLOCKS, ids=[str(block["type"]) for block, _ in BLOCKS])
def test_a_block_of_content_is_text(block: dict[str, JSON], said: str) -> None:
    assert text_of([block], None, most=100) == said


def test_a_structured_value_is_said_once() -> None:
    value: dict[str, JSON] = {"rows": [1, 2]}
    assert text_of([], value, most=100) == '{"rows":[1,2]}'
    assert text_of([{"type": "text", "text": '{ "rows": [1, 2] }'}], value, most=100) == '{ "rows": [1, 2] }'
    assert text_of([{"type": "text", "text": "two rows"}], value, most=100) == 'two rows\n{"rows":[1,2]}'
    assert text_of([{"type": "text", "text": "grown"}], {"result": "grown"}, most=100) == "grown"
    assert text_of([{"type": "text", "text": "3"}], {"result": 3}, most=100) == "3"
    assert text_of([{"type": "text", "text": "3"}], {"result": 4}, most=100) == '3\n{"result":4}'


@given(st.text(max_size=50), st.integers(1, 60))
def test_what_is_left_out_of_a_text_is_counted(text: str, most: int) -> None:
    said = text_of([{"type": "text", "text": text}], None, most=most)
    if len(text) <= most:
        assert said == text
    else:
        assert said == f"{text[:most]}\n[{len(text) - most} of {len(text)} characters are left out]"


def test_a_title_stands_for_a_description() -> None:
    assert definition_of({"name": "a", "title": "Do a"}) == Definition(
        name="a", description="Do a", parameters={"type": "object", "properties": {}}
    )


# -- sources ----------------------------------------------------------------------------------------------------


def named(name: str) -> Tool:
    async def run(**arguments: object) -> str:
        return f"{name} {arguments}"

    return tool_of_schema(name, f"Do {name}.", {"type": "object", "properties": {}}, run)


def source(name: str, tools: Sequence[str], *, prefix: str | None = None) -> tuple[McpSource, McpServer]:
    server = McpServer(served([named(tool) for tool in tools]), name=name)
    spec = McpServerSpec(name=name, at=Stdio(command=name), prefix=prefix, tags=["remote"])
    return McpSource(ScriptedConnection(spec, server)), server


def test_a_registry_takes_a_list_over_when_the_next_offer_is_made_and_not_before() -> None:
    registry = Registry([named("look")])
    wiki, server = source("wiki", ["search", "edit"])
    registry.follow(wiki)
    before = registry.offer()
    server.list_only(["edit"])
    assert [tool.name for tool in registry.list()] == ["look", "wiki__search", "wiki__edit"]
    assert registry.offer().names == ("look", "wiki__edit")
    assert registry.offer().generation > before.generation
    assert before.names == ("look", "wiki__search", "wiki__edit")
    assert registry.notes == ["the list of server 'wiki' changed: -wiki__search"]


def test_a_list_that_comes_again_as_it_was_is_no_change() -> None:
    registry = Registry()
    wiki, server = source("wiki", ["search"])
    registry.follow(wiki)
    generation = registry.generation
    server.list_only(["search"])
    registry.offer()
    assert (registry.generation, registry.notes) == (generation, [])


def test_a_servers_tools_stay_where_they_were() -> None:
    registry = Registry()
    wiki, server = source("wiki", ["search", "edit"])
    registry.follow(wiki)
    registry.follow(source("jira", ["search"])[0])
    server.list_only(["edit", "search"])
    assert registry.offer().names == ("wiki__edit", "wiki__search", "jira__search")


def test_two_servers_with_one_name_and_tools_with_one_name_are_refused() -> None:
    registry = Registry([named("look")])
    registry.follow(source("wiki", ["search"], prefix="")[0])
    with pytest.raises(BadTool, match=line_with("server 'wiki'", "already registered")):
        registry.follow(source("wiki", ["edit"])[0])
    with pytest.raises(
        BadTool, match=line_with("tool 'search'", "server 'jira'", "server 'wiki'", "unique name")
    ):
        registry.follow(source("jira", ["comment", "search"], prefix="")[0])
    with pytest.raises(BadTool, match=line_with("tool 'look'", "server 'sky'", "your own")):
        registry.follow(source("sky", ["look"], prefix="")[0])
    assert registry.offer().names == ("look", "search")


def test_a_tool_with_a_schema_that_is_none_is_left_out_of_a_server_that_is_followed() -> None:
    registry = Registry()
    wiki, server = source("wiki", ["search"])
    run = server.tools["search"].run
    server.tools["bad"] = type(server.tools["search"])(name="bad", run=run, input_schema={"type": "nothing"})
    server.list_only(["search", "bad"])
    registry.follow(wiki)
    assert registry.offer().names == ("wiki__search",)
    (note,) = registry.notes
    assert says(note, "left out", "tool 'wiki__bad'", "parameters['type']", "invalid JSON Schema")


def test_a_tool_with_a_schema_that_is_none_is_left_out_of_a_list_that_changes() -> None:
    registry = Registry()
    wiki, server = source("wiki", ["search"])
    registry.follow(wiki)
    broken = served([named("bad")])[0]
    server.tools["bad"] = type(broken)(name="bad", run=broken.run, input_schema={"type": "nothing"})
    server.list_only(["search", "bad"])
    assert registry.offer().names == ("wiki__search",)
    assert says(
        registry.notes[0], "left out", "tool 'wiki__bad'", "parameters['type']", "invalid JSON Schema"
    )


def test_a_call_of_this_turn_is_not_lost_when_another_run_takes_a_new_list_over() -> None:
    """Two runs share a registry: what was offered to this one is called as it was offered."""
    registry = Registry()
    wiki, server = source("wiki", ["search", "edit"])
    registry.follow(wiki)

    def other_run() -> str:
        """Do what the next turn of another run does."""
        server.list_only(["search"])
        return f"offers {registry.offer().names}"

    registry.register(other_run)
    steps: list[str | Step] = ["other_run", Step(tool="wiki__edit", required=False, after=("other_run",))]
    script = [tool_calls(ScriptedCall("other_run", {}), ScriptedCall("wiki__edit", {})), text("done")]
    run = AgentHarness(ScriptedLLM(script), tools=registry, steps=steps).run("Work.")
    assert (run.stop, [call["name"] for call in run.calls]) == ("final", ["other_run", "wiki__edit"])
    assert run.calls[0]["result"] == "offers ('wiki__search', 'other_run')"
    unknown = "McpRefused: MCP server 'wiki' refused the call to 'edit': Unknown tool: edit (-32602)"
    assert run.calls[1]["error"] == unknown


def test_tools_of_a_server_have_its_tags() -> None:
    registry = Registry([named("look")])
    registry.follow(source("wiki", ["search"])[0])
    assert registry.offer(any_tag=["remote"]).names == ("wiki__search",)


@table_test("name", ["", "a__b", "a b", "é", "9x", "x" * 33])
def test_a_server_has_a_name_that_can_stand_before_a_tools(name: str) -> None:
    with pytest.raises(BadInput, match=r"expected a name of 1 to 32 letters"):
        McpServerSpec(name=name, at=Stdio(command="x"))


@table_test("bounds", [{"call": 0}, {"connect": -1}, {"pages": 0}, {"text": 0}, {"restarts": -1}])
def test_bounds_that_are_none_are_refused(bounds: dict[str, int]) -> None:
    with pytest.raises(
        BadInput,
        match=line_with("MCP server bounds", *(f"{name} is {value}" for name, value in bounds.items())),
    ):
        Bounds(**bounds)


# -- serving ----------------------------------------------------------------------------------------------------


def said_to(server: McpServer, *messages: dict[str, JSON]) -> list[dict[str, JSON]]:
    """Return what a session says to these messages, one after the other."""
    said: list[dict[str, JSON]] = []

    async def main() -> None:
        async def send(line: str) -> None:
            said.append(parsed(line))

        session = Session(server, announce=send, die=lambda: None)
        for message in messages:
            await session.receive({"jsonrpc": "2.0", **message}, send)

    asyncio.run(main())
    return said


def half(n: int) -> float:
    """Halve a number."""
    if n % 2:
        raise ValueError(f"{n} is odd")
    return n / 2


CALL: dict[str, JSON] = {"id": 1, "method": "tools/call"}


@table_test(
    ("arguments", "text", "failed"),
    [
        ({"n": 4}, "2.0", False),
        ({"n": 3}, "ValueError: 3 is odd", True),
        ({"n": "4"}, 'Error: arguments.n: expected integer, got "4"', True),
        ({}, "Error: arguments: required 'n' is missing", True),
    ],
)
def test_a_registrys_tool_is_served_with_its_errors(
    arguments: dict[str, JSON], text: str, failed: bool
) -> None:
    server = McpServer(served([tool_from(half)]))
    message: dict[str, JSON] = {**CALL, "params": {"name": "half", "arguments": arguments}}
    (answer,) = said_to(server, message)
    content: list[JSON] = [{"type": "text", "text": text}]
    expected: dict[str, JSON] = {"content": content, "isError": True} if failed else {"content": content}
    assert answer == {"jsonrpc": "2.0", "id": 1, "result": expected}


@table_test(
    ("message", "code", "said"),
    [
        ({"id": 1, "method": "tools/call", "params": {"name": "gone"}}, -32602, "Unknown tool: gone"),
        (
            {"id": 1, "method": "tools/call", "params": {}},
            -32602,
            "expected a name and an object of arguments",
        ),
        ({"id": 1, "method": "tools/list", "params": {"cursor": "x"}}, -32602, "unknown cursor 'x'"),
        ({"id": 1, "method": "server/discover"}, -32601, "Method not found: server/discover"),
        ({"id": 1, "method": "ping", "params": []}, -32602, "params must be an object"),
    ],
)
def test_what_a_server_refuses_has_its_code(message: dict[str, JSON], code: int, said: str) -> None:
    (answer,) = said_to(McpServer([]), message)
    error = answer["error"]
    assert isinstance(error, dict)
    assert error["code"] == code
    assert str(error["message"]).startswith(said)


@table_test("text", ["", "[]", "{}", '{"jsonrpc": "1.0"}', '{"jsonrpc": "2.0", "method": 1}', "[" * 99999])
def test_what_is_no_message_is_refused(text: str) -> None:
    with pytest.raises(RpcError):
        parsed(text)


def test_the_journal_says_what_was_asked_and_struck() -> None:
    server = McpServer(served([tool_from(half)]), faults=[fault_from("fails:half=no")])
    said_to(
        server,
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "half", "arguments": {"n": 4}}},
    )
    assert [entry.line() for entry in server.journal.entries] == [
        "request initialize",
        "notification notifications/initialized",
        'request tools/call half({"n": 4})',
        "fault: fails:half=no",
    ]


def test_without_the_sdk_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.delitem(sys.modules, "statek_sim.mcp.connection", raising=False)
    with pytest.raises(
        ModuleNotFoundError, match=line_with("mcp is not installed", "pip install 'pytest-statek[mcp]'")
    ):
        importlib.import_module("statek_sim.mcp.connection")
