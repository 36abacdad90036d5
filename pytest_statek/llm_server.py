"""The fixture `statek_llm_server`: a fake LLM over HTTP, for clients that are not to be changed for a test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from statek_sim.server.served import LLMServer


@pytest.fixture
def statek_llm_server(request: pytest.FixtureRequest) -> Iterator[LLMServer]:
    """A fake LLM server of this test: `statek_llm_server.script([...])`, then point a client at its `url`.

    OpenAI's SDK wants `statek_llm_server.openai_url`, Anthropic's and Google's `statek_llm_server.url`. Every reply
    must be asked for and every request must find one, else the test fails. Connections to other machines are refused.
    """
    request.config.pluginmanager.import_plugin("pytest_statek.llm_server_check")
    # Here and not above: in a run that uses no fixture of ours, the plugin must cost nothing.
    from pytest_statek.llm_server_check import open_server  # noqa: PLC0415

    with open_server(request) as server:
        yield server
