"""The stdio transport: one client, messages as lines on standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from typing import Final, NoReturn, TextIO

from statek_sim.mcp.server import McpEntry, McpServer
from statek_sim.mcp.session import RpcError, Send, Session, error, parsed

DIED: Final = 3
"""Exit status of a server that a fault ended."""

_LONGEST: Final = 64 * 1024 * 1024
"""Bytes of one line."""
_GRACE: Final = 0.5
"""Seconds that calls have when the client has closed its end; what takes longer is cancelled."""


def serve_stdio(server: McpServer) -> None:
    """Serve the client on standard input and output until it closes its end.

    What tools print goes to standard error: on standard output it would be taken for messages.
    """
    out, sys.stdout = sys.stdout, sys.stderr
    try:
        asyncio.run(_serve(server, out))
    finally:
        sys.stdout = out


async def _serve(server: McpServer, out: TextIO) -> None:
    async def send(line: str) -> None:
        try:
            out.write(line + "\n")
            out.flush()
        except BrokenPipeError:
            _die()

    reader = await _standard_input()
    server.journal.add(McpEntry(what="started", method="stdio", detail=str(os.getpid())))
    session = Session(server, announce=send, die=_die)
    async with asyncio.TaskGroup() as group:
        taken: set[asyncio.Task[None]] = set()
        while line := await reader.readline():
            if line.strip():
                taken.add(task := group.create_task(_take(session, line, send)))
                task.add_done_callback(taken.discard)
        if taken:
            # `echo ... | statek-sim serve mcp TOOLS` closes its end before the answer can be there.
            await asyncio.wait(taken, timeout=_GRACE)
        session.close()


async def _standard_input() -> asyncio.StreamReader:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LONGEST)
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or sys.stdin.isatty()):
        # A file, or /dev/null: nobody can wait for it, and nobody has to.
        reader.feed_data(sys.stdin.buffer.read())
        reader.feed_eof()
        return reader
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def _take(session: Session, line: bytes, send: Send) -> None:
    try:
        await session.receive(parsed(line), send)
    except RpcError as refusal:
        await send(json.dumps(error(None, refusal.code, str(refusal))))


def _die() -> NoReturn:
    os._exit(DIED)
