"""Blocks real network connections while tests run, and provides the settings that redirect LLM clients.

Python's `socket` module is patched, which asyncio's default loop, `http.client`, urllib, requests, httpx and ssl use.
Native code that bypasses this module (uvloop, grpc, C drivers) is not detected, so this is not a sandbox.

`clients.toml` lists the settings that LLM clients use to find their provider.
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
    """A blocked connection or name lookup; `port` is None for a lookup without a port."""

    host: str
    port: int | None


@dataclass(frozen=True, slots=True)
class NetworkGuard:
    """Checks connections for `forbid_network`. `attempts` lists all refusals, even if the error was caught."""

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
        """Return a message for each LLM client that called its provider's real host."""
        return list(dict.fromkeys(refusal(one) for one in self.attempts if redirection(one.host) is not None))


def refusal(attempt: Attempt) -> str:
    """Return the error message for a refused connection, with advice."""
    port = "" if attempt.port is None else f" port {attempt.port}"
    return (
        f"a real network connection to {attempt.host!r}{port} is forbidden here; "
        f"{redirection(attempt.host) or _ADVICE}, or allow the network for this test: "
        "@pytest.mark.statek(allow_network=True)"
    )


@contextmanager
def forbid_network(*, allow_loopback: bool = True) -> Iterator[NetworkGuard]:
    """Make every real connection raise `NetworkForbidden` inside the `with` block, in all threads.

    Unix sockets, binding and listening are still allowed, as are connections to `localhost`, 127.0.0.0/8 and ::1 unless
    `allow_loopback` is off. `NetworkForbidden` is not an `OSError`, so retry code does not catch it. Blocks can be
    nested: the strictest block applies, and each block restores the previous state on exit.
    """
    guard = NetworkGuard(allow_loopback)
    # Create all wrappers before setting any: each wraps the original.
    sending = {name: _guarded_send(guard, name) for name in _SENDING}
    resolving = {name: _guarded_lookup(guard, name) for name in _RESOLVING}
    with _replaced(socket.socket, sending), _replaced(socket, resolving):
        yield guard


@contextmanager
def permit_network() -> Iterator[None]:
    """Allow network connections from this thread or task inside the `with` block, to record a request."""
    token = _PERMITTED.set(True)
    try:
        yield
    finally:
        _PERMITTED.reset(token)


def is_loopback(host: str) -> bool:
    """Return whether `host` is loopback: `localhost`, a subdomain of it, or a loopback address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _address(host)
    # Before Python 3.13 an IPv4-mapped IPv6 address never counted as loopback.
    mapped = getattr(address, "ipv4_mapped", None)
    return address is not None and bool((mapped or address).is_loopback)


def _guarded_send(guard: NetworkGuard, name: str) -> Callable[..., object]:
    """Wrap `socket.socket`'s method `name`, whose arguments are positional-only."""
    original: Callable[..., object] = getattr(socket.socket, name)

    def guarded(self: socket.socket, *args: object) -> object:
        peer = _peer(name, args)
        if peer is not None:
            guard.check_connection(self.family, peer)
        return original(self, *args)

    return guarded


def _guarded_lookup(guard: NetworkGuard, name: str) -> Callable[..., object]:
    """Wrap the `socket` module's function `name`."""
    original: Callable[..., object] = getattr(socket, name)

    def guarded(*args: object, **options: object) -> object:
        host = args[0] if args else options.get("host")
        port = args[1] if len(args) > 1 else options.get("port")
        guard.check_lookup(host, port)
        return original(*args, **options)

    return guarded


def _peer(name: str, args: tuple[object, ...]) -> object | None:
    """Return a socket method's address argument, or None if there is none, as in a send on a connected socket."""
    if name == "sendto":
        return args[-1] if len(args) > 1 else None
    place = 3 if name == "sendmsg" else 0
    return args[place] if len(args) > place else None


@contextmanager
def _replaced(owner: type | ModuleType, replacements: Mapping[str, Callable[..., object]]) -> Iterator[None]:
    """Set attributes during the `with` block, and restore the original ones afterwards."""
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
    """Return the IP address in `host`, or None if `host` is a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """The settings that make a provider's clients use a different server."""

    provider: str
    hosts: Sequence[str]
    """The hosts to which the clients connect by default."""
    url_variables: Mapping[str, str]
    """Environment variables for the base URL, main variable first, each with the path to append to the server root."""
    key_variables: Sequence[str]
    """Environment variables for the API key, which clients require."""
    other_credentials: Sequence[str] = ()
    """Environment variables that would override the key or the host."""
    argument: str
    """The argument that sets the base URL for a client that reads no variables."""


@cache
def _clients() -> dict[str, Any]:
    text = (resources.files("statek_sim.providers") / "clients.toml").read_text("utf-8")
    return tomllib.loads(text)


@cache
def client_settings() -> tuple[ClientSettings, ...]:
    """Return the settings from `clients.toml`, one entry per provider."""
    entries: list[dict[str, Any]] = _clients()["client"]
    return tuple(ClientSettings(**entry) for entry in entries)


KEY: Final = "scripted"
"""The API key for clients; the fake server accepts any key."""


def client_environment(url: str) -> dict[str, str | None]:
    """Return the environment variables that make clients use the server at `url`, with None for variables to unset."""
    found: dict[str, str | None] = {**_clients()["quiet"]}
    for client in client_settings():
        found.update({name: url + path for name, path in client.url_variables.items()})
        found.update(dict.fromkeys(client.key_variables, KEY))
        found.update(dict.fromkeys(client.other_credentials))
    return found


def redirection(host: str) -> str | None:
    """Return advice on redirecting a client for the provider at `host`, or None for other hosts."""
    for client in client_settings():
        if host in client.hosts:
            variable = next(iter(client.url_variables))
            return (
                f"a client of {client.provider} made this call: set {variable} before it is created "
                "(statek_llm_server sets it: create the client, or import its module, inside the test), "
                f"or pass it {client.argument}"
            )
    return None
