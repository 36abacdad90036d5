"""HTTP requests, routes and responses as plain values."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from statek_sim.providers.protocol import Place as PlaceName
from statek_sim.providers.wire.format import FORMATS
from statek_sim.providers.wire.reply import WireReply
from statek_sim.providers.wire.request import FormatName

JSON_TYPE: Final = "application/json"
EVENTS_TYPE: Final = "text/event-stream; charset=utf-8"

ESTIMATED: Final = (("x-statek-usage", "estimated"),)
"""Marks a response whose usage is an estimate, because the request is too large for counting its tokens."""


class Incoming(NamedTuple):
    """An HTTP request. `target` is the path and query as sent; header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    version: str = "1.1"
    keep_alive: bool = True


class Frame(NamedTuple):
    """A body chunk, and the real seconds to wait before sending it."""

    delay: float
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A response sent as a whole after `delay` real seconds; `message` is the model's message in the body."""

    status: int
    body: bytes
    content_type: str = JSON_TYPE
    headers: tuple[tuple[str, str], ...] = ()
    delay: float = 0.0
    message: WireReply | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """A response sent frame by frame; `message` is the model's message in the frames.

    If `reset` is set, the connection is reset after the last frame.
    """

    frames: tuple[Frame, ...]
    status: int = 200
    content_type: str = EVENTS_TYPE
    headers: tuple[tuple[str, str], ...] = ()
    reset: bool = False
    message: WireReply | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Silence:
    """No response: the connection stays open until the client gives up or the server stops."""


Answer = Whole | Streamed | Silence


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """A stream whose events are generated as they are sent; `frames` is closed when the client disconnects."""

    frames: AsyncGenerator[bytes, None]
    headers: tuple[tuple[str, str], ...] = ()


JOURNAL: Final = "/statek/journal"
UNUSED: Final = "/statek/unused"

_GEMINI: Final = (
    ":generateContent",
    ":streamGenerateContent",
    ":countTokens",
    ":embedContent",
    ":batchEmbedContents",
)


class Place(Enum):
    """A server endpoint, or the reason why a path has no endpoint."""

    CHAT = "chat"
    EMBEDDINGS = "embeddings"
    COUNT = "count_tokens"
    MODELS = "models"
    MODEL = "model"
    JOURNAL = "journal"
    UNUSED = "unused"
    NOWHERE = "nowhere"
    WRONG_METHOD = "wrong method"
    NO_EVENTS = "a stream without `alt=sse`"


SCRIPTED_PLACES: Final[Mapping[Place, PlaceName]] = {
    Place.CHAT: "chat",
    Place.EMBEDDINGS: "embeddings",
    Place.COUNT: "count_tokens",
}
"""Maps the endpoints for replies, embeddings and token counts to the kind of request each one accepts."""


@dataclass(frozen=True, slots=True)
class Route:
    """A request's endpoint, its wire format, and its path without the query.

    `name` is the model for `Place.MODEL`; `allowed` lists the supported methods for `Place.WRONG_METHOD`.
    """

    place: Place
    wire: FormatName
    path: str
    name: str = ""
    allowed: str = ""


@lru_cache(maxsize=4096)
def route(method: str, target: str) -> Route:
    """Route a request by the end of its path, so that a client's base URL can have any prefix.

    A path with a `.` or `..` segment is not found.
    """
    try:
        split = urlsplit(target)
    except ValueError:
        return Route(Place.NOWHERE, "openai", target)
    path = unquote(split.path)
    wire = _wire(path)
    if not path.startswith("/") or {".", ".."} & set(path.split("/")):
        return Route(Place.NOWHERE, wire, path)
    place = _scripted_place(path, split.query)
    if place is not None:
        if method != "POST":
            return Route(Place.WRONG_METHOD, wire, path, allowed="POST")
        return Route(place, wire, path)
    found = _other_route(path, wire)
    if found.place is not Place.NOWHERE and method not in ("GET", "HEAD"):
        return Route(Place.WRONG_METHOD, wire, path, allowed="GET, HEAD")
    return found


def wire_of(target: str) -> FormatName:
    """Return the wire format for a request target, which may be incomplete."""
    try:
        return _wire(unquote(urlsplit(target).path))
    except ValueError:
        return "openai"


def _wire(path: str) -> FormatName:
    if path.endswith(("/messages", "/messages/count_tokens")):
        return "anthropic"
    if path.endswith(("/responses", "/responses/input_tokens")):
        return "responses"
    if path.endswith(_GEMINI) or path.startswith("/v1beta/"):
        return "gemini"
    return "openai"


def _scripted_place(path: str, query: str) -> Place | None:
    if path.endswith(("/chat/completions", "/messages", "/responses", ":generateContent")):
        return Place.CHAT
    if path.endswith(("/embeddings", ":embedContent", ":batchEmbedContents")):
        return Place.EMBEDDINGS
    if path.endswith(("/messages/count_tokens", "/responses/input_tokens", ":countTokens")):
        return Place.COUNT
    if path.endswith(":streamGenerateContent"):
        return Place.CHAT if parse_qs(query).get("alt") == ["sse"] else Place.NO_EVENTS
    return None


def _other_route(path: str, wire: FormatName) -> Route:
    if path in (JOURNAL, UNUSED):
        return Route(Place.JOURNAL if path == JOURNAL else Place.UNUSED, wire, path)
    before, models, model = path.partition("/models")
    if not models or before not in ("", "/v1", "/v1beta"):
        return Route(Place.NOWHERE, wire, path)
    if model in ("", "/"):
        return Route(Place.MODELS, wire, path)
    return Route(Place.MODEL if model.startswith("/") else Place.NOWHERE, wire, path, model[1:])


def refused(status: int, message: str, target: str) -> Whole:
    """Return an error response in the format for the request's target, which may be incomplete or empty."""
    return Whole(status=status, body=FORMATS[wire_of(target)].error_body(status, message))


def failed(error: Exception, target: str) -> Whole:
    """Return a 500 response for an exception in the server."""
    return refused(500, f"the server failed: {type(error).__name__}: {error}", target)
