"""Messages between this process and the process running STATEK, as JSON lines with one answer per message.

LLM requests are answered by a provider, such as a script, or by HTTP exchanges.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from typing import Any, BinaryIO, Final, cast

from statek_sim.errors import (
    ProviderHTTPError,
    ProviderTimeout,
    ProviderUnreachable,
    StatekSimError,
)
from statek_sim.providers.http_provider import HttpRequest, HttpTransport
from statek_sim.providers.protocol import ChatRequest, Provider, RawReply
from statek_sim.providers.wire.format import FAKE_URLS, PROVIDERS, format_of, format_of_url
from statek_sim.values import JSON

Message = dict[str, JSON]


class Line:
    """One end of the connection between the two processes."""

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source = source
        self._sink = sink

    @classmethod
    def of_this_process(cls) -> Line:
        """Take over standard input and output; afterwards, printed output goes to standard error."""
        source, sink = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        os.close(nothing)
        return cls(os.fdopen(source, "rb", buffering=0), os.fdopen(sink, "wb", buffering=0))

    def send(self, message: Message) -> None:
        """Send one message."""
        line = json.dumps(message).encode() + b"\n"
        while line:
            line = line[self._sink.write(line) :]

    def receive(self) -> Message | None:
        """Return the next message, or None if the other process has closed the connection."""
        line = self._source.readline()
        if not line.endswith(b"\n"):
            return None
        message = json.loads(line)
        if not isinstance(message, dict):
            raise TypeError(f"expected a message, got {type(message).__name__}")
        return message

    def ask(self, message: Message) -> Message:
        """Send a message and return its answer; raises EOFError if the other process has closed the connection."""
        self.send(message)
        answer = self.receive()
        if answer is None:
            raise EOFError("the other side closed the connection")
        return answer


def nowhere(text: str) -> dict[str, str]:
    """Return fake addresses and keys for the providers named in a string, in any letter case.

    Other providers get no address: STATEK creates a settings object for each provider with an address,
    several times per run, and for all seventy providers this took longer than the rest of the run.
    """
    named = text.upper()
    return {
        variable: value
        for provider in PROVIDERS
        if provider in named
        for variable, value in (
            (f"{provider}_API_URL", FAKE_URLS[format_of(provider).NAME]),
            (f"{provider}_API_KEY", "none"),
        )
    }


_PASSED_ON: Final = ("content-type", "location")
"""Headers that STATEK's client may read. The others describe an encoding that the body no longer has."""


def http_request_of(message: Message) -> HttpRequest:
    """Return the HTTP request in a message from the process running STATEK."""
    sent_request = cast("dict[str, Any]", message["request"])  # written by `Transport`
    return HttpRequest(
        method=sent_request["method"],
        url=sent_request["url"],
        headers=sent_request["headers"],
        body=sent_request["body"].encode(),
    )


def answer_of(llm: Provider, message: Message) -> Message:
    """Return a provider's answer to a request, or the `ProviderFailure` that it raised; other errors propagate."""
    return _told(lambda: _reply(llm.complete(_chat_request(message))))


def exchanged(transport: HttpTransport, message: Message) -> Message:
    """Send a request unchanged through the transport, and return the response or failure."""
    sent_request = http_request_of(message)
    return _told(lambda: _sent(transport, sent_request))


def or_abort(answer: Callable[[Message], Message], message: Message) -> Message:
    """Return the answer to a message.

    If there is no answer, for example because the script does not match, return the message that ends the
    run.
    """
    try:
        return answer(message)
    except StatekSimError as failure:
        return {"abort": {"type": type(failure).__name__, "message": str(failure)}}


def _told(answer: Callable[[], Message]) -> Message:
    try:
        return answer()
    except ProviderHTTPError as failure:
        return {"status": failure.status, "headers": {}, "body": "", "latency": failure.latency}
    except ProviderTimeout as failure:
        return {"timeout": True, "latency": failure.latency}
    except ProviderUnreachable as failure:
        return {"unreachable": str(failure), "latency": failure.latency}


def _reply(reply: RawReply) -> Message:
    body = base64.b64encode(reply.body).decode()
    return {"status": 200, "headers": {}, "body": body, "latency": reply.latency}


def _sent(transport: HttpTransport, sent_request: HttpRequest) -> Message:
    response = transport.send(sent_request)
    return {
        "status": response.status,
        "headers": {key: value for key, value in response.headers.items() if key.lower() in _PASSED_ON},
        "body": base64.b64encode(response.body).decode(),
        "latency": response.latency,
    }


def _chat_request(message: Message) -> ChatRequest:
    sent_request = http_request_of(message)
    wire = format_of_url(sent_request.url)
    read = wire.read_request(json.loads(sent_request.body), sent_request.url)
    return ChatRequest(
        job_id=str(message["job"]),
        role=str(message["role"]),
        turn=cast("int", message["turn"]),
        attempt=cast("int", message["attempt"]),
        at=cast("float", message["at"]),
        model=read.model,
        messages=list(read.messages),
        tools=read.tools,
        temperature=read.temperature,
        bytes_sent=cast("int", message["bytes_sent"]),
        chat_style=cast("Any", message["style"]),  # STATEK's names are ours
        provider=str(message["provider"]),
        wire=wire.NAME,
        headers={name.lower(): value for name, value in sent_request.headers.items()},
    )
