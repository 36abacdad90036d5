"""Real HTTP, to a server on this machine."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from statek_sim.errors import NetworkForbidden, ProviderTimeout, ProviderUnreachable
from statek_sim.providers.http_provider import HttpRequest
from statek_sim.providers.live import LiveTransport
from statek_sim.providers.network import forbid_network, permit_network


class Echo(BaseHTTPRequestHandler):
    """Answers with what it got, compressed; `/slow` never, `/refused` with a 429."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:  # the library's name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/slow":
            self.server.released.wait(60)  # type: ignore[attr-defined]  # see `served`
        compressed = gzip.compress(body)
        self.send_response(429 if self.path == "/refused" else 200)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(compressed)))
        self.send_header("X-Key", self.headers["x-api-key"])
        self.end_headers()
        self.wfile.write(compressed)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def served() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    server.released = threading.Event()  # type: ignore[attr-defined]  # for `/slow`
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.released.set()  # type: ignore[attr-defined]
        server.shutdown()
        thread.join()
        server.server_close()


def request(url: str) -> HttpRequest:
    return HttpRequest(method="POST", url=url, headers={"x-api-key": "a-key"}, body=b'{"a": 1}')


def test_a_request_is_sent_as_it_is_and_its_answer_comes_back_decompressed() -> None:
    with served() as address:
        response = LiveTransport().send(request(f"{address}/v1"))
    assert (response.status, response.body, response.latency) == (200, b'{"a": 1}', 0.0)
    assert response.headers["x-key"] == "a-key"


def test_a_status_that_is_no_success_is_an_answer_like_any_other() -> None:
    with served() as address:
        assert LiveTransport().send(request(f"{address}/refused")).status == 429


def test_an_answer_that_does_not_come_is_a_timeout_without_words_as_in_httpx() -> None:
    with served() as address, pytest.raises(ProviderTimeout, match=r"^$"):
        LiveTransport(timeout=0.05).send(request(f"{address}/slow"))


def test_nobody_there_is_unreachable() -> None:
    with served() as address:
        pass
    with pytest.raises(ProviderUnreachable, match=r"Connection refused"):
        LiveTransport().send(request(address))


def test_a_real_request_is_refused_where_the_network_is_forbidden() -> None:
    with served() as address, forbid_network(allow_loopback=False) as guard:
        with pytest.raises(NetworkForbidden, match=r"^a real network connection to '127\.0\.0\.1' port"):
            LiveTransport().send(request(address))
        assert len(guard.attempts) == 1


def test_what_records_is_let_through_and_nothing_beside_it() -> None:
    with served() as address, forbid_network(allow_loopback=False) as guard:
        assert LiveTransport(permit=permit_network).send(request(address)).status == 200
        assert guard.attempts == []
        with pytest.raises(NetworkForbidden):
            LiveTransport().send(request(address))
