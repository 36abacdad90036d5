"""A small provider on loopback: answers as OpenAI and Anthropic do, also gzipped and streamed. For tests."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

REPLY = "Paris is the capital of France."


@dataclass
class Provider:
    """A running server: where it is, and how many requests it got."""

    url: str
    requests: list[str] = field(default_factory=list)
    encodings: list[str] = field(default_factory=list)
    say: Callable[[dict[str, Any]], str] = lambda body: REPLY
    breaks_off: bool = False
    """Whether a stream ends after its second event, in the middle of its body."""
    stalls: float = 0.0
    """Seconds that a stream is silent after its second event."""


class _Handler(BaseHTTPRequestHandler):
    provider: ClassVar[Provider]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self.provider.requests.append(self.path)
        self._send(b'{"object": "list", "data": []}', "application/json")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
        self.provider.requests.append(self.path)
        self.provider.encodings.append(self.headers.get("accept-encoding", ""))
        text = self.provider.say(body)
        anthropic = self.path.endswith("/messages")
        if body.get("stream"):
            self._stream(_anthropic_events(text) if anthropic else _openai_events(text))
        else:
            answer = _anthropic(text) if anthropic else _openai(text)
            self._send(json.dumps(answer, separators=(",", ":")).encode(), "application/json")

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("set-cookie", "__cf_bm=verysecretsession; path=/")
        self.send_header("x-request-id", f"req_{len(self.provider.requests)}")
        if "gzip" in self.headers.get("accept-encoding", ""):
            body = gzip.compress(body)
            self.send_header("content-encoding", "gzip")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, events: Iterator[str]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number, event in enumerate(events):
            if self.provider.breaks_off and number == 2:
                self.close_connection = True
                return
            if self.provider.stalls and number == 2:
                time.sleep(self.provider.stalls)
                self.close_connection = True
                return
            data = event.encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()
            time.sleep(0.002)
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        pass


@contextmanager
def provider(say: Callable[[dict[str, Any]], str] = lambda body: REPLY) -> Iterator[Provider]:
    """Run a provider inside the block; `say` turns a request's body into the reply's text."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    running = Provider(f"http://127.0.0.1:{server.server_port}", say=say)
    server.RequestHandlerClass = type("Handler", (_Handler,), {"provider": running})
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _openai(text: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o-2024-08-06",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16},
    }


def _anthropic(text: str) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-20250514",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 7},
    }


def _pieces(text: str) -> Iterator[str]:
    """Cut a text as a tokenizer would: a word or a few characters at a time."""
    for start in range(0, len(text), 5):
        yield text[start : start + 5]


def _openai_events(text: str) -> Iterator[str]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-2024-08-06"}
    for piece in _pieces(text):
        choice = {"index": 0, "delta": {"content": piece}, "finish_reason": None}
        yield f"data: {json.dumps({**head, 'choices': [choice]})}\n\n"
    yield f"data: {json.dumps({**head, 'choices': [{'index': 0, 'delta': {}, 'finish_reason': 'stop'}]})}\n\n"
    yield "data: [DONE]\n\n"


def _anthropic_events(text: str) -> Iterator[str]:
    def event(kind: str, **members: object) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n"

    yield event("message_start", message={**_anthropic(""), "content": []})
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for piece in _pieces(text):
        yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
    yield event("content_block_stop", index=0)
    yield event(
        "message_delta",
        delta={"stop_reason": "end_turn", "stop_sequence": None},
        usage={"output_tokens": 7},
    )
    yield event("message_stop")
