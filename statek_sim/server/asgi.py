"""The fake LLM as an ASGI application, for uvicorn, granian, hypercorn or a test client that speaks ASGI.

    llm = FakeLLM(["print('hello')"])
    app = asgi_app(llm.begin)                      # uvicorn module:app

An ASGI server decides itself how large heads may be and how a connection ends: a reset on command is an exception
after the frames before it, upon which servers close the connection without ending the body.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, Final

from statek_sim.server.exchange import (
    DEFAULT_LIMITS,
    Answer,
    Frame,
    Incoming,
    Later,
    Limits,
    Silence,
    Whole,
    worked_out,
)
from statek_sim.server.routes import refused

# The names and types of the ASGI 3 specification.
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]

_TOO_LARGE: Final = "the body is too large"


class ConnectionResetOnCommand(ConnectionResetError):
    """Raised into the ASGI server where the script wants the connection to break."""


def asgi_app(
    handler: Callable[[Incoming], Answer | Later], *, limits: Limits = DEFAULT_LIMITS
) -> Application:
    """Return an ASGI 3 application that answers what `handler` says."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            body = await _body(receive, limits.body)
            request = _request(scope, body or b"")
            answer = refused(413, _TOO_LARGE, request.target) if body is None else handler(request)
            if isinstance(answer, Later):
                answer = await asyncio.to_thread(worked_out, answer)
            await _give(answer, receive, send)

    return app


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return


async def _body(receive: Receive, limit: int) -> bytes | None:
    """Return the whole body, or None when it is larger than `limit` bytes."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            return None
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


def _request(scope: Scope, body: bytes) -> Incoming:
    query = scope["query_string"].decode("latin-1")
    path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    return Incoming(scope["method"], f"{path}?{query}" if query else path, headers, body)


async def _give(answer: Answer, receive: Receive, send: Send) -> None:
    if isinstance(answer, Silence):
        while (await receive())["type"] != "http.disconnect":
            pass
        return
    whole = isinstance(answer, Whole)
    frames = (Frame(answer.delay, answer.body),) if isinstance(answer, Whole) else answer.frames
    headers = [("content-type", answer.content_type), *answer.headers]
    if isinstance(answer, Whole):
        headers.append(("content-length", str(len(answer.body))))
    start = {
        "type": "http.response.start",
        "status": answer.status,
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers],
    }
    for number, (delay, data) in enumerate(frames):
        if delay:
            await asyncio.sleep(delay)
        if number == 0:
            await send(start)
        await send({"type": "http.response.body", "body": data, "more_body": not whole})
    if isinstance(answer, Whole):
        return
    if not frames:
        await send(start)
    if answer.reset:
        raise ConnectionResetOnCommand("the script resets this connection here")
    await send({"type": "http.response.body", "body": b"", "more_body": False})
