"""Fixtures for testing agents and their tools. `statek_sim` is loaded when a test first requests one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_statek.options import CASSETTE, RUN_NUMBER, SESSION

if TYPE_CHECKING:
    from pytest_statek.agents import AgentMaker
    from pytest_statek.guests import GuestMaker
    from pytest_statek.mcp_server_check import McpServerMaker
    from statek_sim.app import StatekApp
    from statek_sim.cassettes.session import CassetteSession
    from statek_sim.clock import VirtualClock
    from statek_sim.runtime.execution.runtime import Runtime
    from statek_sim.scriptable import ScriptableLLM
    from statek_sim.server.llm_server import LLMServer
    from statek_sim.testing import Lab
    from statek_sim.world.queue import WorkQueue


@pytest.fixture
def _statek_lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A test's lab: the connected runtime, LLM, clock and queue."""
    request.config.pluginmanager.import_plugin("pytest_statek.outcome")
    # Imported here, so that the plugin costs nothing in a run without our fixtures.
    from pytest_statek.lab import open_lab  # noqa: PLC0415

    with open_lab(request) as lab:
        yield lab


@pytest.fixture
def statek_llm(_statek_lab: Lab) -> ScriptableLLM:
    """The test's scripted LLM: `statek_llm.script(worker=[code("exit(1)")])`.

    The test fails if a reply is unused.
    """
    return _statek_lab.llm


@pytest.fixture
def statek_runtime(_statek_lab: Lab) -> Runtime:
    """A STATEK runtime with `statek_llm`, `statek_clock` and no network: create jobs, call `run()`, inspect the jobs.

    Configure it with `@pytest.mark.statek(profile=..., preset=..., limits=..., seed=...)`.
    """
    return _statek_lab.runtime


@pytest.fixture
def statek_clock(_statek_lab: Lab) -> VirtualClock:
    """The virtual clock. `datetime.now()` and `date.today()` use it unless the marker turns this off."""
    return _statek_lab.clock


@pytest.fixture
def statek_queue(_statek_lab: Lab) -> WorkQueue:
    """A durable work queue that contains the marker's items; use `add` for more items. Changes appear in the trace."""
    return _statek_lab.queue


@pytest.fixture
def statek_agent(request: pytest.FixtureRequest) -> Iterator[AgentMaker]:
    """Creates tool-calling agents that play a script: `statek_agent(tools=[look], script=[tool_call("look")])`.

    `agent.run(task)` runs in virtual time and returns the run, with `answer`, `stop`, `calls`, `nudged`, `refused` and
    the trace. The test fails if a reply is unused.
    """
    request.config.pluginmanager.import_plugin("pytest_statek.outcome")
    # Imported here for the same reason.
    from pytest_statek.agents import open_agents  # noqa: PLC0415

    with open_agents(request) as make:
        yield make


@pytest.fixture
def statek_guest(request: pytest.FixtureRequest) -> Iterator[GuestMaker]:
    """Creates guests to test your own or third-party harnesses: `statek_guest(script=[text("done")], tools=[look])`.

    `guest.ask` calls the model, `guest.tools` are tools whose calls are recorded, and `guest.run` runs coroutines in
    virtual time. The test fails if a reply is unused.
    """
    request.config.pluginmanager.import_plugin("pytest_statek.outcome")
    # Imported here for the same reason.
    from pytest_statek.guests import open_guests  # noqa: PLC0415

    with open_guests(request) as make:
        yield make


@pytest.fixture
def statek_mcp_server(request: pytest.FixtureRequest) -> Iterator[McpServerMaker]:
    """Starts MCP servers: call `statek_mcp_server([search], faults=["dies:search@2"])`, then connect clients to `url`.

    `journal` contains the clients' requests; `list_only([...])` changes the tool list. The test fails if a fault
    affects no request. Connections to other machines are refused.
    """
    request.config.pluginmanager.import_plugin("pytest_statek.mcp_server_check")
    # Imported here for the same reason.
    from pytest_statek.mcp_server_check import open_maker  # noqa: PLC0415

    with open_maker(request) as make:
        yield make


@pytest.fixture
def statek_app(request: pytest.FixtureRequest) -> Iterator[StatekApp]:
    """Your STATEK application, on the `--statek-backend` runtime: script its model, then run and inspect its jobs.

    Its agents, tools and stored classes stay unchanged. Configure it with the marker, like `statek_runtime`; the
    default profile is 1.4.
    """
    request.config.pluginmanager.import_plugin("pytest_statek.outcome")
    # Imported here for the same reason.
    from pytest_statek.application import open_app  # noqa: PLC0415

    with open_app(request) as app:
        yield app


@pytest.fixture
def statek_llm_server(request: pytest.FixtureRequest) -> Iterator[LLMServer]:
    """A fake LLM server for the test: call `statek_llm_server.script([...])`, then run your agent.

    OpenAI, Anthropic and Gemini clients created in the test find it automatically: `OPENAI_BASE_URL`,
    `ANTHROPIC_BASE_URL`, `GOOGLE_GEMINI_BASE_URL` and the corresponding keys are set until the test ends. If a client
    does not read these variables, pass it `statek_llm_server.openai_url`, or `.url` for Anthropic and Gemini. The test
    fails if a reply is unused or a request has no reply. Connections to other machines are refused.
    """
    request.config.pluginmanager.import_plugin("pytest_statek.llm_server_check")
    # Imported here, so that the plugin costs nothing in a run without our fixtures.
    from pytest_statek.llm_server_check import open_server  # noqa: PLC0415

    with open_server(request) as server:
        yield server


@pytest.fixture
def statek_seed(request: pytest.FixtureRequest) -> int:
    """The zero-based number of the current run in a test marked `statek_repeat`; 0 in other tests.

    Use it as a seed for anything that may differ between runs: `FaultRule(fault=Reset(), rate=0.1, seed=statek_seed)`.
    """
    item: pytest.Item = request.node
    return item.stash.get(RUN_NUMBER, 0)


@pytest.fixture
def statek_cassette(request: pytest.FixtureRequest) -> CassetteSession:
    """The open cassette in a test marked `statek_cassette`, with its path, mode and unplayed recordings."""
    item: pytest.Item = request.node
    session = item.stash.get(SESSION, None)
    if session is None:
        pytest.fail(f"{item.nodeid}: mark the test with @pytest.mark.{CASSETTE}", pytrace=False)
    return session
