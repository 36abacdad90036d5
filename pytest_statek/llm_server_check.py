"""Implements `statek_llm_server`. Registered as a plugin when the first test requests it."""

from __future__ import annotations

import traceback
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

import pytest

from pytest_statek.options import may_use_network
from statek_sim.errors import BadInput, ScriptError
from statek_sim.providers.network import NetworkGuard, client_environment, forbid_network
from statek_sim.server.llm_server import LLMServer
from statek_sim.values import printable_lines

SECTION: Final = "fake LLM requests"
"""The title of the report section that lists the server's requests when a test fails."""

NO_REQUESTS: Final = (
    "no request reached the server; if a client was created before the test, for example when its module was "
    "imported, create it (or import the module) inside the test, or pass it "
    "base_url=statek_llm_server.openai_url (for Anthropic and Gemini: statek_llm_server.url)"
)
"""The section's text if the server received no request."""

_SHOWN_REQUESTS: Final = 20
_SHOWN_LINES: Final = 15
"""The number of lines to show from the end of a client's traceback."""
_SERVER: Final = pytest.StashKey[LLMServer]()
_GUARD: Final = pytest.StashKey[NetworkGuard]()
_PORT: Final = pytest.StashKey[int]()


@contextmanager
def open_server(request: pytest.FixtureRequest) -> Iterator[LLMServer]:
    """Start a server for one test, and set the environment variables that direct clients to the server.

    Other machines are unreachable unless the test allows network access.
    """
    item: pytest.Item = request.node
    with ExitStack() as stack:
        if not may_use_network(item):
            item.stash[_GUARD] = stack.enter_context(forbid_network())
        server = stack.enter_context(_server(item.config))
        environment = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in client_environment(server.url).items():
            if value is None:
                environment.delenv(name, raising=False)
            else:
                environment.setenv(name, value)
        item.stash[_SERVER] = server
        yield server


def _server(config: pytest.Config) -> LLMServer:
    """Return a server at the previous test's address, because existing clients may still use that address."""
    try:
        server = LLMServer(port=config.stash.get(_PORT, 0))
    except BadInput:  # another process has taken the port
        server = LLMServer()
    config.stash[_PORT] = server.port
    return server


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a test if a request had no reply or a reply was unused; the message precedes the client's error."""
    problems: Sequence[str] = ()
    try:
        yield
    except (
        Exception
    ) as error:  # any error of the client, the agent or the test that follows a refused request
        problems = _problems(item)
        if not problems:
            raise
        raised = "".join(traceback.format_exception(error)).splitlines()
        item.add_report_section("call", "client error", printable_lines(raised[-_SHOWN_LINES:]))
    if problems:
        pytest.fail(printable_lines(problems), pytrace=False)
    if _SERVER not in item.stash:
        return
    problem = None
    try:
        item.stash[_SERVER].check_finished()
    except ScriptError as error:
        problem = "\n".join([*_wrong_hosts(item), str(error)])
    if problem is not None:
        pytest.fail(printable_lines([problem]), pytrace=False)


def _problems(item: pytest.Item) -> list[str]:
    """Return causes to report before the client's error: wrong hosts, then rejected requests."""
    return [*_wrong_hosts(item), *item.stash[_SERVER].journal.problems] if _SERVER in item.stash else []


def _wrong_hosts(item: pytest.Item) -> list[str]:
    return item.stash[_GUARD].provider_calls() if _GUARD in item.stash else []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the server's requests to a failed test's report, as well as any problems other than the failure itself."""
    report = yield
    if report.failed and call.when == "call" and _SERVER in item.stash:
        server = item.stash[_SERVER]
        is_failure = call.excinfo is not None and call.excinfo.errisinstance(pytest.fail.Exception)
        unreached = () if server.requests or _wrong_hosts(item) else (NO_REQUESTS,)
        lines = [*_told(server), *unreached, *(() if is_failure else server.journal.problems)]
        if lines:
            report.sections.append((SECTION, printable_lines(lines)))
    return report


def _told(server: LLMServer) -> list[str]:
    """Return one line per recent request."""
    return [entry.line() for entry in server.requests[-_SHOWN_REQUESTS:]]
