"""The switch that forbids real connections. Addresses are of TEST-NET-1 or `.invalid`: none answers."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import threading
import urllib.request
from collections.abc import Iterator

import pytest

from statek_sim.errors import NetworkForbidden
from statek_sim.providers.network import Attempt, forbid_network, is_loopback
from tests.tables import table_test

REAL = ("192.0.2.1", 443)


@pytest.fixture
def loopback_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_connection_is_refused_with_host_port_and_advice() -> None:
    with (
        forbid_network(),
        socket.socket() as sock,
        pytest.raises(
            NetworkForbidden,
            match=r"^a real network connection to '192\.0\.2\.1' port 443 is forbidden here; "
            r"answer it with a scripted provider or tool, or allow the network for this test: "
            r"@pytest\.mark\.statek\(allow_network=True\)$",
        ),
    ):
        sock.connect(REAL)


def test_connect_ex_raises_instead_of_returning_an_error_number() -> None:
    with forbid_network(), socket.socket() as sock, pytest.raises(NetworkForbidden, match="192"):
        sock.connect_ex(REAL)


def test_create_connection_is_refused_by_address_and_by_name() -> None:
    with forbid_network():
        with pytest.raises(NetworkForbidden, match=r"'192.0.2.1' port 443"):
            socket.create_connection(REAL)
        with pytest.raises(NetworkForbidden, match=r"'llm.invalid' port 443"):
            socket.create_connection(("llm.invalid", 443))


def test_datagrams_are_refused() -> None:
    with forbid_network(), socket.socket(type=socket.SOCK_DGRAM) as sock:
        with pytest.raises(NetworkForbidden, match="port 53"):
            sock.sendto(b"x", ("192.0.2.1", 53))
        with pytest.raises(NetworkForbidden, match="port 53"):
            sock.sendto(b"x", 0, ("192.0.2.1", 53))
        with pytest.raises(NetworkForbidden, match="port 53"):
            sock.sendmsg([b"x"], [], 0, ("192.0.2.1", 53))


def test_name_lookups_are_refused_but_addresses_and_wildcards_need_none() -> None:
    with forbid_network():
        with pytest.raises(NetworkForbidden, match=r"to 'llm.invalid' is forbidden"):
            socket.gethostbyname("llm.invalid")
        with pytest.raises(NetworkForbidden, match=r"to 'llm.invalid' port 80 "):
            socket.getaddrinfo(host="llm.invalid", port=80)
        assert socket.getaddrinfo("192.0.2.1", 80, type=socket.SOCK_STREAM)[0][4] == ("192.0.2.1", 80)
        assert socket.getaddrinfo(None, 80, type=socket.SOCK_STREAM)
        assert socket.gethostbyname("127.0.0.1") == "127.0.0.1"


def test_http_client_and_urllib_are_refused() -> None:
    with forbid_network():
        with pytest.raises(NetworkForbidden, match=r"'llm.invalid' port 443"):
            http.client.HTTPSConnection("llm.invalid").request("GET", "/")
        with pytest.raises(NetworkForbidden, match=r"'192.0.2.1' port 80"):
            urllib.request.urlopen("http://192.0.2.1/")  # the guard is what is tested


def test_asyncio_connections_are_refused_by_address_and_by_name() -> None:
    async def connect(host: str) -> None:
        await asyncio.open_connection(host, 443)

    with forbid_network():
        with pytest.raises(NetworkForbidden, match=r"'192.0.2.1' port 443"):
            asyncio.run(connect("192.0.2.1"))
        with pytest.raises(NetworkForbidden, match=r"'llm.invalid' port 443"):
            asyncio.run(connect("llm.invalid"))


def test_an_asyncio_conversation_over_loopback_works() -> None:
    async def converse() -> bytes:
        async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"hello")
            writer.close()

        server = await asyncio.start_server(greet, "localhost", 0)
        async with server:
            reader, writer = await asyncio.open_connection("localhost", server.sockets[0].getsockname()[1])
            try:
                return await reader.read()
            finally:
                writer.close()

    with forbid_network():
        assert asyncio.run(converse()) == b"hello"


def test_loopback_is_open_unless_switched_off(loopback_port: int) -> None:
    with forbid_network():
        socket.create_connection(("localhost", loopback_port)).close()
    with forbid_network(allow_loopback=False), pytest.raises(NetworkForbidden, match=r"'127.0.0.1' port"):
        socket.create_connection(("127.0.0.1", loopback_port))


def test_unix_sockets_are_always_open() -> None:
    ours, theirs = socket.socketpair()
    with forbid_network(allow_loopback=False), ours, theirs:
        ours.sendall(b"x")
        assert theirs.recv(1) == b"x"
        with socket.socket(socket.AF_UNIX) as sock, pytest.raises(OSError, match=r"refused|No such file"):
            sock.connect("\0no-such-unix-socket")


def test_the_strictest_open_block_decides(loopback_port: int) -> None:
    with forbid_network(allow_loopback=False), forbid_network(), pytest.raises(NetworkForbidden, match="127"):
        socket.create_connection(("127.0.0.1", loopback_port))


def test_leaving_restores_everything_also_after_an_error_and_when_nested() -> None:
    def state() -> list[object]:
        names = ("connect", "connect_ex", "sendto", "sendmsg")
        lookups = ("getaddrinfo", "gethostbyname", "gethostbyname_ex")
        return [vars(socket.socket).get(name) for name in names] + [vars(socket)[name] for name in lookups]

    before = state()
    with contextlib.suppress(ZeroDivisionError), forbid_network(), forbid_network():
        assert state() != before
        raise ZeroDivisionError
    assert state() == before


def test_other_threads_are_guarded_too() -> None:
    seen: list[str] = []

    def connect() -> None:
        try:
            socket.create_connection(REAL)
        except NetworkForbidden as error:
            seen.append(str(error))

    with forbid_network():
        thread = threading.Thread(target=connect)
        thread.start()
        thread.join()
    assert len(seen) == 1


def test_the_guard_remembers_attempts_that_the_code_under_test_hid() -> None:
    with forbid_network() as guard, contextlib.suppress(Exception):
        socket.create_connection(("llm.invalid", 443))
    assert guard.attempts == [Attempt("llm.invalid", 443)]


@table_test(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("api.localhost", True),
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("0.0.0.0", False),
        ("192.0.2.1", False),
        ("fe80::1%eth0", False),
        ("mylocalhost", False),
        ("127.0.0.1.example.com", False),
        ("", False),
    ],
)
def test_loopback_is_told_from_the_rest(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
