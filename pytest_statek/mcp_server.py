"""The fixture `statek_mcp_server`: MCP servers over HTTP, for clients that are not to be changed for a test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_statek.mcp_server_check import McpServerMaker


@pytest.fixture
def statek_mcp_server(request: pytest.FixtureRequest) -> Iterator[McpServerMaker]:
    """Starts MCP servers: `statek_mcp_server([search], faults=["dies:search@2"])`, then point a client at its `url`.

    `journal` says what clients asked; `list_only([...])` changes the list. Every fault must strike, else the test
    fails. Connections to other machines are refused.
    """
    request.config.pluginmanager.import_plugin("pytest_statek.mcp_server_check")
    # Here and not above: in a run that uses no fixture of ours, the plugin must cost nothing.
    from pytest_statek.mcp_server_check import open_maker  # noqa: PLC0415

    with open_maker(request) as make:
        yield make
