"""The fixture `statek_mcp_server`, in test suites of its own."""

from __future__ import annotations

import pytest

pytest.importorskip("mcp")

_HEAD = """
import asyncio
from mcp import Client

def search(q: str) -> str:
    '''Search pages.'''
    return f"a page about {q}"

def edit() -> str:
    '''Edit a page.'''
    return "edited"

def ask(server, name, **arguments):
    async def main():
        async with Client(server.url) as client:
            return await client.call_tool(name, arguments)
    return asyncio.run(main())
"""


def run(pytester: pytest.Pytester, test: str) -> pytest.RunResult:
    pytester.makepyfile(_HEAD + test)
    return pytester.runpytest("-p", "no:cacheprovider")


def test_a_test_points_a_client_at_the_server_and_reads_what_it_asked(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def test_it(statek_mcp_server):
    server = statek_mcp_server([search, edit], page=1)
    assert ask(server, "search", q="rain").content[0].text == "a page about rain"
    assert server.journal.calls == [("search", {"q": "rain"})]
    wrong = ask(server, "search", q=[1])
    assert wrong.is_error and "arguments.q: expected string" in wrong.content[0].text
""",
    )
    result.assert_outcomes(passed=1)


def test_a_fault_strikes_and_one_that_strikes_nothing_fails_the_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def test_struck(statek_mcp_server):
    server = statek_mcp_server([search], faults=["fails:search@2=no index"])
    assert not ask(server, "search", q="rain").is_error
    assert ask(server, "search", q="rain").is_error

def test_not_struck(statek_mcp_server):
    server = statek_mcp_server([search], faults=["dies:search@2"])
    ask(server, "search", q="rain")
""",
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "MCP server 'statek-sim': fault dies:search@2 affected no request; remove it or send the request",
            "*MCP requests*",
            'request tools/call search({"q": "rain"})',
        ]
    )


def test_a_server_that_dies_leaves_its_client_with_an_error(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
import pytest
from mcp import MCPError

def test_it(statek_mcp_server):
    server = statek_mcp_server([search], faults=["dies:search"])
    async def main():
        async with Client(server.url) as client:
            with pytest.raises(MCPError, match="disconnected|closed|SSE stream"):
                await client.call_tool("search", {"q": "rain"})
    asyncio.run(main())
""",
    )
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            'statek_mcp_server([search], faults=["dies:serach"])',
            "*unknown tool 'serach'*Did you mean 'search'*",
        ),
        (
            'statek_mcp_server([search], faults=["explodes"])',
            "*fault 'explodes' is unknown; expected one of slow, *",
        ),
        ("statek_mcp_server(search)", "*'tools' is a function, expected a Registry, or a list of functions*"),
        ('statek_mcp_server([search], faults="slow")', "*faults='slow': expected a list, faults=*"),
        ("statek_mcp_server([search, search])", "*tool 'search' is listed twice*"),
    ],
)
def test_what_no_server_can_be_made_of_is_told(pytester: pytest.Pytester, call: str, said: str) -> None:
    result = run(pytester, f"def test_it(statek_mcp_server):\n    {call}\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([said])


def test_a_server_of_a_test_has_resources_and_prompts(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def greet(name: str) -> str:
    return f"Greet {name}."

def test_it(statek_mcp_server):
    server = statek_mcp_server([search], resources={"notes://today": "Rain."}, prompts=[greet])
    async def main():
        async with Client(server.url) as client:
            read = await client.read_resource("notes://today")
            return read.contents[0].text, (await client.get_prompt("greet", {"name": "Ada"})).messages[0].content.text
    assert asyncio.run(main()) == ("Rain.", "Greet Ada.")
""",
    )
    result.assert_outcomes(passed=1)
