"""Implements the `statek_agent` fixture. Imported when a test requests it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from inspect import signature
from typing import Any, Final, Literal

import pytest

from pytest_statek.options import CASSETTE, SESSION
from pytest_statek.outcome import OPENED, Opened, conversation
from pytest_statek.tokenizers import tokenizers
from statek_sim.agent.harness import AgentHarness
from statek_sim.clock import VirtualClock
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.providers.http_provider import HttpLLM, access_from
from statek_sim.providers.network import forbid_network, permit_network
from statek_sim.providers.protocol import Provider
from statek_sim.providers.script import ScriptEntry
from statek_sim.scriptable import ScriptableLLM
from statek_sim.usage.tokenizers import TokenizerRegistry


class AgentMaker:
    """Creates a test's agents. All agents share a clock; each agent has its own script and trace."""

    def __init__(self, registry: TokenizerRegistry, item: pytest.Item) -> None:
        self._item = item
        self.clock = VirtualClock()
        self.agents: list[AgentHarness] = []
        self._llms: list[ScriptableLLM] = []
        self._registry = registry

    def __call__(
        self,
        *,
        script: Sequence[ScriptEntry] | None = None,
        provider: Provider | Literal["cassette"] | None = None,
        **settings: Any,
    ) -> AgentHarness:
        """Return an agent that plays `script` or uses `provider`; `settings` are passed to `AgentHarness`.

        `provider="cassette"` uses the test's own cassette (`@pytest.mark.statek_cassette`). The cassette is played back
        or, with `--statek-record`, recorded from the provider named `api`, using `<API>_API_URL` and `<API>_API_KEY`.
        """
        _check_settings(settings)
        if provider == "cassette":
            if script is not None:
                raise BadInput("expected either a script or a cassette, not both")
            provider = self._recorded(settings.get("api", "OPENAI"))
        elif isinstance(provider, str):
            raise BadInput(f"provider={provider!r}: expected 'cassette' or an object that answers requests")
        llm = ScriptableLLM(given_by="statek_agent(script=[...])")
        if script is not None:
            llm.script(script)
        self._llms.append(llm)
        settings.setdefault("clock", self.clock)
        agent = AgentHarness(provider or llm, tokenizers=self._registry, **settings)
        self.agents.append(agent)
        return agent

    def check_finished(self) -> None:
        """Raise `UnusedReplies` for the first agent whose script has unused replies."""
        for llm in self._llms:
            llm.check_finished()

    def _recorded(self, api: str) -> Provider:
        """Return a provider that plays back or records the test's cassette."""
        session = self._item.stash.get(SESSION, None)
        if session is None:
            raise BadInput(
                f'provider="cassette" requires a cassette: mark the test with @pytest.mark.{CASSETTE}'
            )
        if session.may_record:
            from statek_sim.providers.live import LiveTransport  # noqa: PLC0415  # httpx, for a recording only

            # Requests pass through the marker's tap, which plays and records.
            return HttpLLM(LiveTransport(permit=permit_network), partial(access_from, os.environ))
        # Imported here, because the reader of cassettes takes time to import.
        from statek_sim.suite.recorded import (  # noqa: PLC0415
            CassetteExchanges,
            check_provider_of,
            recorded_environment,
        )

        recordings = session.recordings()
        check_provider_of(session.shown or session.path, recordings, api)
        exchanges = CassetteExchanges(session, recorded_environment(recordings))
        return HttpLLM(exchanges, partial(access_from, exchanges.environment))


_TAKEN: Final = {
    name: None for name in signature(AgentHarness).parameters if name not in ("provider", "tokenizers")
}
"""The names of all settings, in order."""


def _check_settings(settings: Mapping[str, object]) -> None:
    """Raise `BadInput` for an unknown setting."""
    wrong = next((name for name in settings if name not in _TAKEN), None)
    if wrong is not None:
        known = ("script", "provider", *_TAKEN)
        raise BadInput(
            f"statek_agent({wrong}=...): unknown setting.{suggestion(wrong, known)} Known: {', '.join(known)}"
        )


@contextmanager
def open_agents(request: pytest.FixtureRequest) -> Iterator[AgentMaker]:
    """Provide an agent maker for a test; inside the block, network connections are refused."""
    item: pytest.Item = request.node
    make = AgentMaker(tokenizers(request.config), item)
    with forbid_network() as guard:
        item.stash[OPENED] = Opened(
            make,
            lambda: [line for agent in make.agents for line in conversation(agent.trace.events)],
            guard,
        )
        yield make
