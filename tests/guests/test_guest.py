"""Harnesses of other people under our script, faults and trace: what a guest is given, and what is noted of it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from statek_sim import trace as events
from statek_sim.cli import main
from statek_sim.errors import (
    AsyncToolStuck,
    BadInput,
    ProviderHTTPError,
    ProviderTimeout,
    ProviderUnreachable,
    UnmatchedRequest,
    UnusedReplies,
)
from statek_sim.guests.guest import Guest, client_of
from statek_sim.guests.run_facts import trajectory_facts
from statek_sim.observed_calls import Call, Request, Trajectory
from statek_sim.providers.script import ScriptEntry, fault, raw, text, timeout, tool_call
from statek_sim.server.fault import FaultRule, HttpError, Malformed, NoAnswerAtAll, Reset, SlowFirstByte
from statek_sim.telemetry.facts import task_facts
from statek_sim.telemetry.measures import measure
from statek_sim.telemetry.report import metrics_report
from tests.docs.page import DOCS, follow
from tests.tables import table_test

CALL = tool_call("look", where="here")
ASKED = [{"role": "user", "content": "Work."}]


def look(where: str) -> str:
    """Look somewhere."""
    if where == "nowhere":
        raise LookupError("it is dark")
    return f"seen {where}"


async def listen(where: str) -> str:
    """Listen somewhere."""
    await asyncio.sleep(3)
    return f"heard {where}"


def harness(task: str, ask: Callable[..., dict[str, Any]], tools: Mapping[str, Callable[..., Any]]) -> str:
    messages: list[dict[str, Any]] = [{"role": "user", "content": task}]
    while True:
        reply = ask(messages)
        messages.append(reply)
        if not reply.get("tool_calls"):
            return str(reply["content"])
        for call in reply["tool_calls"]:
            result = tools[call["function"]["name"]](**json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": str(result)})


# -- a plain callable -------------------------------------------------------------------------------------------


def test_a_plain_harness_plays_a_script_and_is_traced() -> None:
    guest = Guest([CALL, text("done")], tools=[look])
    guest.check(harness("Work.", guest.ask, guest.tools))
    told = [type(event).__name__ for event in guest.trace.events]
    assert told == [
        "JobCreated", "StepStarted", "LLMRequested", "LLMReplied", "ToolCalled", "ToolReturned",
        "StepStarted", "LLMRequested", "LLMReplied", "JobStopped",
    ]  # fmt: skip
    assert guest.calls == [{"name": "look", "arguments": "where='here'", "result": "seen here"}]


def test_a_tool_in_no_list_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^tools=<function .*>: expected a list, tools=\[\.\.\.\]$"):
        Guest([text("a")], tools=look)  # type: ignore[arg-type]


def test_the_same_script_gives_the_same_trace() -> None:
    digests = set()
    for _ in range(2):
        guest = Guest([CALL, text("done")], tools=[look])
        guest.check(harness("Work.", guest.ask, guest.tools))
        digests.add(guest.trace.digest())
    assert len(digests) == 1


def test_a_call_is_held_against_the_tools_that_are_offered() -> None:
    guest = Guest([CALL], tools=[look])
    with pytest.raises(UnmatchedRequest, match=r"reply 1 calls 'look', but the request offers no tools\."):
        guest.ask(ASKED, tools=[])


def test_usage_is_metered_beside_what_the_provider_reports() -> None:
    guest = Guest([text("done")])
    guest.ask(ASKED)
    (replied,) = guest.trace.of_job("main").of_type(events.LLMReplied)
    assert replied.measured_prompt == replied.reported_prompt == 9
    assert replied.measured_completion == 1


def test_what_a_tool_raises_goes_through_and_is_noted() -> None:
    guest = Guest([tool_call("look", where="nowhere")], tools=[look])
    with pytest.raises(LookupError, match=r"^it is dark$"):
        harness("Work.", guest.ask, guest.tools)
    assert guest.calls[0]["error"] == "LookupError: it is dark"


@table_test(
    ("script", "faults", "raised", "seconds"),
    [
        ([fault(429, retry_after=7)], (), ProviderHTTPError, 0),
        ([timeout()], (), ProviderTimeout, 60),
        ([raw("{")], (), ValueError, 0),
        ([text("done")], (HttpError(503),), ProviderHTTPError, 0),
        ([text("done")], (NoAnswerAtAll(),), ProviderTimeout, 60),
        ([text("done")], (SlowFirstByte(90.0),), ProviderTimeout, 60),
        ([text("done")], (Reset(),), ProviderUnreachable, 0),
        ([text("done")], (Malformed(),), ValueError, 0),
    ],
)
def test_what_goes_wrong_goes_wrong_for_a_plain_harness(
    script: list[ScriptEntry], faults: Sequence[Any], raised: type[Exception], seconds: float
) -> None:
    rules = [FaultRule(fault=one, positions=(1,)) for one in faults]
    guest = Guest(script, faults=rules)
    with pytest.raises(raised):
        guest.ask(ASKED)
    assert guest.clock.now() == seconds


def test_a_rate_limit_says_when_to_ask_again() -> None:
    guest = Guest([fault(429, retry_after=7)])
    with pytest.raises(ProviderHTTPError) as limited:
        guest.ask(ASKED)
    assert limited.value.retry_after == 7


def test_a_request_without_a_reply_is_the_tests_own_error() -> None:
    guest = Guest([text("done").on("Something else.")])
    with pytest.raises(UnmatchedRequest, match=r"Something else"):
        guest.ask(ASKED)


def test_replies_that_are_left_over_are_told_at_the_end() -> None:
    guest = Guest([text("done"), text("more")])
    guest.ask(ASKED)
    with pytest.raises(UnusedReplies):
        guest.check("done")


def test_a_request_that_is_sent_again_is_another_attempt_of_the_same_turn() -> None:
    guest = Guest([fault(500), text("done")])
    with pytest.raises(ProviderHTTPError):
        guest.ask(ASKED)
    guest.ask(ASKED)
    asked = guest.trace.of_job("main").of_type(events.LLMRequested)
    assert [(one.turn, one.attempt) for one in asked] == [(1, 1), (1, 2)]


# -- coroutines, and clients of httpx ---------------------------------------------------------------------------


def test_coroutines_sleep_in_virtual_time() -> None:
    guest = Guest([text("done")], tools=[listen])

    async def work() -> object:
        return await guest.tools["listen"](where="here")

    assert (guest.run(work()), guest.clock.now()) == ("heard here", 3.0)
    returned = guest.trace.of_job("main").of_type(events.ToolReturned)
    assert [one.at for one in returned] == [3.0]


def test_what_a_guest_puts_into_a_thread_is_done_at_once_and_may_fail() -> None:
    guest = Guest([text("done")])

    async def work() -> list[object]:
        return [await asyncio.to_thread(look, "here"), await asyncio.to_thread(look, "nowhere")]

    with pytest.raises(LookupError):
        guest.run(work())


def test_a_socket_is_told_from_time_that_passes() -> None:
    async def work() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(AsyncToolStuck, match=r"never happens in virtual time"):
        Guest([text("done")]).run(work())


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_client_of_httpx_is_answered_in_its_format(stream: bool) -> None:
    guest = Guest([text("Hello there.")])

    async def work() -> bytes:
        async with client_of(guest, httpx) as client:
            body = {"model": "claude-x", "max_tokens": 9, "messages": ASKED, "stream": stream}
            response = await client.post("https://llm.invalid/v1/messages", json=body)
            assert response.status_code == 200
            return bytes(response.content)

    said = guest.run(work())
    assert (b"event: message_stop" in said) == stream
    (replied,) = guest.trace.of_job("main").of_type(events.LLMReplied)
    assert replied.text == "Hello there."


def test_the_clients_own_timeout_ends_its_waiting() -> None:
    guest = Guest([timeout()])

    async def work() -> None:
        async with client_of(guest, httpx, timeout=5.0) as client:
            await client.post(
                "https://llm.invalid/v1/chat/completions", json={"model": "m", "messages": ASKED}
            )

    with pytest.raises(httpx.ReadTimeout):
        guest.run(work())
    assert guest.clock.now() == 5.0


def test_a_broken_connection_is_a_read_error() -> None:
    guest = Guest([text("done")], faults=[FaultRule(fault=Reset(), positions=(1,))])

    async def work() -> None:
        async with client_of(guest, httpx) as client:
            await client.post(
                "https://llm.invalid/v1/chat/completions", json={"model": "m", "messages": ASKED}
            )

    with pytest.raises(httpx.ReadError):
        guest.run(work())
    (failed,) = guest.trace.of_job("main").of_type(events.RequestFailed)
    assert failed.error == "the connection broke"


# -- the page ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_on_other_harnesses_is_true(tmp_path: Path) -> None:
    pytest.importorskip("pydantic_ai", reason="it comes with the dev extra")
    assert follow(DOCS / "bring-your-own-harness.md", tmp_path, {"COLUMNS": "120"}) == 3


def test_the_ten_lines_are_ten_lines() -> None:
    page = (DOCS / "bring-your-own-harness.md").read_text("utf-8")
    function = re.search(r"^def answer.*?(?=^```)", page, re.MULTILINE | re.DOTALL)
    assert function is not None
    body = function[0].splitlines()[1:]
    assert len(body) == 9


# -- metrics ----------------------------------------------------------------------------------------------------


def played(*script: ScriptEntry, **made: Any) -> Guest:
    guest = Guest(script, tools=[look], **made)
    guest.check(harness("Work.", guest.ask, guest.tools))
    return guest


def test_steps_calls_loops_and_cost_of_a_guest_are_measured() -> None:
    guest = played(*[CALL] * 3, text("done"))
    (task,) = task_facts(guest.trace.events, cost=lambda model, prompt, completion: Decimal("0.5"))
    assert (task.steps, task.calls, task.failed_calls, task.loops) == (4, 3, 0, 1)
    assert (task.outcome, task.cost) == ("completed", Decimal(2))
    (calm,) = task_facts(played(CALL, tool_call("look", where="there"), CALL, text("done")).trace.events)
    assert calm.loops == 0


def test_a_failed_tool_and_the_latency_of_steps_of_a_guest_are_measured() -> None:
    guest = Guest([tool_call("look", where="nowhere").after(2), text("sorry")], tools=[look])
    guest.ask(ASKED)
    with pytest.raises(LookupError):
        guest.tools["look"](where="nowhere")
    guest.ask([*ASKED, *ASKED])
    guest.check()
    (task,) = task_facts(guest.trace.events)
    assert (task.calls, task.failed_calls, task.step_seconds) == (1, 1, (2.0, 0.0))


def test_what_a_guest_cannot_show_is_not_measured_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "guest.jsonl"
    file.write_text("".join(f"{line}\n" for line in played(CALL, text("done")).trace.lines()), "utf-8")
    written = tmp_path / "metrics.json"
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["metrics", str(file), "--json", str(written)])
    assert "not measured: guards of a guest are not visible" in capsys.readouterr().out
    found = json.loads(written.read_text("utf-8"))["all"]["metrics"]
    assert found["steps_per_task"]["value"] == 2.0
    assert {name: one["why"] for name, one in found.items() if one["why"].startswith("not")} == {
        "cost_per_task": "not measured: no prices are configured",
        "escalation_rate": "not measured: escalations of a guest are not visible",
        "checkpoint_restores": "not measured: checkpoints of a guest are not visible",
        "guard_blocks_per_task": "not measured: guards of a guest are not visible",
    }


def test_calls_of_tools_that_were_not_recorded_are_not_measured() -> None:
    guest = Guest([CALL, text("done")])
    guest.check(harness("Work.", guest.ask, {"look": look}))
    (task,) = task_facts(guest.trace.events)
    assert (task.calls, task.failed_calls) == (None, None)
    assert measure([task]).metrics["tool_error_rate"].why == (
        "the model called tools, and none of the guest's own was recorded"
    )


def test_an_agent_of_ours_may_have_the_role_of_a_guest() -> None:
    trace: list[events.Event] = [
        events.JobCreated(0.0, "main", "guest", "gpt-4o", None),
        events.StatusChanged(0.0, "main", "READY", "STARTED"),
        events.JobStopped(0.0, "main", "final", None),
    ]
    (task,) = task_facts(trace)
    assert (task.escalations, task.restores, task.blocks) == (0, 0, 0)


def test_the_record_of_a_server_is_a_task_too() -> None:
    calls = [Call("look", {"where": "here"}, "seen", None, turn) for turn in (1, 2, 3)]
    requests = [Request(turn, "gpt-4o", (), None, 10, 2) for turn in (1, 2, 3, 4)]
    failed = Request(0, "gpt-4o", (), "HTTP 500", 0, 0)
    run = Trajectory(tuple(calls), (failed, *requests), "done", "answer")
    task = trajectory_facts(run, cost=lambda model, prompt, completion: Decimal(prompt + completion))
    assert (task.outcome, task.steps, task.calls, task.loops) == ("completed", 4, 3, 1)
    assert (task.tokens, task.cost) == (48, Decimal(48))
    report = metrics_report([task])
    assert report.everything.findings["tool_error_rate"].why == (
        "not measured: a server receives tool results, but not whether they are errors"
    )
    assert report.everything.findings["cost_per_task"].why == "no value per task is given"


def test_the_record_of_a_server_without_a_price_has_no_cost() -> None:
    run = Trajectory((), (Request(1, "mine", (), None, 10, 2),), None, "error")
    assert trajectory_facts(run).outcome == "failed"
    assert trajectory_facts(run).unmeasured["cost"] == "no prices are configured"
    unpriced = trajectory_facts(run, cost=lambda model, prompt, completion: None)
    assert (unpriced.cost, unpriced.unmeasured["cost"]) == (None, "no price for model 'mine'")
    assert trajectory_facts(Trajectory(())).outcome == "open"
