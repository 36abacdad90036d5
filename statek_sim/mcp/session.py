"""The JSON-RPC messages between a client and an MCP server, independent of the transport."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, NewType

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.mcp.fault import LIST, McpFault
from statek_sim.mcp.server import VERSION, McpEntry, McpServer, text_result
from statek_sim.values import JSON

Send = Callable[[str], Awaitable[None]]
"""Sends one message, a line of JSON, to the client."""

Die = Callable[[], None]
"""Ends the server immediately, for the fault `dies`."""

_NO_JSON: Final = '{"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "te'
_NOBODYS_ID: Final = "a-request-that-nobody-made"


class Session:
    """A client's session, which processes its messages and sends the answers.

    `announce` sends notifications to the client, and `die` ends the server for the fault `dies`.
    """

    def __init__(self, server: McpServer, *, announce: Send, die: Die, name: str = "") -> None:
        self.server = server
        self.name = name
        self.version = VERSIONS[0]
        self._announce = announce
        self._die = die
        self._running: dict[str, asyncio.Task[None]] = {}
        self._notices: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._forget = server.on_change(self._list_changed)

    def close(self) -> None:
        """Stop sending notifications, and cancel running calls."""
        self._forget()
        for task in (*self._running.values(), *self._notices):
            task.cancel()

    async def receive(self, message: Message, reply: Send) -> None:
        """Process one client message, sending the answers through `reply` before returning."""
        method = message.get("method")
        if isinstance(method, str) and "id" in message:
            await self._request(message, method, reply)
        else:
            self.take(message)

    def take(self, message: Message) -> None:
        """Process a notification or a response from the client, neither of which is answered."""
        method = message.get("method")
        if isinstance(method, str):
            self._on_notification(method, _params(message))
        else:
            self._note(McpEntry(what="response"))

    # -- requests ----------------------------------------------------------------------------------------------

    async def _request(self, message: Message, method: str, reply: Send) -> None:
        key, task = id_of(message["id"]), asyncio.current_task()
        assert task is not None
        self._running[key] = task
        try:
            await self._dispatch(message, method, reply)
        except RpcError as refusal:
            await reply(_line(error(message["id"], refusal.code, str(refusal))))
        except asyncio.CancelledError:
            self._note(McpEntry(what="cancelled", method=method))
            raise
        finally:
            self._running.pop(key, None)

    async def _dispatch(self, message: Message, method: str, reply: Send) -> None:
        params = _params(message)
        if method == "tools/call":
            await self._call(message["id"], params, reply)
            return
        named = {"resources/read": self.server.resources, "prompts/get": self.server.prompts}
        if named.get(method):
            name, arguments = str(params.get("uri", params.get("name"))), params.get("arguments") or {}
            if not isinstance(arguments, dict):
                raise RpcError(INVALID_PARAMS, "expected an object of arguments")
            self._note(McpEntry(what="request", method=method, name=name, arguments=arguments))
            await reply(_line(result(message["id"], _named(self.server, method, name, arguments))))
            return
        self._note(McpEntry(what="request", method=method))
        match method:
            case "initialize":
                answer = self._initialize(params)
            case "ping":
                answer = {}
            case "tools/list":
                await self._list(message["id"], params, reply)
                return
            case "resources/list" if self.server.resources:
                answer = {"resources": [one.listed() for one in self.server.resources.values()]}
            case "resources/templates/list" if self.server.resources:
                answer = {"resourceTemplates": []}
            case "prompts/list" if self.server.prompts:
                answer = {"prompts": [one.listed() for one in self.server.prompts.values()]}
            case _:
                raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method}")
        await reply(_line(result(message["id"], answer)))

    def _initialize(self, params: Mapping[str, JSON]) -> dict[str, JSON]:
        version = params.get("protocolVersion")
        self.version = version if isinstance(version, str) and version in VERSIONS else VERSIONS[0]
        capabilities: dict[str, JSON] = {"tools": {"listChanged": True}}
        capabilities |= {key: {} for key in ("resources", "prompts") if getattr(self.server, key)}
        return {
            "protocolVersion": self.version,
            "capabilities": capabilities,
            "serverInfo": {"name": self.server.name, "version": VERSION},
        }

    async def _list(self, id_: JSON, params: Mapping[str, JSON], reply: Send) -> None:
        tools, page = self.server.listed, self.server.page
        cursor = params.get("cursor")
        if cursor is not None and not (isinstance(cursor, str) and cursor.isdecimal()):
            raise RpcError(INVALID_PARAMS, f"unknown cursor {cursor!r}")
        start = 0 if cursor is None else int(cursor[:9])
        fault = self.server.faults.strike(LIST)
        end = len(tools) if page is None else start + page
        answer: dict[str, JSON] = {"tools": [tool.listed() for tool in tools[start:end]]}
        if end < len(tools):
            answer["nextCursor"] = str(end)
        if fault is not None and fault.kind == "loops":
            answer["nextCursor"] = str(start)
        await self._give(id_, answer, fault, reply)

    async def _call(self, id_: JSON, params: Mapping[str, JSON], reply: Send) -> None:
        name, arguments = params.get("name"), params.get("arguments", {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "expected a name and an object of arguments")
        self._note(McpEntry(what="request", method="tools/call", name=name, arguments=arguments))
        tool = next((tool for tool in self.server.listed if tool.name == name), None)
        if tool is None:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {name}")
        fault = self.server.faults.strike(name)
        if fault is not None and fault.kind in ("dies", "silent", "fails", "huge", "refuses"):
            await self._give(id_, text_result("").as_json(), fault, reply)
            return
        if fault is not None and fault.kind == "changes":
            self.server.list_only(fault.names)
            await asyncio.sleep(0)  # the notification goes out before the answer
        try:
            given = await tool.run(arguments)
        except RpcError:
            raise
        except Exception as failure:  # noqa: BLE001  # a user's tool
            given = text_result(f"{type(failure).__name__}: {failure}", is_error=True)
        await self._give(id_, given.as_json(), fault, reply)

    async def _give(self, id_: JSON, answer: Mapping[str, JSON], fault: McpFault | None, reply: Send) -> None:
        """Send the answer to request `id_`, or what the fault sends instead."""
        if fault is None:
            await reply(_line(result(id_, answer)))
            return
        self._note(McpEntry(what="fault", detail=str(fault)))
        if fault.seconds:
            await asyncio.sleep(fault.seconds)
        match fault.kind:
            case "slow" | "changes" | "loops":
                await reply(_line(result(id_, answer)))
            case "silent":
                await asyncio.get_running_loop().create_future()
            case "dies":
                self._die()
                await asyncio.get_running_loop().create_future()
            case "malformed":
                await reply(_line(result(id_, {"content": "no list", "tools": 1})))
            case "no-json":
                await reply(_NO_JSON)
            case "wrong-id":
                await reply(_line(result(_NOBODYS_ID, answer)))
                await asyncio.get_running_loop().create_future()
            case "huge":
                await reply(_line(result(id_, text_result("x" * fault.size).as_json())))
            case "fails":
                await reply(
                    _line(result(id_, text_result(fault.value or "it failed", is_error=True).as_json()))
                )
            case "refuses":
                await reply(_line(error(id_, INTERNAL_ERROR, fault.value or "Internal error")))

    # -- notifications -----------------------------------------------------------------------------------------

    def _on_notification(self, method: str, params: Mapping[str, JSON]) -> None:
        self._note(McpEntry(what="notification", method=method))
        if method == "notifications/cancelled":
            task = self._running.get(id_of(params.get("requestId")))
            if task is not None:
                task.cancel()

    def _list_changed(self) -> None:
        """Notify the client that the tools changed; may be called from any thread."""
        if asyncio._get_running_loop() is self._loop:
            self._notify()
        else:
            self._loop.call_soon_threadsafe(self._notify)

    def _notify(self) -> None:
        notice = self._loop.create_task(self._announce_change())
        self._notices.add(notice)
        notice.add_done_callback(self._notices.discard)

    async def _announce_change(self) -> None:
        await self._announce(_line({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))

    def _note(self, entry: McpEntry) -> None:
        self.server.journal.add(replace(entry, session=self.name))


def _params(message: Message) -> Mapping[str, JSON]:
    params = message.get("params", {})
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params must be an object")
    return params


def _named(server: McpServer, method: str, name: str, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the result of `resources/read` or `prompts/get`; raises `RpcError` if it fails."""
    if method == "resources/read":
        if name not in server.resources:
            raise RpcError(RESOURCE_NOT_FOUND, f"Resource not found: {name}{_near(name, server.resources)}")
        return server.resources[name].read()
    if name not in server.prompts:
        raise RpcError(INVALID_PARAMS, f"Unknown prompt: {name}{_near(name, server.prompts)}")
    try:
        return server.prompts[name].get(arguments)
    except BadInput as problem:
        raise RpcError(INVALID_PARAMS, str(problem)) from None
    except Exception as failure:  # noqa: BLE001  # a user's function
        raise RpcError(INTERNAL_ERROR, f"{type(failure).__name__}: {failure}") from None


def _near(name: str, known: Iterable[str]) -> str:
    listed = [*known]
    hint = suggestion(name, listed) or (f" This server has: {', '.join(listed)}." if listed else "")
    return f".{hint}" if hint else ""


def _line(message: Message) -> str:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


Message = dict[str, JSON]
RequestId = NewType("RequestId", str)
"""A request's id as JSON text, so that 1 and "1" are distinct."""

VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Supported protocol versions, newest first."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
RESOURCE_NOT_FOUND: Final = -32002
INTERNAL_ERROR: Final = -32603


class RpcError(Exception):
    """Raised for a request that is answered with a JSON-RPC error with this code and message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def id_of(value: JSON) -> RequestId:
    """Return the key that tracks a request with this id."""
    return RequestId(json.dumps(value))


def parsed(text: str | bytes) -> Message:
    """Parse a JSON-RPC message; raises `RpcError` if it is not one."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, f"not JSON: {error}") from None
    if not isinstance(found, dict) or found.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'expected one JSON-RPC message with "jsonrpc": "2.0"')
    if "method" in found and not isinstance(found["method"], str):
        raise RpcError(INVALID_REQUEST, "method must be a string")
    if "id" in found and (isinstance(found["id"], bool) or not isinstance(found["id"], str | int)):
        raise RpcError(INVALID_REQUEST, "id must be a string or an integer")
    return found


def result(id_: JSON, value: Mapping[str, JSON]) -> Message:
    """Return the JSON-RPC response to request `id_`."""
    return {"jsonrpc": "2.0", "id": id_, "result": dict(value)}


def error(id_: JSON, code: int, message: str) -> Message:
    """Return a JSON-RPC error response to request `id_`, which is None if the id is unknown."""
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}}
