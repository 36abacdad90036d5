"""What `statek_llm_server` stands on. Registered as a plugin when the first test asks for it."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import pytest

from pytest_statek.options import REQUESTED
from statek_sim.errors import ScriptError
from statek_sim.providers.client_settings import client_environment
from statek_sim.providers.network import forbid_network
from statek_sim.server.llm_server import LLMServer

SECTION: Final = "fake LLM requests"
"""The title under which the report of a failed test shows what its server was asked."""

_SHOWN_REQUESTS: Final = 20
_SERVER: Final = pytest.StashKey[LLMServer]()


@contextmanager
def open_server(request: pytest.FixtureRequest) -> Iterator[LLMServer]:
    """Start a server for one test, and point clients that are created in it there through their variables.

    Other machines are out of reach unless the test may reach them.
    """
    item: pytest.Item = request.node
    with ExitStack() as stack:
        if not _may_use_network(item):
            stack.enter_context(forbid_network())
        server = stack.enter_context(LLMServer())
        environment = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in client_environment(server.url).items():
            if value is None:
                environment.delenv(name, raising=False)
            else:
                environment.setenv(name, value)
        item.stash[_SERVER] = server
        yield server


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a test that passed although a request found no reply, or a reply no request."""
    yield
    if _SERVER not in item.stash:
        return
    problem = None
    try:
        item.stash[_SERVER].check_finished()
    except ScriptError as error:
        problem = str(error)
    if problem is not None:
        pytest.fail(problem, pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the server of a test that failed was asked."""
    report = yield
    if report.failed and call.when == "call" and _SERVER in item.stash:
        lines = _told(item.stash[_SERVER])
        if lines:
            report.sections.append((SECTION, "\n".join(lines)))
    return report


def _told(server: LLMServer) -> list[str]:
    """Return a line per request, the last ones."""
    return [entry.line() for entry in server.requests[-_SHOWN_REQUESTS:]]


def _may_use_network(item: pytest.Item) -> bool:
    marker = item.get_closest_marker("statek")
    allowed = marker is not None and marker.kwargs.get("allow_network", False)
    return bool(allowed) or item.config.stash[REQUESTED].allow_network
