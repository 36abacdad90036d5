"""The streamable HTTP endpoint, asked by hand: what it refuses, and with which status."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping

import pytest

from statek_sim.mcp.server import McpServer
from statek_sim.mcp.transports import McpHttpServer
from tests.tables import table_test

BOTH = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
INITIALIZE = '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}'
LIST = '{"jsonrpc": "2.0", "id": 2, "method": "tools/list"}'
SESSION = {"mcp-session-id": "session-1"}


@pytest.fixture
def server() -> Iterator[McpHttpServer]:
    with McpHttpServer(McpServer([])) as made:
        yield made


def asked(
    server: McpHttpServer,
    body: str | None,
    headers: Mapping[str, str] = BOTH,
    *,
    method: str = "POST",
    path: str = "",
) -> tuple[int, str]:
    data = None if body is None else body.encode()
    request = urllib.request.Request(server.url + path, data, dict(headers), method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, json.loads(refusal.read())["error"]["message"]


@table_test(
    ("body", "headers", "status", "said"),
    [
        (LIST, BOTH, 400, "missing header mcp-session-id: send initialize first"),
        (LIST, {**BOTH, "mcp-session-id": "session-9"}, 404, "session 'session-9' no longer exists"),
        (
            INITIALIZE,
            {**BOTH, "origin": "https://example.com"},
            403,
            "origin is 'https://example.com', expected this",
        ),
        (
            INITIALIZE,
            {**BOTH, "host": "example.com"},
            403,
            "host is 'example.com', expected this machine's loopback",
        ),
        (INITIALIZE, {**BOTH, "accept": "application/json"}, 406, "accept is 'application/json', expected"),
        (INITIALIZE, {**BOTH, "content-type": "text/plain"}, 415, "expected content-type: application/json"),
        (
            INITIALIZE,
            {**BOTH, "mcp-protocol-version": "1999-01-01"},
            400,
            "protocol version '1999-01-01' is not",
        ),
        ("{", BOTH, 400, "not JSON"),
        (f"[{INITIALIZE}]", BOTH, 400, "expected one JSON-RPC message"),
    ],
)
def test_what_the_endpoint_refuses_has_its_status_and_a_reason(
    server: McpHttpServer, body: str, headers: Mapping[str, str], status: int, said: str
) -> None:
    found, reason = asked(server, body, headers)
    assert found == status
    assert reason.startswith(said)
    assert server.journal.entries[-1].what == "refused"


def test_another_method_and_another_path_are_refused(server: McpHttpServer) -> None:
    assert asked(server, None, method="PUT") == (405, "expected POST, GET or DELETE")
    assert asked(server, INITIALIZE, path="/more")[0] == 404


def test_a_session_that_is_ended_is_gone(server: McpHttpServer) -> None:
    assert asked(server, INITIALIZE)[0] == 200
    assert asked(server, LIST, {**BOTH, **SESSION})[1] == (
        'event: message\ndata: {"jsonrpc":"2.0","id":2,"result":{"tools":[]}}\n\n'
    )
    notification = '{"jsonrpc": "2.0", "method": "notifications/initialized"}'
    assert asked(server, notification, {**BOTH, **SESSION}) == (202, "")
    assert asked(server, None, SESSION, method="DELETE") == (200, "")
    assert asked(server, LIST, {**BOTH, **SESSION})[0] == 404
