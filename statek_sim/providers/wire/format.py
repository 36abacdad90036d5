"""The interface of a wire format. The modules `openai`, `responses`, `anthropic` and `gemini` each are one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, Protocol

from statek_sim.providers.wire.reply import ParsedReply, WireReply
from statek_sim.providers.wire.request import PLAIN, Asked, ClientOptions, WireRequest
from statek_sim.values import JSON

FormatName = Literal["openai", "responses", "anthropic", "gemini"]

Split = Callable[[str], Sequence[str]]
"""Cuts a text into the pieces that a stream sends one by one; joined they are the text again."""


class WireFormat(Protocol):
    """One provider's language. All functions are pure: no sockets, no clock, no randomness."""

    @property
    def NAME(self) -> FormatName:  # noqa: N802  # a constant of the module
        """The format's name."""

    # What STATEK's client does.

    def request_url(self, api_url: str, model: str) -> str:
        """Return where a request goes; `api_url` is the provider's `<P>_API_URL`."""

    def request_headers(self, api_key: str, options: ClientOptions = PLAIN) -> dict[str, str]:
        """Return the headers of a request, `Content-Type` included."""

    def request_body(self, request: Asked, options: ClientOptions = PLAIN) -> dict[str, JSON]:
        """Return the JSON body of a request, keys in STATEK's order."""

    def read_reply(self, body: bytes) -> ParsedReply:
        """Read a successful answer; what STATEK cannot read raises what STATEK raises."""

    # What a provider does.

    def read_request(self, body: JSON, url: str = "") -> WireRequest:
        """Read a request; a wrong one is a `BadRequest`. `url`, or its path, names Gemini's model."""

    def reply_body(self, reply: WireReply) -> bytes:
        """Return the body of an answer: compact UTF-8 JSON."""

    def reply_stream(self, reply: WireReply, split: Split, *, usage: bool = True) -> Iterator[bytes]:
        """Yield the server-sent events of an answer; `usage` off leaves the usage out."""

    def error_body(
        self, status: int, message: str, *, parameter: str | None = None, code: str | None = None
    ) -> bytes:
        """Return the body of a failed answer; what is wrong by name where the format has a place for it."""

    def join_stream(self, stream: bytes) -> bytes:
        """Return the body that a streamed answer would have had in one piece."""
