"""A cassette's contents: HTTP requests and their responses, as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

Headers = tuple[tuple[str, str], ...]
"""Names and values in the order in which they were sent; a name may occur several times."""

EVENT_STREAM: Final = "text/event-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An HTTP request with an absolute `uri`; the body is empty if the request has none."""

    method: str
    uri: str
    headers: Headers = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True, order=True)
class Chunk:
    """A chunk of a response body: `size` bytes that arrived `at` seconds after the request was sent."""

    at: float
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An HTTP response with a decoded body; `chunks` is empty unless the timing was recorded."""

    status: int
    reason: str = ""
    headers: Headers = ()
    body: bytes = b""
    chunks: tuple[Chunk, ...] = ()

    @property
    def is_stream(self) -> bool:
        """Whether the body is server-sent events."""
        return media_type(self.headers) == EVENT_STREAM


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A request and its response; `line` is the one-based number of its first line, or 0 if there is no file."""

    request: Request
    response: Response
    line: int = 0


def header(headers: Headers, name: str) -> str | None:
    """Return a header's first value, or None; the name is case-insensitive."""
    wanted = name.lower()
    return next((value for key, value in headers if key.lower() == wanted), None)


def media_type(headers: Headers) -> str:
    """Return the lower-case content type without parameters, or an empty string."""
    return (header(headers, "content-type") or "").partition(";")[0].strip().lower()


def without(headers: Headers, names: Iterable[str]) -> Headers:
    """Return the headers whose lower-case names are not in `names`."""
    left_out = frozenset(names)
    return tuple((key, value) for key, value in headers if key.lower() not in left_out)
