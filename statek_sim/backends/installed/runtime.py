"""Controls the real package in any process: virtual time, jobs, requests, worker loop and trace events."""

from __future__ import annotations

import asyncio
import base64
import json
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
import statek
from statek import llm_api, llm_harness, runner, system
from statek.chat_style import ChatStyle
from statek.executors import utils
from statek.executors.job import ErrorHandler, Job
from statek.model_name import select_model_provider
from statek.settings import StatekSettings, get_statek_settings
from statek.task import SubTaskHandler

from statek_sim import trace as events
from statek_sim.backends.facts import label
from statek_sim.backends.installed.event_recorder import Recorder, ToolRecorder, current_job
from statek_sim.backends.installed.instrumentation import Watching
from statek_sim.backends.installed.messages import Message
from statek_sim.backends.installed.stored_jobs import JobRegistry, job_facts
from statek_sim.backends.installed.worker_loop import Interrupted, VirtualTime, WorkerLoop
from statek_sim.clock import VirtualClock
from statek_sim.providers.protocol import CLIENT_TIMEOUT
from statek_sim.providers.wire.format import WireFormat, format_of_url
from statek_sim.values import JSON, in_common


class InstalledRuntime:
    """STATEK, and everything needed to run its jobs in virtual time; `ask` answers LLM requests.

    `tool_returned` is called with the job's and the tool's names after each tool call.
    """

    def __init__(
        self,
        ask: Ask,
        clock: VirtualClock,
        make_loop: Callable[[VirtualTime, Callable[[], dict[str, Any]]], WorkerLoop],
    ) -> None:
        self.time = VirtualTime(clock)
        self.jobs = JobRegistry()
        self.recorder = Recorder(lambda: self.time.now, self.jobs)
        self.transport = Transport(ask, self.time, self.recorder, self._asking)
        self.loop = make_loop(self.time, self.jobs.known)
        self.loop.before_step = self._step_begins
        self.loop.on_death = lambda reason: self.recorder.tell(events.WorldChanged, "", "worker", reason)
        self.tool_returned: Callable[[str, str], object] = lambda _job, _tool: None

    def install(self) -> None:
        """Control STATEK in this process: answer its requests, make its sleeps virtual, and observe its jobs."""
        self.transport.install()
        asyncio.sleep = self._sleep  # type: ignore[assignment]  # nothing sleeps for real
        Watching(self.recorder, self.jobs, self.transport.answer_to).install()
        ToolRecorder(
            self.recorder, lambda job, tool: self.tool_returned(self.jobs.name_of(job), tool)
        ).install()

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Control STATEK inside the block, and restore everything afterwards."""
        sleep = asyncio.sleep
        with restored(Job, SubTaskHandler, ErrorHandler, utils, system, statek.utils, llm_api, runner):
            self.install()
            try:
                yield
            finally:
                asyncio.sleep = sleep

    def _asking(self) -> Message:
        job = statek.get_current_job()
        style, metadata = job.job_def.chat_style, job.job_def.metadata
        default = (
            metadata.get("PROVIDER") or self.loop.provider or get_statek_settings().default_llm_api_provider
        )
        return {
            "job": self.jobs.name_of(job),
            "role": job.agent.role,
            "style": None if style is None else label(style),
            "provider": select_model_provider(job.get_current_model(), default_provider=default),
        }

    def _step_begins(self, name: str) -> None:
        self.transport.step_begins(name)
        self.recorder.tell(events.StepStarted, name, self.loop.steps[name])

    async def _sleep(self, seconds: float, result: Any = None) -> Any:
        """Replaces `asyncio.sleep`. A sleep after a failed request means that STATEK's client will retry."""
        self.recorder.asks_again(self.jobs.name_of(current_job()), seconds)
        return await self.time.sleep(seconds, result)

    def facts_of(self, name: str, *, future: str | None = None) -> dict[str, Any]:
        """Return a job's data except for its events, keyed by `JobRecord` field.

        If `future` is given, it replaces every future among the values.
        """
        return {
            **job_facts(name, self.jobs.known(), future=future),
            "steps": self.loop.steps.get(name, 0),
            "history": self.transport.last.get(name, []),
        }

    # -- from one process to the next ------------------------------------------------------------------------------

    def memory(self) -> dict[str, Any]:
        """Return the state for `remember` in the next process, as JSON."""
        return {
            "now": self.time.now,
            "events": self.recorder.taken(),
            "transport": self.transport.memory(),
            "loop": self.loop.memory(),
        }

    def remember(self, memory: Any) -> None:
        """Continue from the state returned by `memory` in the previous process."""
        self.time.go_to(memory["now"])
        self.recorder.remember(memory["events"])
        self.transport.remember(memory["transport"])
        self.loop.remember(memory["loop"])


def configure(settings: Mapping[str, Any], limits: Mapping[str, int | None]) -> None:
    """Give STATEK these settings (chat styles by name), and make `get_llm_harness()` always return these limits."""
    styles = {
        name: ChatStyle[settings[name].upper()]
        for name in ("chat_style", "examples_style")
        if settings.get(name) is not None
    }
    statek.init(StatekSettings(**{**settings, **styles}))
    real: Callable[..., Any] = llm_harness.LLM_Harness
    # Settings cannot express "unlimited". The function caches its first result, no matter where it is called.
    llm_harness.get_llm_harness.cache_clear()
    llm_harness.LLM_Harness = lambda **_settings: real(**limits)
    try:
        llm_harness.get_llm_harness()
    finally:
        llm_harness.LLM_Harness = real


@contextmanager
def restored(*owners: Any) -> Iterator[None]:
    """Restore all names in these classes and modules at the end of the block."""
    before = [(owner, dict(vars(owner))) for owner in owners]
    try:
        yield
    finally:
        for owner, values in before:
            for name, value in values.items():
                if vars(owner).get(name) is not value:
                    setattr(owner, name, value)


Ask = Callable[[Message], Message]
"""Answers a request; request and answer have the format described in `messages`."""


class Transport:
    """Answers STATEK's LLM requests.

    `asking()` describes the job that makes the request. `last` holds the messages in each job's latest
    request.
    """

    def __init__(
        self,
        ask: Ask,
        time: VirtualTime,
        recorder: Recorder,
        asking: Callable[[], Message],
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
        """Replace the network for STATEK's own clients. Clients in tools still use the real network."""
        scripted = types.ModuleType("httpx")
        vars(scripted).update(vars(httpx))
        scripted.AsyncClient = self._client  # type: ignore[attr-defined]  # its own name for it
        llm_api.httpx = scripted

    def step_begins(self, job: str) -> None:
        """Record that a step begins: its first request is a new turn, all further requests are retries."""
        self._attempt[job] = 0

    def answer_to(self, job: str) -> tuple[int, int | None, int | None]:
        """Return the number of a job's latest request, and the tokens reported by the provider."""
        return self._turns.get(job, 0), *self._reported.get(job, (None, None))

    def memory(self) -> Any:
        """Return the state for `remember` in the next process."""
        return {"turns": dict(self._turns), "last": dict(self.last)}

    def remember(self, memory: Any) -> None:
        """Continue from the state returned by `memory` in the previous process."""
        self._turns.update(memory["turns"])
        self.last.update(memory["last"])

    def _client(self, **options: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(**{**options, "transport": httpx.MockTransport(self._answer)})

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        asking = self._asking()
        job = str(asking["job"])
        payload = json.loads(request.content)
        size = len(json.dumps(payload))
        url = str(request.url)
        wire = format_of_url(url)
        # STATEK's requests in OpenAI's format already have the format used for comparison, so they must stay
        # unchanged.
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
                **asking,
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
    """Return the prompt and completion tokens reported in an answer; a missing count is None."""
    try:
        usage = wire.read_reply(response.content).usage
    except Exception:  # noqa: BLE001  # a broken answer, on purpose
        return None, None
    return (usage.prompt, usage.completion) if usage.present else (None, None)


def _problem(response: httpx.Response) -> str | None:
    """Return the error that STATEK's client raises for an answer's status, or None for a success."""
    try:
        response.raise_for_status()
    except httpx.HTTPStatusError as failure:
        return str(failure)
    return None
