"""STATEK's HTTP client without a network: every request is answered by the process that started this one."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, Final

import httpx

from statek_sim.backends.installed.loop import Interrupted
from statek_sim.backends.installed.virtual_time import VirtualTime
from statek_sim.backends.installed.wire import Line, Message
from statek_sim.providers.wire.formats import format_of_url
from statek_sim.values import JSON

CLIENT_TIMEOUT: Final = 60.0
"""Virtual seconds that STATEK's client waits for an answer."""

_client = httpx.AsyncClient


class Transport:
    """Answers requests and keeps what jobs sent last. `current()` names the job that asks, its role and style."""

    def __init__(
        self, line: Line, time: VirtualTime, current: Callable[[], tuple[str, str, str | None]]
    ) -> None:
        self._line = line
        self._time = time
        self._current = current
        self._turn: dict[str, int] = {}
        self._attempt: dict[str, int] = {}
        self.calls: dict[str, int] = {}
        self.last: dict[str, list[JSON]] = {}

    def install(self) -> None:
        """Take the place of the network for every client made from now on."""
        httpx.AsyncClient = lambda **options: _client(  # type: ignore[misc, assignment, unused-ignore]
            **{**options, "transport": httpx.MockTransport(self._answer)}
        )

    def step_begins(self, job: str) -> None:
        """A step asks at most once; what comes after a first request is another attempt."""
        self._attempt[job] = 0

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        job, role, style = self._current()
        payload = json.loads(request.content)
        self.calls[job] = self.calls.get(job, 0) + 1
        url = str(request.url)
        wire = format_of_url(url)
        # What STATEK writes in OpenAI's format is the shape that requests are compared in: not to be touched.
        read = None if wire.NAME == "openai" else wire.read_request(payload, url)
        self.last[job] = payload["messages"] if read is None else [dict(told) for told in read.messages]
        self._attempt[job] = attempt = self._attempt.get(job, 0) + 1
        if attempt == 1:
            self._turn[job] = self._turn.get(job, 0) + 1
        answer = self._line.ask(
            {
                "request": {
                    "method": request.method,
                    "url": url,
                    "headers": dict(request.headers),
                    "body": request.content.decode(),
                },
                "bytes_sent": len(json.dumps(payload)),
                "job": job,
                "role": role,
                "style": style,
                "turn": self._turn[job],
                "attempt": attempt,
                "at": self._time.now,
            }
        )
        return await self._deliver(answer, request)

    async def _deliver(self, answer: Message, request: httpx.Request) -> httpx.Response:
        abort: Any = answer.get("abort")
        if abort is not None:
            raise Interrupted(abort["type"], abort["message"])
        latency: Any = answer["latency"]
        if latency:
            await self._time.sleep(min(latency, CLIENT_TIMEOUT))
        if latency > CLIENT_TIMEOUT or "timeout" in answer:
            raise httpx.ReadTimeout("", request=request)
        status: Any = answer["status"]
        return httpx.Response(status, content=base64.b64decode(str(answer["body"])), request=request)
