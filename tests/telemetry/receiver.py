"""An OTLP/HTTP receiver for tests: it decodes what comes with the official protobuf messages."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Received:
    """What came, in its order."""

    address: str = ""
    requests: list[ExportTraceServiceRequest] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    status: int = 200

    @property
    def spans(self) -> list[Span]:
        """All spans."""
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


def attributes(values: object) -> dict[str, object]:
    """Return attributes as plain values."""
    told: dict[str, object] = {}
    for one in values:  # type: ignore[attr-defined]  # a repeated field
        assert isinstance(one, KeyValue)
        kind = one.value.WhichOneof("value")
        told[one.key] = getattr(one.value, str(kind))
    return told


@contextmanager
def receiving() -> Iterator[Received]:
    """Run a receiver on a free port of this machine."""
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            message = ExportTraceServiceRequest()
            message.ParseFromString(body)
            received.requests.append(message)
            received.headers.append(
                {"path": self.path, **{key.lower(): value for key, value in self.headers.items()}}
            )
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(received.status)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    received.address = f"http://127.0.0.1:{server.server_port}/v1/traces"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
