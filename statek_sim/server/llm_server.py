"""A fake LLM that is being served: what the fixture hands to a test, and what a `with` block gives anyone else.

with LLMServer() as server:
server.script([text("Hello.").on("Hi.")])
client = OpenAI(base_url=server.openai_url, api_key="none")
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from types import TracebackType
from typing import Self

from statek_sim.errors import BadInput
from statek_sim.providers.delivery import Styles
from statek_sim.providers.protocol import ChatStyleName
from statek_sim.providers.script import ScriptEntry
from statek_sim.providers.scripted import Script
from statek_sim.server.exchange import DEFAULT_LIMITS, Limits
from statek_sim.server.fault import FaultRule
from statek_sim.server.journal import Journal, JournalEntry
from statek_sim.server.llm import DEFAULT_MODELS, FakeLLM
from statek_sim.server.rendering import Pacing
from statek_sim.server.server_thread import RunningServer, listen


class LLMServer:
    """A fake LLM on a port of its own, by default a free one of the loopback.

    `speed` is the virtual seconds that pass per real second; None lets latencies pass in no time. `token_seconds` is
    how many of them a token of a stream takes. `ignored` are parameters of requests that are taken without heed.
    `url` is the server's root, which Anthropic's and Google's SDKs want; OpenAI's want `openai_url`.
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
        self._running = RunningServer(self.llm.begin, listen(host, port, anywhere=anywhere), limits)
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
        """Set the replies: one list for everybody, or lists by agent role or model; `styles` say how code is sent.

        `ignored` are parameters that requests may have although the server does not honour them.

        A script that was set before must be used up (`UnusedReplies` otherwise). The journal starts anew.
        """
        if (everybody is None) == (not by_role):
            raise BadInput(
                "a script is given as one argument, script([...]), or by role, script(worker=[...])"
            )
        self.check_finished()
        self.llm.play(
            _listed(by_role) if everybody is None else everybody,
            faults=faults,
            styles=styles,
            ignored=ignored,
        )

    @property
    def journal(self) -> Journal:
        """What was asked since the script was set."""
        return self.llm.journal

    @property
    def requests(self) -> tuple[JournalEntry, ...]:
        """The requests since the script was set, oldest first; the latest 10,000."""
        return self.llm.journal.entries()

    def check_finished(self) -> None:
        """Raise when a request found no reply, or a reply or fault no request."""
        self.llm.check_finished()

    def start(self) -> None:
        """Accept connections from now on."""
        self._running.start()

    def stop(self) -> None:
        """Close every connection and the port."""
        self._running.stop()

    def join(self, seconds: float | None = None) -> bool:
        """Wait until the server is stopped, or that long; return whether it has stopped."""
        return self._running.join(seconds)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def _listed(by_role: dict[str, Iterable[ScriptEntry]]) -> dict[str, list[ScriptEntry]]:
    for role, replies in by_role.items():
        if isinstance(replies, str | bytes) or not isinstance(replies, Iterable):
            raise BadInput(f"script {role!r} is a list of replies, not {replies!r}; write {role}=[...]")
    return {role: list(replies) for role, replies in by_role.items()}
