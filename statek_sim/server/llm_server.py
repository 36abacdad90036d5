"""The fake LLM server, for use in a `with` block or as the fixture `statek_llm_server`.

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
from statek_sim.server.fault import FaultRule
from statek_sim.server.http_connection import Handler, HttpConnection
from statek_sim.server.journal import Journal, JournalEntry
from statek_sim.server.llm import DEFAULT_MODELS, FakeLLM
from statek_sim.server.rendering import Pacing

_BACKLOG: Final = 1024
_STOPPING: Final = 10.0
"""The seconds to wait for the thread to finish."""


class _RealTimeLoop(asyncio.SelectorEventLoop):
    """An event loop that uses real time even if a test freezes time (freezegun patches `time.monotonic`)."""

    def time(self) -> float:
        if sys.platform == "win32":
            return time.monotonic()
        return time.clock_gettime(time.CLOCK_MONOTONIC)


class RunningServer:
    """An HTTP server in a thread, running between `start` and `stop`, or inside a `with` block.

    `url` is `http://host:port`. See `listen` for the address.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        anywhere: bool = False,
    ) -> None:
        listening = listen(host, port, anywhere=anywhere)
        self.host, self.port = listening.getsockname()[:2]
        shown = f"[{self.host}]" if ":" in self.host else self.host
        self.url = f"http://{shown}:{self.port}"
        self._handler = handler
        self._listening = listening
        self._connections: set[HttpConnection] = set()
        self._ready = threading.Event()
        self._stopped = threading.Event()
        self._loop = _RealTimeLoop()
        self._done = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name=f"statek-llm-server-{self.port}", daemon=True)

    def start(self) -> None:
        """Start the server's thread, and return once it accepts connections."""
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        """Close the port and all connections, and wait for the thread to finish. Can be called repeatedly."""
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
        """Stop the server from its own thread, without waiting for it to finish."""
        self._done.set()

    def join(self, seconds: float | None = None) -> bool:
        """Wait up to `seconds` for the server to stop; return whether it has stopped."""
        # Do not join the thread: a join interrupted by a signal marks it as stopped (Python 3.11, 3.12).
        return self._stopped.wait(seconds)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._stopped.set()

    async def _serve(self) -> None:
        server = await self._loop.create_server(
            lambda: HttpConnection(self._handler, self._connections),
            sock=self._listening,
            backlog=_BACKLOG,
        )
        self._ready.set()
        await self._done.wait()
        # If the server closed while it accepts a client, asyncio would never close that client's socket.
        self._loop.remove_reader(self._listening)
        # Aborted connections are removed in the loop's next pass, and their tasks end with them. A client that was
        # being accepted has a task too, and gets a connection at its end.
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOPPING / 2):
                while self._abort_all() + len(others := asyncio.all_tasks() - {asyncio.current_task()}):
                    await (asyncio.wait(others) if others else asyncio.sleep(0))
        server.close()

    def _abort_all(self) -> int:
        """Close all open connections, and return their number."""
        for connection in tuple(self._connections):
            connection.stop()
        return len(self._connections)


class LLMServer(RunningServer):
    """A fake LLM server with its own port (by default, a free port on the loopback interface).

    `speed` is the number of virtual seconds per real second; if None, latencies take no real time. `token_seconds` is
    the number of virtual seconds per streamed token. `ignored` lists unsupported request parameters that the server
    ignores instead of rejecting. `url` is the base URL for the Anthropic and Google SDKs, and `openai_url` for
    OpenAI's.
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
    ) -> None:
        pacing = Pacing(speed, token_seconds)
        self.llm = FakeLLM(
            styles=styles, models=models, count_usage=count_usage, pacing=pacing, ignored=ignored
        )
        super().__init__(self.llm.answer, host=host, port=port, anywhere=anywhere)
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
        """Set the replies, as one list for all requests or as one list per agent role or model, and clear the journal.

        `faults` are injected into the responses. `styles` are the chat styles for code; `ignored` lists unsupported
        request parameters to ignore. Raises `UnusedReplies` if the previous script has unused replies.
        """
        if (everybody is None) == (not by_role):
            raise BadInput(
                "pass either a single script (`script([...])`) or one script per role "
                "(`script(worker=[...])`)"
            )
        self.check_finished()
        self.llm.play(
            replies_by_role(by_role) if everybody is None else everybody,
            faults=faults,
            styles=styles,
            ignored=ignored,
        )

    @property
    def journal(self) -> Journal:
        """The journal since the script was set."""
        return self.llm.journal

    @property
    def requests(self) -> tuple[JournalEntry, ...]:
        """The latest 10,000 requests since the script was set, oldest first."""
        return self.llm.journal.entries()

    def check_finished(self) -> None:
        """Raise `UnmatchedRequest` if no reply matched a request, or `UnusedReplies` if a reply or fault is unused."""
        self.llm.check_finished()


def listen(host: str = "127.0.0.1", port: int = 0, *, anywhere: bool = False) -> socket.socket:
    """Return a socket bound to `host` and `port`; port 0 chooses a free port.

    Raises `BadInput` if the port is in use or, unless `anywhere` is set, if other machines can reach the host.
    """
    if not anywhere and not is_loopback(host):
        raise BadInput(
            f"{host!r} is not a loopback address; a fake LLM answers any client: use 127.0.0.1, or allow other machines"
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
