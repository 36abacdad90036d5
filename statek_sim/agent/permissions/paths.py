"""Resolves paths and hosts and matches them against patterns; `Files` describes the disk."""

from __future__ import annotations

import ipaddress
import posixpath
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Final, Literal, Protocol
from urllib.parse import urlsplit

LINKS: Final = 40
"""The maximum number of links in a path, as in the Linux kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A directory entry. `target` is where a symbolic link points; `links` is a file's number of hard links."""

    kind: Literal["file", "folder", "link", "other"]
    target: str = ""
    links: int = 1


class Files(Protocol):
    """Looks up paths without following links."""

    def look(self, path: str) -> Entry | None:
        """Return the entry at an absolute path, or None if there is none."""


class ScriptedFiles:
    """Files given as data, for tests; their parent folders exist too."""

    def __init__(self, entries: dict[str, Entry]) -> None:
        self._entries = dict(entries)
        for path in entries:
            for parent in PurePosixPath(path).parents:
                self._entries.setdefault(str(parent), Entry(kind="folder"))

    def look(self, path: str) -> Entry | None:
        """Return the entry at a path."""
        return self._entries.get(path)


class Unclear(Exception):
    """Raised for a path, host or command that cannot be compared with rules; the message is the reason."""


def resolved(path: object, folder: str, files: Files, *, visible: bool = True) -> str:
    """Return the absolute path that `path` leads to from `folder`, with links resolved; raises `Unclear`.

    Parts that do not exist are kept, because a file may be created there. `..` after a link leaves the link's target.
    With `visible`, invisible characters are rejected.
    """
    if not isinstance(path, str):
        raise Unclear(
            f"expected a path, got {'nothing' if path is None else f'a value of type {type(path).__name__}'}"
        )
    if not path:
        raise Unclear("the path is empty")
    if "\0" in path:
        raise Unclear("the path contains a NUL")
    if visible and any(unicodedata.category(letter) in ("Cc", "Cf", "Cs") for letter in path):
        raise Unclear("the path contains invisible characters")
    left = _split(path if path.startswith("/") else f"{folder}/{path}")
    done: list[str] = []
    followed = 0
    while left:
        part = left.pop()
        if part == "..":
            del done[-1:]
            continue
        here = "/" + "/".join([*done, part])
        found = files.look(here)
        if found is None or found.kind != "link":
            done.append(part)
            continue
        followed += 1
        if followed > LINKS:
            raise Unclear(f"the path leads through more than {LINKS} links")
        if found.target.startswith("/"):
            done = []
        left += _split(found.target)
    return "/" + "/".join(done)


def _split(path: str) -> list[str]:
    """Return a path's parts in reverse order."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def folded(text: str) -> str:
    """Return a string normalized for comparison, ignoring case, width and invisible characters."""
    seen = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFKC", seen).casefold()


def covers(pattern: str, path: str, folder: str, *, loosely: bool = False) -> bool:
    """Return whether a pattern covers an absolute path; a relative pattern starts at `folder`.

    `*` matches any text within a name, and `**` any number of names, so `src/**` covers `src` and everything in it.
    `loosely` ignores case and look-alike characters, for rules that refuse.
    """
    whole = pattern if pattern.startswith("/") else f"{folder.rstrip('/')}/{pattern}"
    if loosely:
        whole, path = folded(whole), folded(path)
    return _expression(whole).fullmatch(path) is not None


def lexical(path: str, folder: str) -> str:
    """Return `path` as an absolute path, relative to `folder`, without resolving links."""
    return "/" + posixpath.normpath(f"{folder}/{path}" if not path.startswith("/") else path).lstrip("/")


def led(pattern: str, folder: str, files: Files) -> str:
    """Return a pattern as an absolute path, with links resolved in the part before the first `*`."""
    whole = pattern if pattern.startswith("/") else f"{folder.rstrip('/')}/{pattern}"
    parts = whole.split("/")
    literal = next((at for at, part in enumerate(parts) if "*" in part), len(parts))
    try:
        start = resolved("/".join(parts[:literal]) or "/", "/", files, visible=False)
    except Unclear:
        return whole
    return "/".join([start.rstrip("/"), *parts[literal:]]) or "/"


@lru_cache(maxsize=1024)
def _expression(pattern: str) -> re.Pattern[str]:
    """Return the regular expression for a path pattern."""
    made = ""
    for part in pattern.split("/"):
        if part in ("", "."):
            continue
        made += "(?:/[^/]+)*" if part == "**" else "/" + "[^/]*".join(map(re.escape, part.split("*")))
    return re.compile(made or "/")


def protected_name(path: str, names: tuple[str, ...]) -> str | None:
    """Return the protected name in a path, or None if it has none."""
    parts = {folded(part) for part in path.split("/")}
    return next((name for name in names if folded(name) in parts), None)


_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_INSIDE: Final = (".localhost", ".local", ".internal", ".home", ".lan", ".home.arpa")
_ENDS_IN_ADDRESS: Final = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96")))
"""Networks whose addresses end in an IPv4 address: translated (two networks) or mapped."""
_SCHEMES: Final = ("http", "https", "ws", "wss")


def host_of(text: object) -> str:
    """Return the host in a URL, `host` or `host:port`, in lower case; raises `Unclear`.

    Names in non-Latin scripts are unclear, and so are numbers that only some programs read as an address.
    """
    if not isinstance(text, str) or not text:
        raise Unclear("does not name a host")
    if any(ord(letter) <= 0x20 or letter in "\\\x7f" for letter in text):
        raise Unclear("contains blanks, backslashes or control characters")
    scheme, separator, _ = text.partition("://")
    if separator and scheme.lower() not in _SCHEMES:
        raise Unclear(f"the scheme is {scheme!r}; expected one of {', '.join(_SCHEMES)}")
    try:
        parts = urlsplit(text if separator else f"//{text}")
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise Unclear(f"not a valid URL: {error}") from None
    return _plain(host.removesuffix("."))


def _plain(host: str) -> str:
    if ":" in host or _is_number(host.rpartition(".")[2]):
        try:
            found = ipaddress.ip_address(host)
        except ValueError:
            raise Unclear(f"{host!r} is not a plain address") from None
        mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
        return str(mapped or found)
    if not host or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise Unclear(f"{host!r} is not a plain host name")
    return host


def _is_number(label: str) -> bool:
    """Return whether some programs read a host's last label as a number, and so the host as an address."""
    return label.isdigit() or re.fullmatch(r"0x[0-9a-f]*", label) is not None


def is_inside(host: str) -> bool:
    """Return whether a host is this machine, on its network, or a name that only looks public."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or f".{host}".endswith(_INSIDE)
    # An address that embeds others is classified by those, because Python releases differ about the address itself.
    judged: list[ipaddress.IPv4Address] | list[ipaddress.IPv4Address | ipaddress.IPv6Address]
    judged = _embedded(found) or [found]
    return found.is_multicast or any(address.is_multicast or not address.is_global for address in judged)


def _embedded(found: ipaddress.IPv4Address | ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    """Return the IPv4 addresses embedded in an address by a gateway, a tunnel or another notation."""
    if isinstance(found, ipaddress.IPv4Address):
        return []
    embedded = [found.sixtofour, found.ipv4_mapped, *(found.teredo or ())]
    if any(found in network for network in _ENDS_IN_ADDRESS):
        embedded.append(ipaddress.IPv4Address(found.packed[-4:]))
    return [address for address in embedded if address is not None]


def covers_host(pattern: str, host: str, *, loosely: bool = False) -> bool:
    """Return whether a rule covers a host: the host itself, its parent as `*.example.com`, or `*`.

    `*` covers only public hosts: addresses of this machine or its network must be named explicitly, except in rules
    that refuse (`loosely`).
    """
    pattern = pattern.lower().removesuffix(".")
    if pattern == "*":
        return loosely or not is_inside(host)
    if pattern.startswith("*."):
        return host.endswith(pattern[1:])
    return host == pattern
