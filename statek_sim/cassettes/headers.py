"""Headers that a cassette keeps: those that mean the same tomorrow.

What differs with every call or every machine would be all that a diff shows. Nothing here is needed to replay, and
headers do not count when requests are compared.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from statek_sim.cassettes.exchange import Exchange, Headers

_OF_REQUESTS: Final = frozenset(
    {
        "accept-encoding", "connection", "content-length", "host", "idempotency-key", "openai-organization",
        "openai-project", "te", "traceparent", "tracestate", "transfer-encoding", "user-agent",
        "x-goog-api-client", "x-goog-user-project",
    }
)  # fmt: skip
_OF_RESPONSES: Final = frozenset(
    {
        "age", "alt-svc", "anthropic-organization-id", "cf-cache-status", "cf-ray", "connection", "content-encoding",
        "date", "expires", "keep-alive", "nel", "openai-organization", "openai-processing-ms", "openai-project",
        "report-to", "reporting-endpoints", "request-id", "server", "server-timing", "strict-transport-security",
        "transfer-encoding", "vary", "via", "x-cloud-trace-context", "x-envoy-upstream-service-time", "x-request-id",
        "x-robots-tag",
    }
)  # fmt: skip
_STARTS: Final = (
    "x-stainless-",
    "x-ratelimit-",
    "anthropic-ratelimit-",
    "access-control-",
    "x-amz-cf-",
    "cf-",
)


def lasting(exchange: Exchange) -> Exchange:
    """Return the exchange without the headers that change from call to call."""
    return replace(
        exchange,
        request=replace(exchange.request, headers=_kept(exchange.request.headers, _OF_REQUESTS)),
        response=replace(exchange.response, headers=_kept(exchange.response.headers, _OF_RESPONSES)),
    )


def _kept(headers: Headers, dropped: frozenset[str]) -> Headers:
    return tuple(
        (name, value)
        for name, value in headers
        if name.lower() not in dropped and not name.lower().startswith(_STARTS)
    )
