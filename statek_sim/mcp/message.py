"""JSON-RPC 2.0 as MCP uses it: messages in, messages out, as plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NewType

from statek_sim.values import JSON

Message = dict[str, JSON]
RequestId = NewType("RequestId", str)
"""A request's id as JSON text, so that 1 and "1" differ."""

VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Versions of the protocol that are spoken here, the newest first."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603


class RpcError(Exception):
    """What a request is answered with instead of a result; `code` is JSON-RPC's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def id_of(value: JSON) -> RequestId:
    """Return a request's id as a key."""
    return RequestId(json.dumps(value))


def parsed(text: str | bytes) -> Message:
    """Return the message that a text is; `RpcError` for what is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, f"this is no JSON: {error}") from None
    if not isinstance(found, dict) or found.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'expected one JSON-RPC message with "jsonrpc": "2.0"')
    if "method" in found and not isinstance(found["method"], str):
        raise RpcError(INVALID_REQUEST, "method is no text")
    if "id" in found and (isinstance(found["id"], bool) or not isinstance(found["id"], str | int)):
        raise RpcError(INVALID_REQUEST, "an id is a text or a whole number")
    return found


def result(id_: JSON, value: Mapping[str, JSON]) -> Message:
    """Return the answer to a request."""
    return {"jsonrpc": "2.0", "id": id_, "result": dict(value)}


def error(id_: JSON, code: int, message: str) -> Message:
    """Return the error that a request is answered with; the id is None where it is not known."""
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}}


def notification(method: str, params: Mapping[str, JSON] | None = None) -> Message:
    """Return a message that nobody answers."""
    message: Message = {"jsonrpc": "2.0", "method": method}
    return message if params is None else {**message, "params": dict(params)}


def request(id_: JSON, method: str, params: Mapping[str, JSON]) -> Message:
    """Return a request of the server's own to its client."""
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": dict(params)}
