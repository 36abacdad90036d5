"""A switch that forbids real network connections while tests run.

It patches Python's `socket` module, and so covers everything built on it: asyncio's default loop, `http.client`,
urllib, requests, httpx, ssl. Native network code that bypasses that module (uvloop, grpc, a C driver) is not detected;
this is a safety belt for tests, not a sandbox.

`clients.toml` lists the settings by which LLM clients find their provider.
"""

from __future__ import annotations

import ipaddress
import socket
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from types import ModuleType
from typing import Any, Final

from statek_sim.errors import NetworkForbidden

_SENDING: Final = ("connect", "connect_ex", "sendto", "sendmsg")
_PERMITTED: Final = ContextVar("permitted", default=False)
_ADVICE: Final = "answer it with a scripted provider or tool"
_RESOLVING: Final = ("getaddrinfo", "gethostbyname", "gethostbyname_ex")


@dataclass(frozen=True, slots=True)
class Attempt:
    """A forbidden connection or name lookup. `port` is None for a lookup without one."""

    host: str
    port: int | None


@dataclass(frozen=True, slots=True)
class NetworkGuard:
    """The record of `forbid_network`: `attempts` lists all refusals, even if the code hid the error."""

    allow_loopback: bool
    attempts: list[Attempt] = field(default_factory=list)

    def check_connection(self, family: int, address: object) -> None:
        """Raise `NetworkForbidden` unless a socket of this family may connect to `address`."""
        if family == socket.AF_UNIX or _PERMITTED.get():
            return
        host, port = _host_and_port(address)
        if not (self.allow_loopback and is_loopback(host)):
            self._refuse(Attempt(host, port))

    def check_lookup(self, host: object, port: object) -> None:
        """Raise `NetworkForbidden` if looking up `host` would query a name server."""
        if _PERMITTED.get():
            return
        name = host.decode("ascii", "replace") if isinstance(host, bytes | bytearray) else host
        if isinstance(name, str) and name and _address(name) is None and not is_loopback(name):
            self._refuse(Attempt(name, port if isinstance(port, int) else None))

    def _refuse(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)
        raise NetworkForbidden(refusal(attempt))

    def provider_calls(self) -> list[str]:
        """Return the advice for clients that called a provider's real host, once per client."""
        return list(dict.fromkeys(refusal(one) for one in self.attempts if redirection(one.host) is not None))


def refusal(attempt: Attempt) -> str:
    """Return why a connection is refused, and what to do."""
    port = "" if attempt.port is None else f" port {attempt.port}"
    return (
        f"a real network connection to {attempt.host!r}{port} is forbidden here; "
        f"{redirection(attempt.host) or _ADVICE}, or allow the network for this test: "
        "@pytest.mark.statek(allow_network=True)"
    )


@contextmanager
def forbid_network(*, allow_loopback: bool = True) -> Iterator[NetworkGuard]:
    """Make every real connection raise `NetworkForbidden` inside the `with` block, in all threads.

    Unix sockets stay allowed, and so do `localhost`, 127.0.0.0/8 and ::1 unless `allow_loopback` is off; binding and
    listening are always allowed. `NetworkForbidden` is not an `OSError`, so retry code does not swallow it. Blocks
    nest: the strictest open one applies, and each one restores the previous state on exit.
    """
    guard = NetworkGuard(allow_loopback)
    # Create all wrappers before setting any: each wraps the original.
    sending = {name: _guarded_send(guard, name) for name in _SENDING}
    resolving = {name: _guarded_lookup(guard, name) for name in _RESOLVING}
    with _replaced(socket.socket, sending), _replaced(socket, resolving):
        yield guard


@contextmanager
def permit_network() -> Iterator[None]:
    """Exempt this thread from every `forbid_network` during the block, for a request that is recorded."""
    token = _PERMITTED.set(True)
    try:
        yield
    finally:
        _PERMITTED.reset(token)


def is_loopback(host: str) -> bool:
    """Return whether `host` is this machine's loopback: `localhost`, a name under it, or a loopback address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _address(host)
    # Before Python 3.13 an IPv4-mapped IPv6 address never counted as loopback.
    mapped = getattr(address, "ipv4_mapped", None)
    return address is not None and bool((mapped or address).is_loopback)


def _guarded_send(guard: NetworkGuard, name: str) -> Callable[..., object]:
    """Wrap the method `name` of `socket.socket`, whose arguments are positional only."""
    original: Callable[..., object] = getattr(socket.socket, name)

    def guarded(self: socket.socket, *args: object) -> object:
        peer = _peer(name, args)
        if peer is not None:
            guard.check_connection(self.family, peer)
        return original(self, *args)

    return guarded


def _guarded_lookup(guard: NetworkGuard, name: str) -> Callable[..., object]:
    """Wrap the function `name` of the `socket` module."""
    original: Callable[..., object] = getattr(socket, name)

    def guarded(*args: object, **options: object) -> object:
        host = args[0] if args else options.get("host")
        port = args[1] if len(args) > 1 else options.get("port")
        guard.check_lookup(host, port)
        return original(*args, **options)

    return guarded


def _peer(name: str, args: tuple[object, ...]) -> object | None:
    """Return the address argument; None without one, as for a send on a connected socket."""
    if name == "sendto":
        return args[-1] if len(args) > 1 else None
    place = 3 if name == "sendmsg" else 0
    return args[place] if len(args) > place else None


@contextmanager
def _replaced(owner: type | ModuleType, replacements: Mapping[str, Callable[..., object]]) -> Iterator[None]:
    """Set attributes during the block. Afterwards an inherited one is deleted again rather than set."""
    before = {name: vars(owner)[name] for name in replacements if name in vars(owner)}
    try:
        for name, replacement in replacements.items():
            setattr(owner, name, replacement)
        yield
    finally:
        for name in replacements:
            if name in before:
                setattr(owner, name, before[name])
            else:
                delattr(owner, name)


def _host_and_port(address: object) -> tuple[str, int | None]:
    if not isinstance(address, tuple) or not address:
        return repr(address), None
    host = address[0]
    port = address[1] if len(address) > 1 and isinstance(address[1], int) else None
    return (host if isinstance(host, str) else repr(host)), port


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address that `host` spells, or None for a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """How to point clients of one provider at another server."""

    provider: str
    hosts: Sequence[str]
    """The hosts to which they connect by default."""
    url_variables: Mapping[str, str]
    """Environment variables with the base URL, and the path after the server's root; the provider's own is first."""
    key_variables: Sequence[str]
    """Environment variables without which a client refuses to start."""
    other_credentials: Sequence[str] = ()
    """Environment variables that would replace the key, or redirect the client to another host."""
    argument: str
    """The argument for a client that reads no variable."""


@cache
def _clients() -> dict[str, Any]:
    text = (resources.files("statek_sim.providers") / "clients.toml").read_text("utf-8")
    return tomllib.loads(text)


@cache
def client_settings() -> tuple[ClientSettings, ...]:
    """Return one entry for each wire format of the fake server."""
    entries: list[dict[str, Any]] = _clients()["client"]
    return tuple(ClientSettings(**entry) for entry in entries)


KEY: Final = "scripted"
"""The key for clients: they require one, and the fake server accepts any."""


def client_environment(url: str) -> dict[str, str | None]:
    """Return the variables that point clients at the server with root `url`; None: to be unset."""
    found: dict[str, str | None] = {**_clients()["quiet"]}
    for client in client_settings():
        found.update({name: url + path for name, path in client.url_variables.items()})
        found.update(dict.fromkeys(client.key_variables, KEY))
        found.update(dict.fromkeys(client.other_credentials))
    return found


def redirection(host: str) -> str | None:
    """Return how to redirect a client of the provider at `host`; None for other hosts."""
    for client in client_settings():
        if host in client.hosts:
            variable = next(iter(client.url_variables))
            return (
                f"a client of {client.provider} made this call: set {variable} before it is created "
                f"(statek_llm_server does so), or pass it {client.argument}"
            )
    return None
