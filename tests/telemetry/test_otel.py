"""Spans over OTLP/HTTP, as a receiver of the official protocol reads them; afterwards from a trace, and live."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from opentelemetry import trace as otel_trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from statek_sim.agent.async_driver import AsyncDriver, LoopClock, model_of
from statek_sim.agent.effects import PASS, GuardPoint, Parts, Subject, Verdict
from statek_sim.agent.harness import AgentHarness
from statek_sim.cli import main
from statek_sim.clock import EPOCH
from statek_sim.errors import BadInput
from statek_sim.providers.script import ScriptedCall, text, tool_call, tool_calls
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.spans import names
from statek_sim.telemetry.otel import LiveSpans, send, trace_spans
from statek_sim.virtual_loop import VirtualLoop, run_in
from tests.telemetry.receiver import attributes, receiving

TRACER = otel_trace.get_tracer("a library")


async def look(place: str) -> str:
    """Look at a place."""
    return f"{place}: {otel_trace.get_current_span().get_span_context().span_id:016x}"


def careful(subject: Subject) -> Verdict:
    return Verdict(action="warn", reason="far away") if subject.point is GuardPoint.CALL else PASS


def agent() -> AgentHarness:
    script = [tool_call("look", place="a").after(1.5), text("done")]
    return AgentHarness(ScriptedLLM(script), tools=[look], parts=Parts(guards=[careful], commits=True))


def test_a_trace_is_received_with_its_tree_its_times_and_its_names() -> None:
    made = agent()
    made.run("Work.")
    with receiving() as received:
        count = send(
            trace_spans(made.trace, service="shop", provider="OPENAI"),
            received.address,
            {"Authorization": "Basic x"},
        )
    spans = {span.name: span for span in received.spans}
    assert count == len(received.spans) == len(made.trace.spans())
    assert received.headers[0]["authorization"] == "Basic x"
    root, tool = spans["invoke_agent agent"], spans["execute_tool look"]
    assert root.parent_span_id == b""
    assert {span.trace_id for span in received.spans} == {root.trace_id}
    assert tool.parent_span_id == spans["step 1"].span_id
    assert root.start_time_unix_nano == int(EPOCH.timestamp()) * 10**9
    assert root.end_time_unix_nano - root.start_time_unix_nano == 1_500_000_000
    told = attributes(tool.attributes)
    assert (told["gen_ai.operation.name"], told["gen_ai.tool.name"]) == ("execute_tool", "look")
    (resource,) = received.requests[0].resource_spans
    assert attributes(resource.resource.attributes) == {"service.name": "shop"}
    assert resource.scope_spans[0].scope.name == "statek_sim"
    assert resource.scope_spans[0].schema_url == names.SCHEMA_URL
    assert attributes(root.attributes)["gen_ai.provider.name"] == "openai"
    assert tool.kind == Span.SPAN_KIND_INTERNAL
    assert spans["chat gpt-4o"].kind == Span.SPAN_KIND_CLIENT


def test_what_langfuse_reads_is_there() -> None:
    """Langfuse: observations by their type, what failed by its level, and nothing in span events, which it drops."""
    made = AgentHarness(
        ScriptedLLM([tool_call("nowhere"), text("done")]), parts=Parts(guards=[careful], commits=True)
    )
    made.run("Work.")
    with receiving() as received:
        send(trace_spans(made.trace, cost=lambda model, prompt, completion: 0.5), received.address)
    types = {attributes(span.attributes)["langfuse.observation.type"] for span in received.spans}
    assert types == {"agent", "chain", "generation", "event"}
    (root,) = [span for span in received.spans if not span.parent_span_id]
    told = attributes(root.attributes)
    assert told["session.id"] == told["gen_ai.conversation.id"]
    assert told["langfuse.trace.name"] == "agent main"
    chats = [attributes(span.attributes) for span in received.spans if span.name.startswith("chat")]
    assert all(
        chat["gen_ai.usage.cost"] == 0.5 and isinstance(chat["gen_ai.usage.input_tokens"], int)
        for chat in chats
    )
    marks = {event.name for span in received.spans for event in span.events}
    also_spans = {span.name for span in received.spans}
    assert {mark for mark in marks if "checkpoint" in mark} <= also_spans


def test_a_failed_tool_is_an_error_to_the_receiver() -> None:
    def broken() -> str:
        """Break."""
        raise OSError("it is down")

    made = AgentHarness(ScriptedLLM([tool_call("broken"), text("done")]), tools=[broken])
    made.run("Work.")
    with receiving() as received:
        send(trace_spans(made.trace), received.address)
    (tool,) = [span for span in received.spans if span.name == "execute_tool broken"]
    assert (tool.status.code, tool.status.message) == (Status.STATUS_CODE_ERROR, "OSError: it is down")
    assert attributes(tool.attributes)["error.type"] == "OSError"


def test_equal_runs_are_equal_on_the_wire() -> None:
    with receiving() as received:
        for _ in range(2):
            made = agent()
            made.run("Work.")
            send(trace_spans(made.trace), received.address)
    first, second = received.requests
    assert first.SerializeToString(deterministic=True) == second.SerializeToString(deterministic=True)


def test_a_receiver_that_takes_nothing_is_bad_input() -> None:
    made = agent()
    made.run("Work.")
    with receiving() as received:
        received.status = 400
        with pytest.raises(
            BadInput,
            match=r"/v1/traces: 13 spans were not accepted; expected an OTLP/HTTP receiver at this address$",
        ):
            send(trace_spans(made.trace), received.address)


def test_spans_of_a_running_agent_come_as_they_end_and_tools_are_in_them() -> None:
    told: dict[str, Any] = {}

    async def work(address: str) -> None:
        made, clock = agent(), LoopClock()
        processor = SimpleSpanProcessor(OTLPSpanExporter(endpoint=address))
        live = LiveSpans(processor, run="run-7", start=datetime(2026, 5, 1, tzinfo=UTC))
        live.follow(made.trace)
        run = made.begin("Work.", clock=clock)
        driver = AsyncDriver(
            model_of(made.provider or ScriptedLLM([])), clock=clock.now, around_tool=live.around
        )
        await driver.run(run)
        live.close()
        processor.shutdown()
        told["result"] = run.calls[0]["result"]

    with receiving() as received:
        run_in(VirtualLoop(), work(received.address))
    names_ = [span.name for span in received.spans]
    assert names_.index("execute_tool look") < names_.index("step 1") < names_.index("invoke_agent agent")
    (tool,) = [span for span in received.spans if span.name == "execute_tool look"]
    assert told["result"] == f"a: {tool.span_id.hex()}"
    (root,) = [span for span in received.spans if not span.parent_span_id]
    assert root.start_time_unix_nano == int(datetime(2026, 5, 1, tzinfo=UTC).timestamp()) * 10**9


@pytest.mark.parametrize("plain", [True, False])
def test_each_of_two_calls_of_one_tool_at_once_is_the_current_span_of_its_own_work(plain: bool) -> None:
    def current() -> str:
        return f"{otel_trace.get_current_span().get_span_context().span_id:016x}"

    def look_now() -> str:
        """Look."""
        return current()

    async def look_later() -> str:
        """Look."""
        await asyncio.sleep(1)
        return current()

    tool = look_now if plain else look_later
    both = tool_calls(ScriptedCall(tool.__name__, {}), ScriptedCall(tool.__name__, {}))
    made = AgentHarness(ScriptedLLM([both, text("done")]), tools=[tool])
    ended: list[ReadableSpan] = []
    live = LiveSpans(Collected(ended), run="run-8", start=EPOCH)
    live.follow(made.trace)

    async def work() -> set[str | None]:
        clock = LoopClock()
        run = made.begin("Work.", clock=clock)
        driver = AsyncDriver(
            model_of(made.provider or ScriptedLLM([])), clock=clock.now, around_tool=live.around
        )
        await driver.run(run)
        return {call["result"] for call in run.calls}

    results = run_in(VirtualLoop(), work())
    spans = [f"{span.context.span_id:016x}" for span in ended if span.name == f"execute_tool {tool.__name__}"]
    assert len(set(spans)) == 2
    assert results == set(spans)


@dataclass
class Collected:
    """A span processor that keeps what it is handed."""

    spans: list[ReadableSpan]

    def on_end(self, span: ReadableSpan) -> None:
        """Take one."""
        self.spans.append(span)


def test_a_scenario_s_spans_are_sent_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    with receiving() as received, pytest.raises(SystemExit) as exit_:
        main(["trace", "agent-person-answers", "--otlp", received.address])
    assert exit_.value.code in (0, None)
    assert capsys.readouterr().out == f"{len(received.spans)} spans sent to {received.address}\n"
    told = [attributes(span.attributes) for span in received.spans]
    wanted = {"chat": "openai", "invoke_agent": "openai", "execute_tool": None}
    assert {
        one["gen_ai.operation.name"]: one.get("gen_ai.provider.name")
        for one in told
        if "gen_ai.operation.name" in one
    } == wanted
    (asked,) = [span for span in received.spans if span.name == "ask_person ask_owner"]
    assert asked.end_time_unix_nano - asked.start_time_unix_nano == 20 * 10**9


def test_a_provider_is_named_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    with receiving() as received, pytest.raises(SystemExit):
        main(["trace", "agent-person-answers", "--otlp", received.address, "--provider", "AZURE"])
    providers = {attributes(span.attributes).get("gen_ai.provider.name") for span in received.spans}
    assert providers == {"azure.ai.openai", None}
    with pytest.raises(SystemExit) as exit_:
        main(["trace", "agent-person-answers", "--provider", "AZURE"])
    assert exit_.value.code == 2
    assert "--provider requires --otlp URL" in capsys.readouterr().err
