"""The stdio transport: one client, messages as lines on standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Final, NoReturn

from statek_sim.mcp.journal import Asked
from statek_sim.mcp.message import RpcError, error, parsed
from statek_sim.mcp.server import McpServer
from statek_sim.mcp.session import Session

DIED: Final = 3
"""Exit status of a server that a fault ended."""

_LONGEST: Final = 64 * 1024 * 1024
"""Bytes of one line."""


def serve_stdio(server: McpServer) -> None:
    """Serve the client on standard input and output until it closes its end."""
    asyncio.run(_serve(server))


async def _serve(server: McpServer) -> None:
    reader = await _standard_input()
    server.journal.add(Asked(what="started", method="stdio", detail=str(os.getpid())))
    session = Session(server, announce=_send, die=_die)
    try:
        async with asyncio.TaskGroup() as group:
            while line := await reader.readline():
                if line.strip():
                    group.create_task(_take(session, line))
            session.close()
    finally:
        sys.stdout.flush()


async def _standard_input() -> asyncio.StreamReader:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LONGEST)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def _take(session: Session, line: bytes) -> None:
    try:
        message = parsed(line)
        await session.receive(message, _send)
    except RpcError as refusal:
        await _send(json.dumps(error(None, refusal.code, str(refusal))))


async def _send(line: str) -> None:
    try:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _die()


def _die() -> NoReturn:
    os._exit(DIED)
