"""The asyncio driver's HTTP client against the fake server, over real sockets: faults, timeouts, cancellation, load.

Real time, a hundred times as fast: a retry after three seconds takes thirty milliseconds.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final, TypeVar

import httpx
import pytest

from statek_sim import trace as events
from statek_sim.agent.async_driver import AsyncDriver, LoopClock
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.loop import AgentRun
from statek_sim.errors import BadSetting
from statek_sim.providers.http_provider import Access
from statek_sim.providers.live import AsyncHttpLLM
from statek_sim.providers.script import ScriptEntry, text, tool_call
from statek_sim.server.fault import (
    Fault,
    FaultRule,
    HttpError,
    Malformed,
    NoAnswerAtAll,
    Reset,
    SlowFirstByte,
    Truncated,
)
from statek_sim.server.llm_server import LLMServer

SPEED: Final = 100.0
T = TypeVar("T")

SCRIPT: Final[list[ScriptEntry]] = [tool_call("look"), text("done")]


class _Selector:
    """Waits a hundredth of what it is asked to."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return self._real.select(None if timeout is None else timeout / SPEED)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class HastyLoop(asyncio.SelectorEventLoop):
    """A loop with sockets whose time goes a hundred times as fast."""

    def __init__(self) -> None:
        super().__init__(_Selector())  # type: ignore[arg-type]  # has a selector's methods

    def time(self) -> float:
        return time.monotonic() * SPEED


def hastily(coroutine: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=HastyLoop) as runner:
        return runner.run(coroutine)


class _AtTheServer(httpx.AsyncBaseTransport):
    """Sends what is for Anthropic's one address to the fake server, over a socket like everything else."""

    def __init__(self, url: str) -> None:
        self._url = httpx.URL(url)
        self._sockets = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.url = request.url.copy_with(scheme="http", host=self._url.host, port=self._url.port)
        return await self._sockets.handle_async_request(request)

    async def aclose(self) -> None:
        await self._sockets.aclose()


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer() as running:
        yield running


def model_at(server: LLMServer, api: str = "OPENAI", **client: Any) -> AsyncHttpLLM:
    if api == "CLAUDE":
        made = httpx.AsyncClient(transport=_AtTheServer(server.url), timeout=60.0)
        return AsyncHttpLLM(lambda name: Access("https://ignored.invalid", "key"), client=made)
    url = f"{server.url}/v1beta/models" if api == "GOOGLE" else f"{server.openai_url}/chat/completions"
    return AsyncHttpLLM(lambda name: Access(url, "key"), **client)


def look() -> str:
    """Look."""
    return "seen"


async def worked(model: AsyncHttpLLM, *, api: str = "OPENAI", timeout: float = 60.0, **said: Any) -> AgentRun:
    clock = LoopClock()
    agent = AgentHarness(tools=[look], api=api, model="some-model", **said)
    run = agent.begin("Work.", clock=clock)
    await AsyncDriver(model, clock=clock.now, timeout=timeout).run(run)
    return run


def played(
    server: LLMServer,
    *faults: FaultRule,
    script: list[ScriptEntry] = SCRIPT,
    api: str = "OPENAI",
    timeout: float = 60.0,
    **said: Any,
) -> AgentRun:
    server.script(list(script), faults=faults)

    async def one() -> AgentRun:
        model = model_at(server, api)
        try:
            return await worked(model, api=api, timeout=timeout, **said)
        finally:
            await model.aclose()

    return hastily(one())


def failures(run: AgentRun) -> list[events.RequestFailed]:
    return run.trace.of_job("main").of_type(events.RequestFailed)


def first(fault: Fault) -> FaultRule:
    return FaultRule(fault=fault, positions=(1,))


@pytest.mark.parametrize("api", ["OPENAI", "CLAUDE", "GOOGLE"])
def test_an_agent_works_over_sockets_in_each_format(server: LLMServer, api: str) -> None:
    run = played(server, api=api)
    assert (run.stop, run.answer, [call["result"] for call in run.calls]) == ("final", "done", ["seen"])
    assert run.counters.usage.reported_tokens
    assert [entry.status for entry in server.requests] == [200, 200]
    server.check_finished()


def test_nothing_is_asked_as_a_stream(server: LLMServer) -> None:
    played(server)
    assert not any(b'"stream"' in entry.body for entry in server.requests)


def test_a_rate_limit_is_waited_for_as_long_as_the_provider_says(server: LLMServer) -> None:
    run = played(server, first(HttpError(429, retry_after=7)))
    (failed,) = failures(run)
    assert (run.answer, failed.retry_in) == ("done", 7.0)


def test_a_rate_limit_without_a_time_is_tried_again_after_the_clients_own(server: LLMServer) -> None:
    (failed,) = failures(played(server, first(HttpError(429))))
    assert failed.retry_in == 3.0


def test_a_provider_that_wants_to_be_left_alone_for_an_hour_is_asked_after_a_minute(
    server: LLMServer,
) -> None:
    (failed,) = failures(played(server, first(HttpError(503, retry_after=3_600))))
    assert failed.retry_in == 60.0


def test_server_errors_are_tried_again_twice_and_then_end_the_run(server: LLMServer) -> None:
    run = played(server, FaultRule(fault=HttpError(500), positions=(1, 2, 3)), script=[])
    assert [failed.retry_in for failed in failures(run)] == [3.0, 15.0, None]
    assert run.stop == "crash"
    assert "500" in (run.detail or "")


def test_a_refused_key_ends_the_run_at_once(server: LLMServer) -> None:
    run = played(server, first(HttpError(401)), script=[])
    assert (run.stop, len(server.requests)) == ("crash", 1)
    assert "401" in (run.detail or "")


def test_a_connection_that_is_cut_in_the_middle_of_the_body_is_tried_again(server: LLMServer) -> None:
    run = played(server, first(Reset(after=0)), script=[tool_call("look"), tool_call("look"), text("done")])
    assert (run.answer, len(failures(run)), len(server.requests)) == ("done", 1, 3)
    assert failures(run)[0].error


@pytest.mark.parametrize("fault", [Truncated(), Malformed()], ids=["half", "malformed"])
def test_half_an_answer_that_ends_like_a_whole_one_is_told_as_unreadable(
    server: LLMServer, fault: Fault
) -> None:
    run = played(server, first(fault), script=[tool_call("look")])
    assert run.stop == "crash"
    assert (run.detail or "").startswith("the provider's answer cannot be read: JSONDecodeError")


def test_a_slow_answer_is_a_timeout_and_tried_again(server: LLMServer) -> None:
    run = played(server, first(SlowFirstByte(2.0)), timeout=20.0, script=[*SCRIPT[:1], *SCRIPT])
    (failed,) = failures(run)
    assert (run.answer, failed.retry_in) == ("done", 3.0)


def test_the_clients_own_timeout_is_a_timeout_too(server: LLMServer) -> None:
    server.script(list(SCRIPT), faults=[first(NoAnswerAtAll())])

    async def one() -> AgentRun:
        model = model_at(server, timeout=20.0)
        try:
            return await worked(model, timeout=600.0)
        finally:
            await model.aclose()

    run = hastily(one())
    assert (run.answer, len(failures(run))) == ("done", 1)


def test_a_port_on_which_nobody_listens_is_unreachable() -> None:
    with LLMServer() as gone:
        pass

    async def one() -> AgentRun:
        model = model_at(gone)
        try:
            return await worked(model)
        finally:
            await model.aclose()

    run = hastily(one())
    assert (run.stop, len(failures(run))) == ("crash", 3)
    assert (run.detail or "").startswith("ProviderUnreachable: ")


def test_a_provider_without_a_key_is_a_setting_that_is_missing(server: LLMServer) -> None:
    def nowhere(name: str) -> Access:
        raise BadSetting(f"set {name}_API_KEY")

    async def one() -> AgentRun:
        model = AsyncHttpLLM(nowhere)
        try:
            return await worked(model)
        finally:
            await model.aclose()

    with pytest.raises(BadSetting, match=r"^set OPENAI_API_KEY$"):
        hastily(one())


# -- nothing is left behind -------------------------------------------------------------------------------------


def open_sockets() -> int:
    links = []
    for name in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:
            continue  # it was the listing's own
    return sum(link.startswith("socket:") for link in links)


def settles(asked: Callable[[], int], expected: int) -> int:
    """Return what is there once it is as expected, or after 3 s: the server's end closes in its own thread."""
    until = time.monotonic() + 3
    while asked() != expected and time.monotonic() < until:
        time.sleep(0.01)
    return asked()


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="open files are counted in /proc")


@linux
def test_cancelling_a_run_that_waits_for_its_model_leaves_no_task_and_no_socket(server: LLMServer) -> None:
    server.script(list(SCRIPT), faults=[first(NoAnswerAtAll())])
    before = open_sockets()

    async def cancelled() -> tuple[int, int, set[asyncio.Task[Any]]]:
        model = model_at(server)
        task = asyncio.create_task(worked(model, timeout=600.0))
        while not server.requests:
            await asyncio.sleep(1)
        during = open_sockets()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        after = settles(open_sockets, during - 2)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        await model.aclose()
        return during, after, left

    during, after, left = hastily(cancelled())
    assert (during - after, left) == (2, set()), (
        "both ends of the connection are closed with the run, not with the client"
    )
    assert settles(open_sockets, before) == before


@linux
def test_two_hundred_runs_at_once_share_one_client_and_leave_nothing_open(server: LLMServer) -> None:
    server.script([tool_call("look").on("Work.").forever(), text("done").on(tool_result="seen").forever()])
    before = open_sockets()

    async def many() -> tuple[list[AgentRun], set[asyncio.Task[Any]]]:
        model = model_at(server, timeout=6_000.0)
        try:
            runs = await asyncio.gather(*(worked(model, timeout=6_000.0) for _ in range(200)))
            return runs, asyncio.all_tasks() - {asyncio.current_task()}
        finally:
            await model.aclose()

    runs, left = hastily(many())
    assert [(run.stop, run.answer, len(run.calls)) for run in runs] == [("final", "done", 1)] * 200
    assert (len(server.requests), left) == (400, set())
    assert settles(open_sockets, before) == before
