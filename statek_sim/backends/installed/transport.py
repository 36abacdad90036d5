"""STATEK's HTTP client without a network: every request that STATEK itself builds is answered by `ask`."""

from __future__ import annotations

import base64
import json
import types
from collections.abc import Callable
from typing import Any

import httpx
from statek import llm_api

from statek_sim import trace as events
from statek_sim.backends.installed.event_recorder import Recorder
from statek_sim.backends.installed.messages import Message
from statek_sim.backends.installed.virtual_time import VirtualTime
from statek_sim.backends.installed.worker_loop import Interrupted
from statek_sim.providers.retry import CLIENT_TIMEOUT
from statek_sim.providers.wire.format import WireFormat, format_of_url
from statek_sim.values import JSON, in_common

Ask = Callable[[Message], Message]
"""Answers a request, both in the form of `messages`."""


class Transport:
    """Answers requests. `asking()` names the job that asks, its role and chat style.

    `last` holds the messages of each job's latest request.
    """

    def __init__(
        self,
        ask: Ask,
        time: VirtualTime,
        recorder: Recorder,
        asking: Callable[[], tuple[str, str, str | None]],
    ) -> None:
        self._ask = ask
        self._time = time
        self._recorder = recorder
        self._asking = asking
        self._turns: dict[str, int] = {}
        self._attempt: dict[str, int] = {}
        self._reported: dict[str, tuple[int | None, int | None]] = {}
        self.last: dict[str, list[JSON]] = {}

    def install(self) -> None:
        """Take the network's place for STATEK's clients; those of tools stay as they are."""
        scripted = types.ModuleType("httpx")
        vars(scripted).update(vars(httpx))
        scripted.AsyncClient = self._client  # type: ignore[attr-defined]  # its own name for it
        llm_api.httpx = scripted

    def step_begins(self, job: str) -> None:
        """A step asks at most once; what comes after a first request is another attempt."""
        self._attempt[job] = 0

    def answer_to(self, job: str) -> tuple[int, int | None, int | None]:
        """Return the number of a job's latest request and the tokens that the provider reported for it."""
        return self._turns.get(job, 0), *self._reported.get(job, (None, None))

    def memory(self) -> Any:
        """Return what the transport of the next process must know."""
        return {"turns": dict(self._turns), "last": dict(self.last)}

    def remember(self, memory: Any) -> None:
        """Go on with the `memory` of the process before."""
        self._turns.update(memory["turns"])
        self.last.update(memory["last"])

    def _client(self, **options: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(**{**options, "transport": httpx.MockTransport(self._answer)})

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        job, role, style = self._asking()
        payload = json.loads(request.content)
        size = len(json.dumps(payload))
        url = str(request.url)
        wire = format_of_url(url)
        # What STATEK writes in OpenAI's format is the shape that requests are compared in: not to be touched.
        read = None if wire.NAME == "openai" else wire.read_request(payload, url)
        messages = payload["messages"] if read is None else [dict(message) for message in read.messages]
        model = payload["model"] if read is None else read.model
        self._attempt[job] = attempt = self._attempt.get(job, 0) + 1
        if attempt == 1:
            self._turns[job] = self._turns.get(job, 0) + 1
        turn, kept = self._turns[job], in_common(self.last.get(job, []), messages)
        self._recorder.tell(
            events.LLMRequested, job, turn, attempt, model, size, kept, tuple(messages[kept:])
        )
        self.last[job] = messages
        answer = self._ask(
            {
                "request": {
                    "method": request.method,
                    "url": url,
                    "headers": dict(request.headers),
                    "body": request.content.decode(),
                },
                "bytes_sent": size,
                "job": job,
                "role": role,
                "style": style,
                "turn": turn,
                "attempt": attempt,
                "at": self._time.now,
            }
        )
        try:
            response = await self._deliver(answer, request)
        except httpx.HTTPError as failure:
            self._recorder.request_failed(job, turn, attempt, str(failure))
            raise
        self._reported[job] = _reported(wire, response)
        if problem := _problem(response):
            self._recorder.request_failed(job, turn, attempt, problem)
        return response

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
