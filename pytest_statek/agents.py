"""What the fixture `statek_agent` stands on. Imported when a test asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from pytest_statek.lab import OPENED, Opened, conversation
from pytest_statek.tokenizers import tokenizers
from statek_sim.agent.harness import AgentHarness
from statek_sim.clock import VirtualClock
from statek_sim.metering.tokenizers import TokenizerRegistry
from statek_sim.providers.network import forbid_network
from statek_sim.providers.protocol import Provider
from statek_sim.providers.script import ScriptEntry
from statek_sim.testing import ScriptableLLM


class AgentMaker:
    """Makes the agents of one test. They share its clock; each has its own script and its own trace."""

    def __init__(self, registry: TokenizerRegistry) -> None:
        self.clock = VirtualClock()
        self.agents: list[AgentHarness] = []
        self.scripted = _Together()
        self._registry = registry

    def __call__(
        self,
        *,
        script: Sequence[ScriptEntry] | None = None,
        provider: Provider | None = None,
        **settings: Any,
    ) -> AgentHarness:
        """Return an agent that plays `script`, or asks `provider`; `settings` are what `AgentHarness` takes."""
        llm = ScriptableLLM(given_by="statek_agent(script=[...])")
        if script is not None:
            llm.script(script)
        self.scripted.members.append(llm)
        settings.setdefault("clock", self.clock)
        agent = AgentHarness(provider or llm, tokenizers=self._registry, **settings)
        self.agents.append(agent)
        return agent


class _Together:
    """The LLMs of all agents, where one is asked whether its script is used up."""

    def __init__(self) -> None:
        self.members: list[ScriptableLLM] = []

    def check_finished(self) -> None:
        """Raise `UnusedReplies` for the first script that has replies left."""
        for llm in self.members:
            llm.check_finished()


@contextmanager
def open_agents(request: pytest.FixtureRequest) -> Iterator[AgentMaker]:
    """Let a test make agents; the network is closed while it does."""
    item: pytest.Item = request.node
    make = AgentMaker(tokenizers(request.config))
    with forbid_network() as guard:
        item.stash[OPENED] = Opened(
            make.scripted,
            lambda: [line for agent in make.agents for line in conversation(agent.trace.events)],
            guard,
        )
        yield make
