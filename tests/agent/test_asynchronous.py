"""The asyncio driver: real coroutines and threads, timeouts, cancellation, models over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from functools import partial
from typing import Any, cast

import httpx
import pytest

from statek_sim import virtual_loop
from statek_sim.agent.approvals import Approvals, tool_that_asks
from statek_sim.agent.async_driver import AsyncDriver, AsyncModel, LoopClock, model_of
from statek_sim.agent.effects import (
    NO_PARTS,
    Ask,
    Parts,
    Question,
    Snapshot,
    Subject,
    ToolContext,
    Verdict,
    Wait,
)
from statek_sim.agent.execution import waited
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.loop import AgentRun
from statek_sim.agent.reliability import BreakerGate
from statek_sim.agent.tools import tool as made
from statek_sim.errors import BadTool, PartBroke, ProviderBug
from statek_sim.providers.http_provider import Access
from statek_sim.providers.live import AsyncHttpLLM
from statek_sim.providers.protocol import ChatRequest, RawReply
from statek_sim.providers.script import Reply, ScriptedCall, text, tool_call, tool_calls
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.providers.wire.format import FORMATS
from statek_sim.providers.wire.reply import WireReply
from statek_sim.virtual_loop import VirtualLoop, run_in
from tests.says import line_with
from tests.tables import table_test

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


async def cancelled(work: Coroutine[Any, Any, AgentRun]) -> set[asyncio.Task[Any]]:
    """Cancel a run after five seconds, and return the tasks that it left behind."""
    task = asyncio.create_task(work)
    await asyncio.sleep(5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return asyncio.all_tasks() - {asyncio.current_task()}


def test_cancelling_a_run_cancels_its_tools_and_leaves_nothing_behind() -> None:
    left: list[str] = []

    async def hang() -> str:
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            left.append("cancelled")
            raise
        return "late"

    assert virtually(cancelled(worked([both("hang", "hang"), text("done")], hang))) == set()
    assert left == ["cancelled", "cancelled"]


async def awaits_a_cancelled_task() -> str:
    inner = asyncio.ensure_future(asyncio.sleep(60))
    inner.cancel()
    await inner
    return "never"


async def cancels_its_own_task() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(1)
    return "never"


@pytest.mark.parametrize("tool", [awaits_a_cancelled_task, cancels_its_own_task])
def test_a_tool_that_is_cancelled_from_inside_fails_and_the_run_goes_on_with_both_drivers(
    tool: Callable[[], Awaitable[str]],
) -> None:
    async def works() -> str:
        await asyncio.sleep(1)
        return "worked"

    name = tool.__name__
    script = [both(name, "works"), tool_call(name), text("done")]
    run = virtually(worked(script, tool, works))
    simulated = AgentHarness(ScriptedLLM(script), tools=[tool, works]).run("Work.")
    results = [call.get("result") or call["error"] for call in run.calls]
    inside = "CancelledError: the tool was cancelled from inside"
    assert (run.answer, results) == ("done", [inside, "worked", inside])
    assert (simulated.answer, simulated.calls) == (run.answer, run.calls)


def test_a_plain_function_that_cancels_the_task_it_runs_in_ends_neither_the_run_nor_another_call() -> None:
    def cancels() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        task.cancel()
        return "done by then"

    async def works() -> str:
        await asyncio.sleep(1)
        return "worked"

    script = [both("cancels", "works"), tool_call("cancels"), text("done")]
    run = virtually(worked(script, cancels, works))
    results = [call.get("result") or call["error"] for call in run.calls]
    assert (run.answer, results) == ("done", ["done by then", "worked", "done by then"])


def test_a_tool_that_swallows_the_runs_cancellation_does_not_keep_it_going() -> None:
    async def swallows() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "swallowed"
        return "never"

    async def cancelled() -> Any:
        task = asyncio.create_task(worked([tool_call("swallows"), text("done")], swallows))
        await asyncio.sleep(1)
        task.cancel()
        return await asyncio.gather(task, return_exceptions=True)

    assert [type(end) for end in virtually(cancelled())] == [asyncio.CancelledError]


def test_a_thread_that_ends_by_stop_iteration_is_not_waited_for() -> None:
    def stops() -> str:
        return next(iter(()))

    never_late = made.tool_from(stops, timeout=5.0)
    run = asyncio.run(worked([tool_call("stops"), text("done")], never_late, threads=True))
    simulated = AgentHarness(ScriptedLLM([tool_call("stops"), text("done")]), tools=[never_late]).run("Work.")
    assert run.calls == simulated.calls
    assert run.calls[0]["error"] == "StopIteration"


@table_test(
    ("error", "told"),
    [
        (asyncio.CancelledError("enough"), "CancelledError: the tool was cancelled from inside"),
        (SystemExit(2), "SystemExit: 2"),
    ],
)
@table_test("threads", [False, True])
def test_what_plain_code_raises_is_its_result_whatever_it_is(
    error: BaseException, told: str, threads: bool
) -> None:
    def ends() -> str:
        raise error

    async def ends_later(context: ToolContext) -> str:
        await context.sleep(0.01)
        raise error

    script = [both("ends", "ends_later"), text("done")]
    tools: list[Tool] = [ends, ends_later]
    real = asyncio.run(worked(script, *tools, threads=True)) if threads else virtually(worked(script, *tools))
    simulated = AgentHarness(ScriptedLLM(script), tools=tools).run("Work.")
    assert [call["error"] for call in simulated.calls] == [told, told]
    assert (real.answer, real.calls) == (simulated.answer, simulated.calls) == ("done", simulated.calls)


def test_a_part_that_raises_a_cancellation_is_named_and_not_taken_for_one() -> None:
    def cancels(subject: Subject) -> Verdict:
        raise asyncio.CancelledError("enough")

    async def cancels_later() -> Verdict:
        raise asyncio.CancelledError("enough")

    said = "^a part of the run raised CancelledError: enough, but nothing cancelled the run$"
    for guard in (cancels, lambda subject: cancels_later()):
        parts = Parts(guards=[guard])
        with pytest.raises(PartBroke, match=said):
            virtually(worked([text("done")], parts=parts))
        with pytest.raises(PartBroke, match=said):
            AgentHarness(ScriptedLLM([text("done")]), parts=parts).run("Work.")


def test_a_model_whose_client_was_cancelled_is_named_and_not_taken_for_the_runs_end() -> None:
    async def cancels(request: ChatRequest) -> RawReply:
        raise asyncio.CancelledError

    with pytest.raises(
        ProviderBug, match=line_with("the model raised CancelledError", "provider must raise")
    ):
        virtually(worked([], model=cancels))


@pytest.mark.parametrize("error", [asyncio.CancelledError(), SystemExit(2)])
def test_a_provider_that_ends_the_program_is_named_by_the_simulated_driver_too(error: BaseException) -> None:
    class Ends:
        def complete(self, request: ChatRequest) -> RawReply:
            raise error

    with pytest.raises(
        ProviderBug, match=f"^Ends raised {type(error).__name__}.*; a failing provider must raise "
    ):
        AgentHarness(Ends()).run("Work.")


def test_a_model_that_is_wrong_is_named_as_such() -> None:
    async def raises(request: ChatRequest) -> RawReply:
        raise KeyError("choices")

    async def returns(request: ChatRequest) -> Any:
        return "hello"

    said = (
        "the model raised KeyError: 'choices'; a failing provider must raise ProviderHTTPError, "
        "ProviderTimeout or ProviderUnreachable"
    )
    with pytest.raises(ProviderBug, match=f"^{said}$"):
        virtually(worked([], model=raises))
    with pytest.raises(ProviderBug, match=line_with("returned 'hello'", "expected", "RawReply")):
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


@table_test("function", KINDS.values(), ids=KINDS)
def test_what_a_tool_returns_is_awaited_whatever_kind_of_callable_it_is(function: Tool) -> None:
    record = {"name": "brew", "arguments": "", "via": "call", "result": "tea at 2"}
    assert at_both(offering(function)) == [(record, 2.0), (record, 2.0)]


@table_test("function", KINDS.values(), ids=KINDS)
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
        simulated["error"] == "TypeError: its result is a coroutine that was never awaited; return its result"
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
    with pytest.raises(BadTool, match=line_with("tool 'brew'", "function", "got 7")):
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


async def swallows() -> None:
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3_600)


async def goes_round() -> None:
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)


async def hides_its_task() -> None:
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.gather(swallows())


def test_a_tool_that_swallows_its_timeout_and_never_ends_is_ended_on_both_drivers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(virtual_loop, "MOST_PASSES", 1_000)
    script = [both("swallows", "goes_round"), text("done")]
    run = virtually(worked(script, swallows, goes_round))
    agent = AgentHarness(ScriptedLLM(script), tools=[swallows, goes_round])
    simulated = agent.run("Work.")
    ended = "it continued after its cancellation, and was ended 5 seconds later"
    late = f"TimeoutError: no result within 30 seconds; {ended}"
    assert [call["error"] for call in run.calls] == [late, late]
    assert (run.answer, agent.clock.now()) == ("done", 35.0)
    assert list(simulated.deps.trace.lines()) == list(run.deps.trace.lines())


def test_cancelling_a_run_ends_a_tool_that_never_would() -> None:
    assert virtually(cancelled(worked([both("swallows", "swallows"), text("done")], swallows))) == set()


def test_what_cannot_be_ended_is_told_and_the_run_goes_on() -> None:
    async def left() -> tuple[AgentRun, list[str]]:
        clock = LoopClock()
        run = AgentHarness(tools=[hides_its_task]).begin("Work.", clock=clock)
        script = [tool_call("hides_its_task"), text("done")]
        driver = AsyncDriver(model_of(ScriptedLLM(script)), clock=clock.now, grace=1.0)
        await driver.run(run)
        return run, driver.left_behind

    run, behind = virtually(left())
    assert (run.answer, behind) == ("done", ["main: hides_its_task"])
    assert str(run.calls[0]["error"]).endswith("cannot be ended and is still running")


def test_a_gate_hears_of_the_calls_of_a_cancelled_run() -> None:
    async def hang() -> str:
        await asyncio.sleep(1_000)
        return "late"

    gate = BreakerGate()

    async def cancelled() -> object:
        for parts in (Parts(gates=[gate]), Parts(gates=[gate, Approvals({"hang": Ask(text="May it?")})])):
            work = worked([both("hang", "hang"), text("done")], hang, parts=parts, person=asleep)
            task = asyncio.create_task(work)
            await asyncio.sleep(5)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return gate.saved()

    async def asleep(question: Question) -> str:
        await asyncio.sleep(1_000)
        return "yes"

    assert virtually(cancelled()) == {"breakers": {}, "permits": []}


async def goes_on(asked: object) -> Any:
    await swallows()


def test_a_model_a_person_and_what_is_waited_for_are_closed_when_they_swallow_their_timeout() -> None:
    asking = tool_that_asks("ask", "Ask the owner.", question="May I?", seconds=10.0)
    asked = virtually(worked([tool_call("ask", question="Why?"), text("done")], asking, person=goes_on))
    assert (asked.answer, asked.calls[0]["error"]) == ("done", "nobody answered within 10 seconds: May I?")
    unanswered = virtually(worked([], model=goes_on, timeout=5.0))
    assert (unanswered.stop, unanswered.detail) == ("crash", "ProviderTimeout")
    waited_for = virtually(waited(Wait(goes_on(None), seconds=3.0)))
    assert (waited_for.late, type(waited_for.error)) == (True, TimeoutError)


def test_a_run_whose_model_swallows_its_cancellation_is_cancelled_when_its_time_is_over() -> None:
    async def cancelled() -> object:
        task = asyncio.create_task(worked([], model=goes_on, timeout=5.0))
        await asyncio.sleep(1)
        task.cancel()
        return await asyncio.gather(task, return_exceptions=True)

    assert [type(end) for end in virtually(cancelled())] == [asyncio.CancelledError]


def test_a_run_is_cancelled_though_its_model_or_its_person_swallows_that_and_answers() -> None:
    async def answers_all_the_same(asked: object) -> Any:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(50)
        return (
            "yes"
            if isinstance(asked, Question)
            else await model_of(ScriptedLLM([text("done")]))(cast("ChatRequest", asked))
        )

    async def cancelled(work: Coroutine[Any, Any, AgentRun]) -> object:
        task = asyncio.create_task(work)
        await asyncio.sleep(1)
        task.cancel()
        return await asyncio.gather(task, return_exceptions=True)

    asking = tool_that_asks("ask", "Ask the owner.", question="May I?", seconds=100.0)
    script = [tool_call("ask", question="Why?"), text("done")]
    for work in (
        worked([], model=answers_all_the_same),
        worked([], model=answers_all_the_same, timeout=100.0),
        worked(script, asking, person=answers_all_the_same),
    ):
        assert [type(end) for end in virtually(cancelled(work))] == [asyncio.CancelledError]


def test_a_models_own_timeout_error_is_no_slow_provider_on_both_drivers() -> None:
    class Slow:
        """A model whose own client gave up."""

        def complete(self, request: ChatRequest) -> RawReply:
            raise TimeoutError("the pool is empty")

    async def slow(request: ChatRequest) -> RawReply:
        raise TimeoutError("the pool is empty")

    with pytest.raises(ProviderBug, match=line_with("the model raised TimeoutError", "the pool is empty")):
        virtually(worked([], model=slow))
    with pytest.raises(ProviderBug, match=line_with("Slow raised TimeoutError", "the pool is empty")):
        AgentHarness(Slow()).run("Work.")


def sharing() -> Tool:
    permits = asyncio.Semaphore(1)

    async def shares(context: ToolContext) -> str:
        async with permits:
            await context.sleep(2)
        return f"at {context.now():g}"

    return shares


def test_tools_may_share_what_belongs_to_a_loop_over_turns() -> None:
    script = [both("shares", "shares"), both("shares", "shares"), text("done")]
    runs = [
        AgentHarness(ScriptedLLM(script), tools=[sharing()]).run("Work."),
        virtually(worked(script, sharing())),
    ]
    for run in runs:
        assert [call["result"] for call in run.calls] == ["at 2", "at 4", "at 6", "at 8"]


@pytest.mark.parametrize("threads", [False, True])
def test_what_a_call_happens_in_is_entered_once(threads: bool) -> None:
    entered: list[str] = []

    @contextlib.contextmanager
    def around(job: str, tool: str, call_id: str) -> Iterator[None]:
        entered.append(tool)
        yield

    async def waits() -> str:
        return "waited"

    def plain() -> str:
        return "plain"

    script = [both("waits", "plain"), text("done")]
    work = worked(script, waits, plain, around_tool=around, threads=threads)
    assert [call["result"] for call in asyncio.run(work).calls] == ["waited", "plain"]
    assert sorted(entered) == ["plain", "waits"]
