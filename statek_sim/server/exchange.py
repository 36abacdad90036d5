"""What a server is asked over HTTP and what it does about it, as plain values."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

JSON_TYPE: Final = "application/json"
EVENTS_TYPE: Final = "text/event-stream; charset=utf-8"

ESTIMATED: Final = (("x-statek-usage", "estimated"),)
"""The header of an answer whose prompt was too large to be counted token by token."""


class Incoming(NamedTuple):
    """One request. `target` is path and query as sent; header names are lower case, values Latin-1 text."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    version: str = "1.1"
    keep_alive: bool = True


class Frame(NamedTuple):
    """A piece of a body, and the real seconds that pass before it is sent."""

    delay: float
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """An answer sent in one piece after `delay` real seconds."""

    status: int
    body: bytes
    content_type: str = JSON_TYPE
    headers: tuple[tuple[str, str], ...] = ()
    delay: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """An answer sent frame by frame. `reset`: after the last frame the connection breaks instead of ending well."""

    frames: tuple[Frame, ...]
    status: int = 200
    content_type: str = EVENTS_TYPE
    headers: tuple[tuple[str, str], ...] = ()
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Silence:
    """No answer at all: the connection stays open until the client gives up or the server stops."""


Answer = Whole | Streamed | Silence


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """An answer whose frames are made while it is sent. `frames` is closed when the client goes."""

    frames: AsyncGenerator[bytes, None]
    status: int = 200
    content_type: str = EVENTS_TYPE
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one request may be. Bytes, and seconds until all of it is here."""

    head: int = 65_536
    body: int = 33_554_432
    seconds: float = 60.0


DEFAULT_LIMITS: Final = Limits()
