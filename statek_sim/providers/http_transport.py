"""The seam between a wire format and whatever carries its bytes: one HTTP exchange.

A live transport sends, a recording one also writes down, a replaying one looks up; a test passes a fake. What is on
this side of the seam knows nothing of sockets, and what is on the other side nothing of messages and tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One HTTP request with its real headers: credentials are still in them."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """One HTTP response, its body decompressed, whatever its status.

    `latency` is seconds until it was complete; replayed they pass in virtual time.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    latency: float = 0.0


class HttpTransport(Protocol):
    """Carries requests and answers any status. `ProviderTimeout` and `ProviderUnreachable` when there is none."""

    def send(self, request: HttpRequest) -> HttpResponse:
        """Send one request and return the whole answer."""
