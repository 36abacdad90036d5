"""Addresses in the one form in which they are compared."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from statek_sim.values import JSON

_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address, taken apart. `query` is sorted: servers do not care about the order of different names."""

    scheme: str
    host: str
    port: int
    path: str
    query: tuple[tuple[str, str], ...]

    def named(self) -> tuple[tuple[str, JSON], ...]:
        """Return the parts by name, parameters as `query.name`."""
        return (
            ("scheme", self.scheme),
            ("host", self.host),
            ("port", self.port),
            ("path", self.path),
            *((f"query.{name}", value) for name, value in self.query),
        )


@lru_cache(maxsize=4096)
def endpoint(uri: str) -> Endpoint:
    """Return the parts of an absolute address; a user name and a fragment are no part of it.

    `ValueError` when it has no host, or a port that is none.
    """
    parts = urlsplit(uri)
    scheme = parts.scheme.lower()
    if not parts.hostname:
        raise ValueError(f"expected an absolute address such as https://host/path, got {uri!r}")
    return Endpoint(
        scheme=scheme,
        host=parts.hostname,
        port=parts.port or _PORTS.get(scheme, 0),
        path=parts.path or "/",
        query=tuple(sorted(parse_qsl(parts.query, keep_blank_values=True), key=lambda pair: pair[0])),
    )
