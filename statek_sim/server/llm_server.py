"""A running fake LLM server: provided by the fixture, or used in a `with` block.

with LLMServer() as server:
    server.script([text("Hello.").on("Hi.")])
    client = OpenAI(base_url=server.openai_url, api_key="none")
"""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from statek_sim.errors import BadInput
from statek_sim.providers.delivery import Styles
from statek_sim.providers.network import is_loopback
from statek_sim.providers.protocol import ChatStyleName
from statek_sim.providers.script import ScriptEntry, replies_by_role
from statek_sim.providers.scripted import Script
from statek_sim.server.exchange import DEFAULT_LIMITS, Limits
from statek_sim.server.fault import FaultRule
from statek_sim.server.http_connection import Handler, HttpConnection
from statek_sim.server.journal import Journal, JournalEntry
from statek_sim.server.llm import DEFAULT_MODELS, FakeLLM
from statek_sim.server.rendering import Pacing


class LLMServer:
    """A fake LLM on its own port, by default a free one of the loopback.

    `speed` is the virtual seconds per real second; None lets latencies take no real time. `token_seconds` is the
    virtual seconds per token of a stream. `ignored` are unsupported request parameters to ignore. `url` is the server's
    root, for Anthropic's and Google's SDKs; OpenAI's need `openai_url`.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        anywhere: bool = False,
        styles: Styles | ChatStyleName | None = None,
        models: Sequence[str] = DEFAULT_MODELS,
        count_usage: bool = True,
        speed: float | None = None,
        token_seconds: float = 0.0,
        ignored: Collection[str] = (),
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        pacing = Pacing(speed, token_seconds)
        self.llm = FakeLLM(
            styles=styles, models=models, count_usage=count_usage, pacing=pacing, ignored=ignored
        )
        self._running = RunningServer(self.llm.answer, host=host, port=port, anywhere=anywhere, limits=limits)
        self.url = self._running.url
        self.port = self._running.port
        self.openai_url = f"{self.url}/v1"

    def script(
        self,
        everybody: Script | None = None,
        /,
        *,
        faults: Sequence[FaultRule] = (),
        styles: Styles | ChatStyleName | None = None,
        ignored: Collection[str] | None = None,
        **by_role: Iterable[ScriptEntry],
    ) -> None:
        """Set the replies: one list for all, or lists by agent role or model; `styles` are the chat styles for code.

        `ignored` are unsupported request parameters to ignore.

        The previous script must be used up (`UnusedReplies` otherwise). The journal starts over.
        """
        if (everybody is None) == (not by_role):
            raise BadInput("pass one script, script([...]), or one per role, script(worker=[...])")
        self.check_finished()
        self.llm.play(
            replies_by_role(by_role) if everybody is None else everybody,
            faults=faults,
            styles=styles,
            ignored=ignored,
        )

    @property
    def journal(self) -> Journal:
        """The requests since the script was set."""
        return self.llm.journal

    @property
    def requests(self) -> tuple[JournalEntry, ...]:
        """The requests since the script was set, oldest first; the latest 10,000."""
        return self.llm.journal.entries()

    def check_finished(self) -> None:
        """Raise if a request found no reply, or a reply or fault was not used."""
        self.llm.check_finished()

    def start(self) -> None:
        """Accept connections from now on."""
        self._running.start()

    def stop(self) -> None:
        """Close every connection and the port."""
        self._running.stop()

    def join(self, seconds: float | None = None) -> bool:
        """Wait until the server is stopped, or at most this long; return whether it has stopped."""
        return self._running.join(seconds)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


_BACKLOG: Final = 1024
_STOPPING: Final = 10.0
"""Seconds for the thread to end."""


class _RealTimeLoop(asyncio.SelectorEventLoop):
    """Uses real time even if a test has frozen it: freezegun replaces `time.monotonic` for every thread."""

    def time(self) -> float:
        if sys.platform == "win32":
            return time.monotonic()
        return time.clock_gettime(time.CLOCK_MONOTONIC)


class RunningServer:
    """A server on `host` and `port`, started and stopped explicitly or by a `with` block; `url` is `http://host:port`.

    See `listen` for the address.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        anywhere: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        listening = listen(host, port, anywhere=anywhere)
        self.host, self.port = listening.getsockname()[:2]
        shown = f"[{self.host}]" if ":" in self.host else self.host
        self.url = f"http://{shown}:{self.port}"
        self._handler = handler
        self._listening = listening
        self._limits = limits
        self._connections: set[HttpConnection] = set()
        self._ready = threading.Event()
        self._stopped = threading.Event()
        self._loop = _RealTimeLoop()
        self._done = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name=f"statek-llm-server-{self.port}", daemon=True)

    def start(self) -> None:
        """Start the thread; when this returns, connections are accepted."""
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        """Close every connection and the port, and wait until the thread is gone. May be called again."""
        if self._loop.is_closed():
            return
        if not self._thread.is_alive():
            self._listening.close()
            self._loop.close()
            return
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join(_STOPPING)
        if self._thread.is_alive():
            raise RuntimeError(f"the LLM server at {self.url} did not stop within {_STOPPING:g} seconds")
        self._loop.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def halt(self) -> None:
        """Stop the server from its own thread; `stop` waits for the end."""
        self._done.set()

    def join(self, seconds: float | None = None) -> bool:
        """Wait until the server stops, or at most this long; return whether it has stopped."""
        # Do not join the thread: a join interrupted by a signal marks it as stopped (Python 3.11, 3.12).
        return self._stopped.wait(seconds)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._stopped.set()

    async def _serve(self) -> None:
        server = await self._loop.create_server(
            lambda: HttpConnection(self._handler, self._limits, self._connections),
            sock=self._listening,
            backlog=_BACKLOG,
        )
        watching = self._loop.create_task(self._watch())
        self._ready.set()
        await self._done.wait()
        # If the server closed while it accepts a client, asyncio would lose that client's socket and leave it waiting.
        self._loop.remove_reader(self._listening)
        watching.cancel()
        # Aborted connections are removed in the loop's next pass, and their tasks end with them. A client that was
        # being accepted has a task too, and gets a connection at its end.
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOPPING / 2):
                while self._abort_all() + len(others := asyncio.all_tasks() - {asyncio.current_task()}):
                    await (asyncio.wait(others) if others else asyncio.sleep(0))
        server.close()

    def _abort_all(self) -> int:
        """Close every connection; return their number."""
        for connection in tuple(self._connections):
            connection.stop()
        return len(self._connections)

    async def _watch(self) -> None:
        """Refuse requests that do not arrive in time."""
        while True:
            await asyncio.sleep(self._limits.seconds / 4)
            latest = self._loop.time() - self._limits.seconds
            for connection in tuple(self._connections):
                if connection.started_at is not None and connection.started_at < latest:
                    connection.refuse_slow()


def listen(host: str = "127.0.0.1", port: int = 0, *, anywhere: bool = False) -> socket.socket:
    """Return a bound socket; port 0 takes a free one.

    Raises `BadInput` for a host that other machines can reach, unless `anywhere`, and for a port that is in use.
    """
    if not anywhere and not is_loopback(host):
        raise BadInput(
            f"{host!r} is not a loopback address; a fake LLM answers anyone: use 127.0.0.1, or allow other machines"
        )
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise BadInput(f"cannot listen on {host!r}: {error.strerror}") from None
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
    except OSError as error:
        listening.close()
        raise BadInput(f"cannot listen on {host}:{port}: {error.strerror}") from None
    return listening
