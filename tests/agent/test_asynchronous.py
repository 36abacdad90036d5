"""The asyncio driver: real coroutines and threads, timeouts, cancellation, models over HTTP."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import weakref
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import httpx
import pytest

from statek_sim.agent.asynchronous import AsyncDriver, AsyncModel, LoopClock, model_of
from statek_sim.agent.effects import NO_PARTS, Parts, Snapshot, ToolContext
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.loop import AgentRun
from statek_sim.agent.tools import tool as made
from statek_sim.agent.virtual_loop import VirtualLoop, run_in
from statek_sim.errors import BadTool, ProviderBug
from statek_sim.providers.access import Access
from statek_sim.providers.live import AsyncHttpLLM
from statek_sim.providers.protocol import ChatRequest, RawReply
from statek_sim.providers.script import Reply, ScriptedCall, text, tool_call, tool_calls
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.providers.wire.formats import FORMATS
from statek_sim.providers.wire.reply import WireReply

Tool = Callable[..., Any]


def virtually(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return run_in(VirtualLoop(), coroutine)


async def worked(
    script: list[Reply],
    *tools: Tool | made.Tool,
    model: AsyncModel | None = None,
    parts: Parts = NO_PARTS,
    **driving: Any,
) -> AgentRun:
    clock = LoopClock()
    agent = AgentHarness(tools=tools, parts=parts)
    run = agent.begin("Work.", clock=clock)
    driver = AsyncDriver(model or model_of(ScriptedLLM(script)), clock=clock.now, **driving)
    await driver.run(run)
    return run


def both(*names: str) -> Reply:
    return tool_calls(*(ScriptedCall(name, {}) for name in names))


def test_async_tools_run_side_by_side() -> None:
    order: list[str] = []

    async def slow() -> str:
        await asyncio.sleep(3)
        order.append("slow")
        return "slow"

    async def quick() -> str:
        await asyncio.sleep(1)
        order.append("quick")
        return "quick"

    run = virtually(worked([both("slow", "quick"), text("done")], slow, quick))
    assert order == ["quick", "slow"]
    assert [call["result"] for call in run.calls] == ["slow", "quick"]


def test_a_tool_may_sleep_by_its_context() -> None:
    async def wait(seconds: int, context: ToolContext) -> str:
        before = context.now()
        await context.sleep(seconds)
        return f"{context.now() - before:g}"

    run = virtually(worked([tool_call("wait", seconds=7), text("done")], wait))
    assert run.calls[0]["result"] == "7"


def test_a_tool_that_takes_too_long_is_cancelled() -> None:
    left: list[str] = []

    async def hang() -> str:
        try:
            await asyncio.sleep(1_000)
        finally:
            left.append("cleaned up")
        return "late"

    run = virtually(worked([tool_call("hang"), text("done")], hang))
    assert left == ["cleaned up"]
    assert run.calls[0]["error"] == "TimeoutError: no result within 30 seconds"


def test_a_tools_own_timeout_error_is_its_own() -> None:
    async def fail() -> str:
        raise TimeoutError("the database")

    run = virtually(worked([tool_call("fail"), text("done")], fail))
    assert run.calls[0]["error"] == "TimeoutError: the database"


def test_a_model_that_does_not_answer_is_tried_again() -> None:
    asked: list[int] = []

    async def model(request: ChatRequest) -> RawReply:
        asked.append(request.attempt)
        if request.attempt == 1:
            await asyncio.sleep(1_000)
        return model_answer("done")

    run = virtually(worked([], model=model))
    assert (asked, run.answer) == ([1, 2], "done")


def model_answer(words: str) -> RawReply:
    return RawReply(FORMATS["openai"].reply_body(WireReply(id="1", model="gpt-4o", created=0, text=words)))


def test_cancelling_a_run_cancels_its_tools_and_leaves_nothing_behind() -> None:
    left: list[str] = []

    async def hang() -> str:
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            left.append("cancelled")
            raise
        return "late"

    async def cancelled() -> set[asyncio.Task[Any]]:
        task = asyncio.create_task(worked([both("hang", "hang"), text("done")], hang))
        await asyncio.sleep(5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert virtually(cancelled()) == set()
    assert left == ["cancelled", "cancelled"]


def test_what_a_tool_cancels_inside_itself_is_its_failure_on_both_drivers() -> None:
    async def gives_up() -> str:
        inner = asyncio.ensure_future(asyncio.sleep(60))
        inner.cancel()
        await inner
        return "never"

    async def works() -> str:
        await asyncio.sleep(1)
        return "worked"

    script = [both("gives_up", "works"), tool_call("gives_up"), text("done")]
    run = virtually(worked(script, gives_up, works))
    simulated = AgentHarness(ScriptedLLM(script), tools=[gives_up, works]).run("Work.")
    told = [call.get("result") or call["error"] for call in run.calls]
    inside = "CancelledError: the tool was cancelled from inside"
    assert (run.answer, told) == ("done", [inside, "worked", inside])
    assert (simulated.answer, simulated.calls) == (run.answer, run.calls)


def test_a_model_that_is_wrong_is_named_as_such() -> None:
    async def raises(request: ChatRequest) -> RawReply:
        raise KeyError("choices")

    async def returns(request: ChatRequest) -> Any:
        return "hello"

    said = (
        "the model raised KeyError: 'choices'; a provider that fails raises "
        "ProviderHTTPError, ProviderTimeout or ProviderUnreachable"
    )
    with pytest.raises(ProviderBug, match=f"^{said}$"):
        virtually(worked([], model=raises))
    with pytest.raises(ProviderBug, match=r"^the model returned 'hello', expected a RawReply$"):
        virtually(worked([], model=returns))


def test_plain_functions_run_in_threads_where_that_is_asked_for() -> None:
    here = threading.get_ident()

    def whose() -> str:
        """Say in which thread this runs."""
        return "here" if threading.get_ident() == here else "elsewhere"

    run = asyncio.run(worked([tool_call("whose"), text("done")], whose, threads=True))
    assert run.calls[0]["result"] == "elsewhere"
    run = asyncio.run(worked([tool_call("whose"), text("done")], whose))
    assert run.calls[0]["result"] == "here"


# -- what is awaited ----------------------------------------------------------------------------------------------


async def brew(context: ToolContext) -> str:
    """Brew, for two seconds."""
    await context.sleep(2)
    return f"tea at {context.now():g}"


class Kettle:
    """An object whose call is a coroutine, and which has no hash."""

    __hash__ = None  # type: ignore[assignment]

    async def __call__(self, context: ToolContext) -> str:
        return await brew(context)


async def unawaited() -> Coroutine[Any, Any, int]:
    return asyncio.sleep(1, 5)


KINDS: dict[str, Tool] = {
    "a lambda": lambda context: brew(context),  # noqa: PLW0108  # a callable of its own
    "a partial": partial(brew),
    "an object": Kettle(),
    "a lambda that calls an object": lambda context: Kettle()(context),  # noqa: PLW0108
}


def offering(function: Tool, **said: Any) -> made.Tool:
    return made.tool_of_schema("brew", "Brew.", {"type": "object", "properties": {}}, function, **said)


def at_both(function: made.Tool) -> list[tuple[Any, float]]:
    script = [tool_call("brew"), text("done")]
    simulated = AgentHarness(ScriptedLLM(script), tools=[function]).run("Work.")

    async def there() -> tuple[Any, float]:
        run = await worked(script, function)
        return run.calls[0], run.now()

    return [(simulated.calls[0], simulated.now()), virtually(there())]


@pytest.mark.parametrize("function", KINDS.values(), ids=KINDS)
def test_what_a_tool_returns_is_awaited_whatever_kind_of_callable_it_is(function: Tool) -> None:
    record = {"name": "brew", "arguments": "", "via": "call", "result": "tea at 2"}
    assert at_both(offering(function)) == [(record, 2.0), (record, 2.0)]


@pytest.mark.parametrize("function", KINDS.values(), ids=KINDS)
def test_what_is_awaited_may_take_too_long_on_both_drivers(function: Tool) -> None:
    (simulated, took), (on_asyncio, took_there) = at_both(offering(function, timeout=1.5))
    assert simulated == on_asyncio
    assert (simulated["error"], took, took_there) == (
        "TimeoutError: no result within 1.5 seconds",
        1.5,
        1.5,
    )


def test_what_a_function_in_a_thread_returns_is_awaited() -> None:
    def soon() -> Coroutine[Any, Any, str]:
        return asyncio.sleep(0, "tea")

    run = asyncio.run(worked([tool_call("brew"), text("done")], offering(soon), threads=True))
    assert run.calls[0]["result"] == "tea"


def test_a_coroutine_that_nobody_awaits_is_an_error_and_no_text() -> None:
    (simulated, _), (on_asyncio, _) = at_both(offering(unawaited))
    assert simulated == on_asyncio
    assert (
        simulated["error"] == "TypeError: its result is a coroutine that nobody awaited; return what it gives"
    )


def test_a_tools_code_is_looked_at_once_and_kept_by_nobody_else() -> None:
    class Big:
        def __call__(self) -> str:
            return "big"

    big = Big()
    gone = weakref.ref(big)
    assert [call["result"] for call, _ in at_both(offering(big))] == ["big", "big"]
    del big
    gc.collect()
    assert gone() is None


def test_a_tool_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(BadTool, match=r"^tool 'brew': expected a function, got 7$"):
        offering(7)  # type: ignore[arg-type]


def test_a_run_goes_on_only_after_its_commit() -> None:
    points: list[str] = []

    async def commit(snapshot: Snapshot) -> None:
        await asyncio.sleep(1)
        points.append(snapshot.point.value)

    virtually(worked([text("done")], parts=Parts(commits=True), committed=commit))
    assert points == ["began", "replied", "ended"]


def test_a_message_during_the_last_commit_is_taken_by_the_run_that_is_still_going() -> None:
    async def work() -> tuple[AgentRun, list[bool]]:
        taken_up: list[bool] = []
        clock = LoopClock()
        run = AgentHarness(parts=Parts(commits=True)).begin("Work.", clock=clock)

        async def commit(snapshot: Snapshot) -> None:
            if snapshot.point.value == "ended" and not taken_up:
                taken_up.append(run.push("And then?"))

        model = model_of(ScriptedLLM([text("one"), text("two")]))
        await AsyncDriver(model, clock=clock.now, committed=commit).run(run)
        return run, taken_up

    run, taken_up = virtually(work())
    assert (run.answer, run.completions, taken_up) == ("two", 2, [False])


@pytest.mark.parametrize(
    ("api", "wire"), [("OPENAI", "openai"), ("CLAUDE", "anthropic"), ("GOOGLE", "gemini")]
)
def test_a_model_is_asked_over_http_in_the_providers_format(api: str, wire: Any) -> None:
    format_ = FORMATS[wire]
    script = ScriptedLLM([tool_call("look"), text("done")])
    requests: list[httpx.Request] = []

    async def served() -> AgentRun:
        turns = iter((1, 2))

        def handler(request: httpx.Request) -> httpx.Response:
            requests.append(request)
            asked = agent.begin("unused").conversation.request("main", turn=next(turns), attempt=1, at=0.0)
            return httpx.Response(200, content=script.complete(asked).body)

        def look() -> str:
            """Look."""
            return "seen"

        clock = LoopClock()
        agent = AgentHarness(tools=[look], api=api, model="some-model")
        client = httpx.AsyncClient(transport=httpx.MockTransport(handler))
        model = AsyncHttpLLM(lambda name: Access("https://llm.invalid/v1", "key"), client=client)
        run = agent.begin("Work.", clock=clock)
        await AsyncDriver(model, clock=clock.now).run(run)
        await model.aclose()
        return run

    run = asyncio.run(served())
    assert (run.answer, [call["result"] for call in run.calls]) == ("done", ["seen"])
    told = format_.read_request(json.loads(requests[1].content), str(requests[1].url))
    assert [message["role"] for message in told.messages] == ["user", "assistant", "tool"]


def test_a_status_that_is_no_success_is_the_providers_failure() -> None:
    client = httpx.AsyncClient(transport=httpx.MockTransport(lambda request: httpx.Response(401)))
    model = AsyncHttpLLM(lambda name: Access("https://llm.invalid/v1", "key"), client=client)
    run = asyncio.run(worked([], model=model))
    assert run.stop == "crash"
    assert "401" in (run.detail or "")
