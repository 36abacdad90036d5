"""STATEK's HTTP client without a network: a provider of ours answers every request that STATEK itself builds."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from statek import llm_api

from statek_sim.backends.installed.virtual_time import VirtualTime
from statek_sim.backends.installed.worker_loop import Interrupted
from statek_sim.errors import ProviderHTTPError, ProviderTimeout, ProviderUnreachable
from statek_sim.providers.protocol import ChatRequest, Provider
from statek_sim.providers.retry import CLIENT_TIMEOUT
from statek_sim.providers.wire.format import format_of_url
from statek_sim.values import Message


class Stopped(Interrupted):
    """The run cannot go on because of `reason`, which STATEK must not take for a failure of the job."""

    def __init__(self, reason: BaseException) -> None:
        super().__init__(type(reason).__name__, str(reason))
        self.reason = reason


class Transport:
    """Answers requests. `current()` names the job that asks, its role and chat style.

    `calls` counts the requests of each job, `last` holds the messages of the latest.
    """

    def __init__(
        self, provider: Provider, time: VirtualTime, current: Callable[[], tuple[str, str, str | None]]
    ) -> None:
        self._provider = provider
        self._time = time
        self._current = current
        self._turn: dict[str, int] = {}
        self._attempt: dict[str, int] = {}
        self.calls: dict[str, int] = {}
        self.last: dict[str, tuple[Message, ...]] = {}

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Take the network's place for STATEK's clients; those of the application's own tools stay as they are."""
        scripted = types.ModuleType("httpx")
        vars(scripted).update(vars(httpx))
        scripted.AsyncClient = self._client  # type: ignore[attr-defined]  # its own name for it
        llm_api.httpx = scripted
        try:
            yield
        finally:
            llm_api.httpx = httpx

    def step_begins(self, job: str) -> None:
        """A step asks at most once; what comes after a first request is another attempt."""
        self._attempt[job] = 0

    def _client(self, **options: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(**{**options, "transport": httpx.MockTransport(self._answer)})

    async def _answer(self, sent: httpx.Request) -> httpx.Response:
        request = self._request(sent)
        try:
            reply = self._provider.complete(request)
        except ProviderHTTPError as failure:
            await self._pass(failure.latency)
            return httpx.Response(failure.status, request=sent)
        except ProviderTimeout as failure:
            await self._pass(failure.latency)
            raise httpx.ReadTimeout("", request=sent) from None
        except ProviderUnreachable as failure:
            await self._pass(failure.latency)
            raise httpx.ConnectError(str(failure), request=sent) from None
        except Exception as failure:
            raise Stopped(failure) from failure
        await self._pass(min(reply.latency, CLIENT_TIMEOUT))
        if reply.latency > CLIENT_TIMEOUT:
            raise httpx.ReadTimeout("", request=sent)
        return httpx.Response(200, content=reply.body, request=sent)

    async def _pass(self, seconds: float) -> None:
        if seconds:
            await self._time.sleep(seconds)

    def _request(self, sent: httpx.Request) -> ChatRequest:
        job, role, style = self._current()
        payload = json.loads(sent.content)
        wire = format_of_url(str(sent.url))
        request_read = wire.read_request(payload, str(sent.url))
        self.calls[job] = self.calls.get(job, 0) + 1
        self._attempt[job] = attempt = self._attempt.get(job, 0) + 1
        if attempt == 1:
            self._turn[job] = self._turn.get(job, 0) + 1
        self.last[job] = request_read.messages
        return ChatRequest(
            job_id=job,
            role=role,
            turn=self._turn[job],
            attempt=attempt,
            at=self._time.now,
            model=request_read.model,
            messages=request_read.messages,
            tools=request_read.tools,
            temperature=request_read.temperature,
            bytes_sent=len(json.dumps(payload)),
            chat_style=style,  # type: ignore[arg-type]  # STATEK's names are ours
            wire=wire.NAME,
        )
