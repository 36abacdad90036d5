"""A guest: a third-party harness with a scripted LLM, recorded tools, and a trace.

guest = Guest([tool_call("look"), text("done")], tools=[look])
answer = my_harness("Work.", guest.ask, guest.tools)
guest.check(answer)
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from itertools import zip_longest
from typing import Any, Final, TypeVar

from statek_sim import trace as events
from statek_sim.agent.protection import CallSeen, TurnSeen, Watch, observe
from statek_sim.agent.replies.model_reply import ModelReply, read_model_reply
from statek_sim.agent.tools.tool import result_text
from statek_sim.clock import VirtualClock
from statek_sim.errors import ProviderHTTPError, ProviderTimeout, ProviderUnreachable, UnmatchedRequest
from statek_sim.providers.http_provider import http_error_text
from statek_sim.providers.scripted import Script
from statek_sim.providers.wire.format import FORMATS
from statek_sim.server.demands import UNKNOWN_TOOLS_HEADER
from statek_sim.server.exchange import Answer, Incoming, Silence, Streamed, Whole, route
from statek_sim.server.fault import FaultRule
from statek_sim.server.llm import FakeLLM
from statek_sim.server.rendering import Pacing
from statek_sim.telemetry.facts import GUEST
from statek_sim.trace import Trace
from statek_sim.usage.messages import completion_tokens, prompt_tokens
from statek_sim.usage.tokenizers import tokenizer_for_model
from statek_sim.values import JSON, Message, ToolSpec, in_common, items_of
from statek_sim.virtual_loop import VirtualLoop, run_in

ToolFunction = Callable[..., Any]
T = TypeVar("T")

_CHAT: Final = "/v1/chat/completions"


class Guest:
    """A test environment for a third-party harness. Use each guest for a single run, which takes place in virtual time.

    `script` and `faults` work as in the fake server: scripted replies, and faults by position, rate or condition. Calls
    to `tools` are recorded: the attribute `tools` maps names to functions for the harness to call, and `calls` contains
    the calls with their results. `trace` contains all events. `ask` sends `model` as the model name.
    """

    def __init__(
        self,
        script: Script,
        *,
        tools: Iterable[ToolFunction] = (),
        faults: Sequence[FaultRule] = (),
        model: str = "gpt-4o",
        ignored: Sequence[str] = (),
        name: str = "main",
    ) -> None:
        self.name = name
        self.model = model
        self.clock = VirtualClock()
        self.trace = Trace(profile="guest", seed=0)
        self.trace.add(events.JobCreated(0.0, name, GUEST, model, None))
        self.llm = FakeLLM(script, faults=faults, pacing=Pacing(speed=1.0), ignored=ignored)
        self._recorded = RecordedTools(self.trace, self.clock, name)
        self.tools = {tool.__name__: self._recorded.wrapped(tool) for tool in items_of("tools", tools)}
        self._turn = 0
        self._attempt = 0
        self._body = b""
        self._sent: Sequence[Message] = ()
        self._watch = Watch()
        self._reply: ModelReply | None = None

    @property
    def calls(self) -> list[dict[str, str | None]]:
        """All tool calls: the name, the arguments, and the `result` or `error`."""
        return self._recorded.calls

    # -- access to the model -----------------------------------------------------------------------------------

    def ask(self, messages: Sequence[Message], tools: Sequence[ToolSpec] | None = None) -> dict[str, Any]:
        """Return the assistant's message for a chat in OpenAI's format, for harnesses that accept a plain function.

        Scripted calls are checked against `tools`, the request's tools, unless it is None (unknown). Raises
        `ProviderHTTPError`, `ProviderTimeout` or `ProviderUnreachable` as scripted, `ValueError` for an answer that is
        not JSON, and `UnmatchedRequest` if the script has no reply to the request. Latencies take virtual time only.
        """
        known = len(self.llm.journal.problems)
        body = {"model": self.model, "messages": list(messages), **({"tools": list(tools)} if tools else {})}
        headers = {UNKNOWN_TOOLS_HEADER: "true"} if tools is None else {}
        answer = self.answer(_CHAT, headers, json.dumps(body, default=dict).encode())
        delivery = delivered(answer)
        self.clock.advance(delivery.seconds)
        self.heard(delivery, "openai")
        if len(self.llm.journal.problems) > known:
            raise UnmatchedRequest(self.llm.journal.problems[-1])
        if delivery.broken:
            raise ProviderUnreachable("the connection broke", latency=delivery.seconds)
        if delivery.status is None:
            raise ProviderTimeout("", latency=delivery.seconds)
        if delivery.status != 200:
            raise ProviderHTTPError(
                http_error_text(delivery.status), status=delivery.status, retry_after=delivery.retry_after
            )
        message: dict[str, Any] = json.loads(delivery.body)["choices"][0]["message"]
        return message

    def answer(self, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """Answer an HTTP request and record it; `target` is its path and query."""
        found = route("POST", target)
        self._note_request(found.wire, found.path, body)
        return self.llm.answer(Incoming("POST", target, headers, body))

    # -- running it --------------------------------------------------------------------------------------------

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run an async harness in virtual time: sleeping, for example between retries, takes no real time.

        Threads and sockets are not available: a harness that waits for either raises `AsyncToolStuck`.
        """
        return run_in(GuestLoop(start=self.clock.now(), moved=self.clock.advance_to), coroutine)

    def check(self, answer: object = None) -> None:
        """End the run and record its answer; raises for an unused reply or fault, or an unanswered request."""
        self.trace.add(
            events.JobStopped(self.clock.now(), self.name, "final", None if answer is None else str(answer))
        )
        self.llm.check_finished()

    # -- the trace ---------------------------------------------------------------------------------------------

    def _note_request(self, wire: Any, path: str, body: bytes) -> None:
        try:
            request = FORMATS[wire].read_request(json.loads(body), path)
        except (ValueError, KeyError, TypeError):
            return  # The fake refuses it, which is recorded in its journal.
        self._attempt = self._attempt + 1 if body == self._body else 1
        if self._attempt == 1:
            self._turn += 1
            self._look_for_loop(request.messages)
            self.trace.add(events.StepStarted(self.clock.now(), self.name, self._turn))
        self._body = body
        kept = in_common(self._sent, request.messages)
        self._asked = request
        self.trace.add(
            events.LLMRequested(
                self.clock.now(),
                self.name,
                self._turn,
                self._attempt,
                request.model,
                len(body),
                kept,
                tuple(request.messages[kept:]),
            )
        )
        self._sent = request.messages

    def _look_for_loop(self, messages: Sequence[Message]) -> None:
        """Record a loop if the turn before this request completes a loop; the harness is not notified."""
        if self._reply is None:
            return
        roles = [message.get("role") for message in messages]
        after = len(roles) - roles[::-1].index("assistant") if "assistant" in roles else len(roles)
        results = [
            str(message.get("content")) for message in messages[after:] if message.get("role") == "tool"
        ]
        calls = [
            CallSeen(tool=call.name, arguments={"": call.arguments}, result=result or "")
            for call, result in zip_longest(self._reply.calls, results[: len(self._reply.calls)])
        ]
        self._watch, loop = observe(self._watch, TurnSeen(text=self._reply.text, calls=calls))
        self._reply = None
        if loop is not None:
            self.trace.add(
                events.HarnessSpoke(self.clock.now(), self.name, "protection", "loop", loop.reason)
            )

    def heard(self, delivery: Delivered, wire: Any) -> None:
        """Record how a request ended. Call this at the virtual time at which the response has arrived."""
        now = self.clock.now()
        if delivery.status != 200 or delivery.broken:
            error = "no answer" if delivery.status is None else f"HTTP {delivery.status}"
            error_text = "the connection broke" if delivery.broken else error
            self.trace.add(events.RequestFailed(now, self.name, self._turn, self._attempt, error_text, None))
            return
        body = FORMATS[wire].join_stream(delivery.body) if delivery.streamed else delivery.body
        self._reply = reply = read_model_reply(body, wire)
        tokenizer = tokenizer_for_model(self._asked.model).tokenizer
        calls: list[JSON] = [
            {"function": {"name": call.name, "arguments": call.arguments}} for call in reply.calls
        ]
        self.trace.add(
            events.LLMReplied(
                now,
                self.name,
                self._turn,
                len(delivery.body),
                prompt_tokens(self._asked.messages, self._asked.tools, tokenizer),
                completion_tokens(reply.text, calls, tokenizer),
                reply.usage.prompt,
                reply.usage.completion,
                reply.text if reply.unreadable is None else f"[cannot be read: {reply.unreadable}]",
                tuple([f"{call.name}({call.arguments})" for call in reply.calls]),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A response as the client received it: the bytes, when they arrived, and whether the connection broke.

    `status` is None if nothing arrived before the client's timeout.
    """

    status: int | None
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = ""
    seconds: float = 0.0
    broken: bool = False
    streamed: bool = False

    @property
    def retry_after(self) -> float | None:
        """The seconds that the provider asks the client to wait before a retry; None if unspecified."""
        seconds = dict(self.headers).get("retry-after")
        return None if seconds is None else float(seconds)


def delivered(answer: Answer, *, timeout: float = 60.0) -> Delivered:
    """Return what a client receives if it gives up after `timeout` seconds without a byte."""
    match answer:
        case Silence():
            return Delivered(status=None, seconds=timeout)
        case Whole():
            if answer.delay > timeout:
                return Delivered(status=None, seconds=timeout)
            return Delivered(
                status=answer.status,
                body=answer.body,
                headers=answer.headers,
                content_type=answer.content_type,
                seconds=answer.delay,
            )
        case Streamed():
            if any(frame.delay > timeout for frame in answer.frames):
                return Delivered(status=None, seconds=timeout)
            return Delivered(
                status=answer.status,
                body=b"".join(frame.data for frame in answer.frames),
                headers=answer.headers,
                content_type=answer.content_type,
                seconds=sum(frame.delay for frame in answer.frames),
                broken=answer.reset,
                streamed="event-stream" in answer.content_type,
            )


class RecordedTools:
    """Wraps functions and records their calls; results and exceptions pass through unchanged."""

    def __init__(self, trace: Trace, clock: VirtualClock, job: str) -> None:
        self._trace = trace
        self._clock = clock
        self._job = job
        self.calls: list[dict[str, str | None]] = []

    def wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with its calls recorded.

        The name, type hints and docstring are preserved, and a coroutine function remains a coroutine function.
        """
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                with self._recorded(function, args, kwargs) as result:
                    result.append(await function(*args, **kwargs))
                return result[0]

            return awaited

        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            with self._recorded(function, args, kwargs) as result:
                result.append(function(*args, **kwargs))
            return result[0]

        return called

    @contextmanager
    def _recorded(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Iterator[list[Any]]:
        """Record a call with the result that the block appends to the list, or the exception that it raises."""
        name = function.__name__
        shown = ", ".join([*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items())])
        record: dict[str, str | None] = {"name": name, "arguments": shown}
        self.calls.append(record)
        self._trace.add(events.ToolCalled(self._clock.now(), self._job, name, shown, "call"))

        def ended(result: str | None, error: str | None) -> None:
            record["result" if error is None else "error"] = result if error is None else error
            self._trace.add(events.ToolReturned(self._clock.now(), self._job, name, result, error))

        came: list[Any] = []
        try:
            yield came
        except Exception as error:
            ended(None, f"{type(error).__name__}: {error}")
            raise
        ended(result_text(came[0]), None)


def run_really(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in real time, for coroutines that need sockets or threads."""
    return asyncio.run(coroutine)


class GuestLoop(VirtualLoop):
    """A `VirtualLoop` for code that uses `asyncio.to_thread`: functions run immediately, in the same thread."""

    def run_in_executor(  # type: ignore[override]  # typeshed's variadic types
        self, executor: object, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Call the function immediately, and return a future with its result."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  # its error is raised where it is awaited
            future.set_exception(error)
        return future


_UNTIL: Final = 60.0
"""The timeout, in seconds, for a client that does not set a timeout."""


def client_of(guest: Guest, http: Any, **options: Any) -> Any:
    """Return an `AsyncClient` that gets its responses from the guest's script.

    `http` is the module that the guest's harness uses: httpx or httpx2. `options` are passed to the client. The client
    sleeps for scripted latencies, in virtual time if inside `Guest.run`. A silent provider raises `ReadTimeout` after
    the client's read timeout, and a broken connection raises `ReadError`.
    """

    class Transport(http.AsyncBaseTransport):  # type: ignore[misc]  # the base is the argument's
        async def handle_async_request(self, request: Any) -> Any:
            body = await request.aread()
            target = request.url.raw_path.decode()
            answer = guest.answer(
                target, {key.lower(): value for key, value in request.headers.items()}, body
            )
            limit = request.extensions.get("timeout", {}).get("read") or _UNTIL
            delivery = delivered(answer, timeout=limit)
            await asyncio.sleep(delivery.seconds)
            guest.heard(delivery, route("POST", target).wire)
            if delivery.status is None:
                raise http.ReadTimeout("", request=request)
            if delivery.broken:
                raise http.ReadError("", request=request)
            return http.Response(
                delivery.status, headers=_headers(delivery), content=delivery.body, request=request
            )

    return http.AsyncClient(transport=Transport(), **options)


def _headers(delivery: Delivered) -> dict[str, str]:
    return {**dict(delivery.headers), "content-type": delivery.content_type}
