"""Implements `statek_mcp_server`. Registered as a plugin when the first test requests it."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

import pytest

from pytest_statek.options import may_use_network
from statek_sim.backends.serving import tools_as_served
from statek_sim.mcp.fault import McpFault, fault_from
from statek_sim.mcp.primitives import Prompts, Resources
from statek_sim.mcp.server import McpServer
from statek_sim.mcp.transports import McpHttpServer
from statek_sim.providers.network import forbid_network
from statek_sim.values import items_of, printable_lines

SECTION: Final = "MCP requests"
"""The title of the report section that lists the servers' requests when a test fails."""

_SHOWN: Final = 20


class McpServerMaker:
    """Starts MCP servers, which are stopped at the end of the test; `servers` are the servers started so far."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.servers: list[McpHttpServer] = []

    def __call__(
        self,
        tools: object,
        *,
        resources: Resources = (),
        prompts: Prompts = (),
        faults: Sequence[str | McpFault] = (),
        listed: Sequence[str] | None = None,
        page: int | None = None,
        name: str = "statek-sim",
    ) -> McpHttpServer:
        """Start a server with these tools: a `Registry`, or a list of functions, `Tool`s and `ServedTool`s.

        `resources` maps URIs to str or bytes. `prompts` are functions, each of which returns a string or a list of
        messages with `role` and `content`. `faults` use the syntax of `serve mcp --fault`. `listed` are the tools to
        list initially, and `page` is the number of tools per page.
        """
        read = [
            fault_from(fault) if isinstance(fault, str) else fault for fault in items_of("faults", faults)
        ]
        server = McpServer(
            tools_as_served(tools),
            name=name,
            resources=resources,
            prompts=prompts,
            faults=read,
            listed=listed,
            page=page,
        )
        http = self._stack.enter_context(McpHttpServer(server))
        self.servers.append(http)
        return http

    def problems(self) -> list[str]:
        """Return a message for each fault that did not affect any request."""
        return [
            f"MCP server {http.server.name!r}: fault {fault} affected no request; remove it or send the request"
            for http in self.servers
            for fault in http.server.faults.unused()
        ]


_MAKER: Final = pytest.StashKey[McpServerMaker]()


@contextmanager
def open_maker(request: pytest.FixtureRequest) -> Iterator[McpServerMaker]:
    """Let a test start servers. Other machines are unreachable unless the test allows network access."""
    item: pytest.Item = request.node
    with ExitStack() as stack:
        if not may_use_network(item):
            stack.enter_context(forbid_network())
        maker = item.stash[_MAKER] = McpServerMaker(stack)
        yield maker


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a passing test if a fault affected no request."""
    yield
    problems = item.stash[_MAKER].problems() if _MAKER in item.stash else []
    if problems:
        pytest.fail(printable_lines(problems), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the requests that a failed test's servers received."""
    report = yield
    if report.failed and call.when == "call" and _MAKER in item.stash:
        lines = [entry.line() for http in item.stash[_MAKER].servers for entry in http.journal.entries]
        if lines:
            report.sections.append((SECTION, printable_lines(lines[-_SHOWN:])))
    return report
