"""Which host a URL names, and whether a rule covers it: pure, nothing is looked up."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

from statek_sim.agent.permissions.paths import Unclear

_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_INSIDE: Final = (".localhost", ".local", ".internal", ".home", ".lan", ".home.arpa")
_ENDS_IN_ADDRESS: Final = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96")))
"""Where the last four bytes are an address of the older kind: translated (twice), or written in the new way."""
_SCHEMES: Final = ("http", "https", "ws", "wss")


def host_of(text: object) -> str:
    """Return the host of a URL, or of `host` or `host:port`, in small letters; raises `Unclear`.

    Names in other scripts, and numbers that are an address only to some programs, are unclear.
    """
    if not isinstance(text, str) or not text:
        raise Unclear("it names no host")
    if any(ord(letter) <= 0x20 or letter in "\\\x7f" for letter in text):
        raise Unclear("it has blanks, backslashes or control characters in it")
    scheme, separator, _ = text.partition("://")
    if separator and scheme.lower() not in _SCHEMES:
        raise Unclear(f"its scheme is {scheme!r}; expected one of {', '.join(_SCHEMES)}")
    try:
        parts = urlsplit(text if separator else f"//{text}")
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise Unclear(f"it is no URL: {error}") from None
    return _plain(host.removesuffix("."))


def _plain(host: str) -> str:
    if ":" in host or _is_number(host.rpartition(".")[2]):
        try:
            found = ipaddress.ip_address(host)
        except ValueError:
            raise Unclear(f"{host!r} is no plain address") from None
        mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
        return str(mapped or found)
    if not host or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise Unclear(f"{host!r} is no plain name of a host")
    return host


def _is_number(label: str) -> bool:
    """Return whether programs may read a host's last label as a number, which makes it an address."""
    return label.isdigit() or re.fullmatch(r"0x[0-9a-f]*", label) is not None


def is_inside(host: str) -> bool:
    """Return whether a host is this machine, its network, or one that only looks like a name in the world."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or f".{host}".endswith(_INSIDE)
    # What leads to others is what those are: releases of Python do not agree on what it is itself.
    judged: list[ipaddress.IPv4Address] | list[ipaddress.IPv4Address | ipaddress.IPv6Address]
    judged = _embedded(found) or [found]
    return found.is_multicast or any(address.is_multicast or not address.is_global for address in judged)


def _embedded(found: ipaddress.IPv4Address | ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    """Return the addresses of the older kind that one leads to: by a gateway, a tunnel, or another spelling."""
    if isinstance(found, ipaddress.IPv4Address):
        return []
    embedded = [found.sixtofour, found.ipv4_mapped, *(found.teredo or ())]
    if any(found in network for network in _ENDS_IN_ADDRESS):
        embedded.append(ipaddress.IPv4Address(found.packed[-4:]))
    return [address for address in embedded if address is not None]


def covers_host(pattern: str, host: str, *, loosely: bool = False) -> bool:
    """Return whether a rule covers a host: itself, `*.example.com` for what is below it, or `*`.

    `*` alone is the world outside: an address of this machine or its network has to be named, but for what is refused
    (`loosely`).
    """
    pattern = pattern.lower().removesuffix(".")
    if pattern == "*":
        return loosely or not is_inside(host)
    if pattern.startswith("*."):
        return host.endswith(pattern[1:])
    return host == pattern
