"""Contents of a cassette: HTTP requests and their responses, as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

Headers = tuple[tuple[str, str], ...]
"""Names and values in the order in which they were sent; names may repeat."""

EVENT_STREAM: Final = "text/event-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An HTTP request. `uri` is absolute; an empty `body` is none."""

    method: str
    uri: str
    headers: Headers = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True, order=True)
class Chunk:
    """One piece of a response's body as it arrived: `at` seconds after the request was sent, `size` bytes."""

    at: float
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An HTTP response. `body` is decoded; `chunks` is empty unless the timing was recorded."""

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
    """A request and its response; `line` is where it starts in its file, from 1, or 0 without a file."""

    request: Request
    response: Response
    line: int = 0


def header(headers: Headers, name: str) -> str | None:
    """Return the first value of a header, in any letter case; None if it is missing."""
    wanted = name.lower()
    return next((value for key, value in headers if key.lower() == wanted), None)


def media_type(headers: Headers) -> str:
    """Return the content type without its parameters, in lower case, or the empty string."""
    return (header(headers, "content-type") or "").partition(";")[0].strip().lower()


def without(headers: Headers, names: Iterable[str]) -> Headers:
    """Return the headers without these names, which are in lower case."""
    left_out = frozenset(names)
    return tuple((key, value) for key, value in headers if key.lower() not in left_out)
