"""What a client says about an HTTP status that is not a success, in httpx's words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from statek_sim.providers.wire.formats import DEFAULT_URL

# Written out because the standard library renames phrases between Python versions.
PHRASES: Final[Mapping[int, str]] = MappingProxyType(
    {
        300: "Multiple Choices",
        301: "Moved Permanently",
        302: "Found",
        303: "See Other",
        304: "Not Modified",
        305: "Use Proxy",
        307: "Temporary Redirect",
        308: "Permanent Redirect",
        400: "Bad Request",
        401: "Unauthorized",
        402: "Payment Required",
        403: "Forbidden",
        404: "Not Found",
        405: "Method Not Allowed",
        406: "Not Acceptable",
        407: "Proxy Authentication Required",
        408: "Request Timeout",
        409: "Conflict",
        410: "Gone",
        411: "Length Required",
        412: "Precondition Failed",
        413: "Request Entity Too Large",
        414: "Request-URI Too Long",
        415: "Unsupported Media Type",
        416: "Requested Range Not Satisfiable",
        417: "Expectation Failed",
        418: "I'm a teapot",
        421: "Misdirected Request",
        422: "Unprocessable Entity",
        423: "Locked",
        424: "Failed Dependency",
        425: "Too Early",
        426: "Upgrade Required",
        428: "Precondition Required",
        429: "Too Many Requests",
        431: "Request Header Fields Too Large",
        451: "Unavailable For Legal Reasons",
        500: "Internal Server Error",
        501: "Not Implemented",
        502: "Bad Gateway",
        503: "Service Unavailable",
        504: "Gateway Timeout",
        505: "HTTP Version Not Supported",
        506: "Variant Also Negotiates",
        507: "Insufficient Storage",
        508: "Loop Detected",
        510: "Not Extended",
        511: "Network Authentication Required",
    }
)
"""Reason phrases of the redirects and of the client and server errors that have one."""

_KINDS: Final = {1: "Informational response", 3: "Redirect response", 4: "Client error", 5: "Server error"}
_REDIRECTS: Final = (301, 302, 303, 307, 308)


def http_error_text(status: int, url: str = DEFAULT_URL, *, location: str | None = None) -> str:
    """Return httpx 0.28's error text for a status outside 200 to 299: in STATEK it becomes the job's error.

    `location` is where a redirect points; STATEK's client does not follow it.
    """
    kind = _KINDS.get(status // 100, "Invalid status code")
    redirect = f"Redirect location: '{location}'\n" if location is not None and status in _REDIRECTS else ""
    return (
        f"{kind} '{status} {PHRASES.get(status, '')}' for url '{url}'\n{redirect}"
        f"For more information check: https://developer.mozilla.org/en-US/docs/Web/HTTP/Status/{status}"
    )
