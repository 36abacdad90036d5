"""STATEK's HTTP client without a network: every request is answered by the process that started this one."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, Final

import httpx

from statek_sim import trace as events
from statek_sim.backends.installed.event_recorder import Witness
from statek_sim.backends.installed.virtual_time import VirtualTime
from statek_sim.backends.installed.wire import Line, Message
from statek_sim.backends.installed.worker_loop import Interrupted
from statek_sim.providers.wire.format import WireFormat, format_of_url
from statek_sim.values import JSON, in_common

CLIENT_TIMEOUT: Final = 60.0
"""Virtual seconds that STATEK's client waits for an answer."""

_client = httpx.AsyncClient


class Transport:
    """Answers requests and keeps what jobs sent last. `current()` names the job that asks, its role and style."""

    def __init__(
        self,
        line: Line,
        time: VirtualTime,
        witness: Witness,
        current: Callable[[], tuple[str, str, str | None]],
    ) -> None:
        self._line = line
        self._time = time
        self._witness = witness
        self._current = current
        self.turns: dict[str, int] = {}
        self._attempt: dict[str, int] = {}
        self.calls: dict[str, int] = {}
        self.last: dict[str, list[JSON]] = {}
        self.reported: dict[str, tuple[int | None, int | None]] = {}

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
        size = len(json.dumps(payload))
        self.calls[job] = self.calls.get(job, 0) + 1
        url = str(request.url)
        wire = format_of_url(url)
        # What STATEK writes in OpenAI's format is the shape that requests are compared in: not to be touched.
        read = None if wire.NAME == "openai" else wire.read_request(payload, url)
        messages = payload["messages"] if read is None else [dict(message) for message in read.messages]
        model = payload["model"] if read is None else read.model
        self._attempt[job] = attempt = self._attempt.get(job, 0) + 1
        if attempt == 1:
            self.turns[job] = self.turns.get(job, 0) + 1
        turn, kept = self.turns[job], in_common(self.last.get(job, []), messages)
        self._witness.tell(events.LLMRequested, job, turn, attempt, model, size, kept, tuple(messages[kept:]))
        self.last[job] = messages
        answer = self._line.ask(
            {
                "request": {
                    "method": request.method,
                    "url": url,
                    "headers": dict(request.headers),
                    "body": request.content.decode(),
                },
                "events": self._witness.taken(),
                "bytes_sent": size,
                "job": job,
                "role": role,
                "style": style,
                "turn": self.turns[job],
                "attempt": attempt,
                "at": self._time.now,
            }
        )
        try:
            response = await self._deliver(answer, request)
        except httpx.HTTPError as failure:
            self._witness.request_failed(job, turn, attempt, str(failure))
            raise
        self.reported[job] = _reported(wire, response)
        if problem := _problem(response):
            self._witness.request_failed(job, turn, attempt, problem)
        return response

    def turn_of(self, job: str) -> int:
        """Return how often a job has asked its model, further attempts not counted."""
        return self.turns.get(job, 0)

    async def _deliver(self, answer: Message, request: httpx.Request) -> httpx.Response:
        abort: Any = answer.get("abort")
        if abort is not None:
            raise Interrupted(abort["type"], abort["message"])
        latency: Any = answer["latency"]
        if latency:
            await self._time.sleep(min(latency, CLIENT_TIMEOUT))
        if latency > CLIENT_TIMEOUT or "timeout" in answer:
            raise httpx.ReadTimeout("", request=request)
        if "unreachable" in answer:
            raise httpx.ConnectError(str(answer["unreachable"]), request=request)
        status: Any = answer["status"]
        headers: Any = answer["headers"]
        return httpx.Response(
            status, headers=headers, content=base64.b64decode(str(answer["body"])), request=request
        )


def _reported(wire: WireFormat, response: httpx.Response) -> tuple[int | None, int | None]:
    """Return prompt and completion tokens as the provider told them, None for what it did not tell."""
    try:
        usage = wire.read_reply(response.content).usage
    except Exception:  # noqa: BLE001  # a broken answer, on purpose
        return None, None
    return (usage.prompt, usage.completion) if usage.present else (None, None)


def _problem(response: httpx.Response) -> str | None:
    """Return what STATEK's client will say about the status of an answer, None when it is content."""
    try:
        response.raise_for_status()
    except httpx.HTTPStatusError as failure:
        return str(failure)
    return None
