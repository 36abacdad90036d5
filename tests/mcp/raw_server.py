"""A server that answers calls with whatever line it is told to send, as a program on stdio."""

from __future__ import annotations

import json
import sys

TOOL = {
    "name": "say",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object", "required": ["fine"]},
}


def answer(message: dict[str, object]) -> str | None:
    said: dict[str, object] = {"jsonrpc": "2.0", "id": message.get("id")}
    match message.get("method"):
        case "initialize":
            version = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
            return json.dumps({**said, "result": {**version, "serverInfo": {"name": "raw", "version": "1"}}})
        case "tools/list":
            return json.dumps({**said, "result": {"tools": [TOOL]}})
        case "tools/call":
            params = message["params"]
            assert isinstance(params, dict)
            line: str = params["arguments"]["line"]
            return line.replace("$ID", json.dumps(message["id"]))
        case "server/discover":
            return json.dumps({**said, "error": {"code": -32601, "message": "Method not found"}})
        case _:
            return None


for line in sys.stdin:
    told = answer(json.loads(line))
    if told is not None:
        sys.stdout.buffer.write(told.encode("utf-8", "surrogateescape") + b"\n")
        sys.stdout.buffer.flush()
