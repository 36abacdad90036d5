"""Spans of a run: what is in what, what failed, and that equal runs have equal ones."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.semconv.schemas import Schemas

from statek_sim import trace as events
from statek_sim.agent.approvals import tool_that_asks
from statek_sim.agent.effects import PASS, GuardPoint, Parts, PersonSaid, Subject, Verdict
from statek_sim.agent.escalation import Ladder, Level
from statek_sim.agent.execution import Context
from statek_sim.agent.harness import AgentHarness
from statek_sim.providers.script import Reply, ScriptedCall, fault, text, timeout, tool_call, tool_calls
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.scenario.load import load_or_fail
from statek_sim.spans import names
from statek_sim.spans.build import SpanBuilder, spans_of
from statek_sim.spans.span import Span, as_json
from statek_sim.suite.run import run_one
from statek_sim.telemetry.otel import trace_spans
from statek_sim.trace import Trace
from tests.tables import table_test
from tests.telemetry.span_contract import REQUIREMENTS, span_findings

SCENARIOS: Final = Path(__file__).parents[2] / "scenarios"


def look(place: str) -> str:
    """Look at a place."""
    if place == "nowhere":
        raise OSError("there is no such place")
    return f"{place} is fine"


def traced(*script: Reply, parts: Parts | None = None, **made: Any) -> Trace:
    agent = AgentHarness(ScriptedLLM(list(script)), tools=[look], parts=parts or Parts(), **made)
    agent.run("Work.")
    return agent.trace


def watchful(subject: Subject) -> Verdict:
    if subject.point is GuardPoint.CALL:
        return Verdict(action="warn", reason="it is far")
    return Verdict(action="block", reason="it is rude") if "damn" in subject.text else PASS


def test_a_task_is_one_trace_and_each_step_a_span_in_it() -> None:
    trace = traced(tool_call("look", place="a"), text("done"))
    names_by_id = {span.id: span.name for span in trace.spans()}
    assert [(span.name, names_by_id.get(span.parent or "")) for span in trace.spans()] == [
        ("invoke_agent agent", None),
        ("step 1", "invoke_agent agent"),
        ("chat gpt-4o", "step 1"),
        ("execute_tool look", "step 1"),
        ("step 2", "invoke_agent agent"),
        ("chat gpt-4o", "step 2"),
    ]
    assert len({span.trace for span in trace.spans()}) == 1


def test_spans_are_asked_for_by_operation_or_by_name() -> None:
    trace = traced(tool_call("look", place="a"), tool_call("look", place="nowhere"), text("done"))
    good, bad = trace.spans("execute_tool")
    assert trace.spans("execute_tool look") == [good, bad]
    assert trace.spans("execute_tool other") == []
    assert (good.error, bad.error) == (None, "OSError: there is no such place")
    assert (bad.attributes[names.ERROR], bad.attributes[names.LEVEL]) == ("OSError", "ERROR")
    assert trace.of_job("main").spans("execute_tool") == [good, bad]


def test_a_request_says_what_it_used_and_what_it_cost() -> None:
    trace = traced(text("done"))
    (chat,) = trace.spans("chat")
    (reply,) = [event for event in trace.events if isinstance(event, events.LLMReplied)]
    assert chat.attributes[names.INPUT_TOKENS] == (reply.reported_prompt or reply.measured_prompt)
    assert names.COST not in chat.attributes
    priced = spans_of(trace.events, "run", provider="OPENAI", cost=lambda model, prompt, completion: 0.25)
    (chat,) = [span for span in priced if span.operation == "chat"]
    assert (chat.attributes[names.COST], chat.attributes[names.PROVIDER]) == (0.25, "openai")


def test_a_request_that_failed_and_the_one_after_it_are_two_spans() -> None:
    trace = traced(fault(503), text("done"))
    first, second = trace.spans("chat")
    assert first.error is not None
    assert second.error is None
    assert [span.attributes[names.ATTEMPT] for span in (first, second)] == [1, 2]
    assert first.end is not None
    assert first.end < second.start


def test_a_request_that_failed_has_a_kind_of_error_that_there_are_few_of() -> None:
    trace = traced(fault(503), timeout(), fault(429))
    assert [span.attributes[names.ERROR] for span in trace.spans("chat")] == ["503", "timeout", "429"]
    assert [span.error for span in trace.spans("chat")][1] == "timeout"


def test_guards_and_checkpoints_are_marks_and_child_spans() -> None:
    trace = traced(tool_call("look", place="a"), text("done"), parts=Parts(guards=[watchful], commits=True))
    (guard,) = trace.spans("guard")
    (step, _) = trace.spans("step")
    (root,) = trace.spans("invoke_agent")
    assert (guard.name, guard.parent, guard.attributes[names.VERDICT]) == ("guard call", step.id, "warn")
    assert [mark.name for mark in step.marks] == [
        "checkpoint replied",
        "call guard",
        "checkpoint calling",
        "checkpoint tools_returned",
    ]
    assert [mark.name for mark in root.marks] == ["checkpoint began", "checkpoint ended"]
    points = [span.name for span in trace.spans("checkpoint")]
    assert points[0] == "checkpoint began"
    assert points[-1] == "checkpoint ended"


def test_a_run_that_was_blocked_is_an_error_with_its_reason() -> None:
    agent = AgentHarness(ScriptedLLM([]), parts=Parts(guards=[watchful]))
    agent.run("damn")
    (root,) = agent.trace.spans("invoke_agent")
    assert (root.error, root.attributes[names.STOPPED]) == ("blocked: it is rude", "blocked")


def test_calls_of_one_tool_in_one_reply_end_in_their_order() -> None:
    both = tool_calls(ScriptedCall("look", {"place": "a"}), ScriptedCall("look", {"place": "nowhere"}))
    assert [span.error for span in traced(both, text("done")).spans("execute_tool")] == [
        None,
        "OSError: there is no such place",
    ]


def test_calls_of_one_tool_that_end_in_another_order_are_told_apart_by_their_ids() -> None:
    async def wait(seconds: float, context: Context) -> str:
        """Wait."""
        await context.sleep(seconds)
        return f"waited {seconds}"

    both = tool_calls(ScriptedCall("wait", {"seconds": 9.0}), ScriptedCall("wait", {"seconds": 2.0}))
    agent = AgentHarness(ScriptedLLM([both, text("done")]), tools=[wait])
    agent.run("Work.")
    calls = agent.trace.spans("execute_tool", content=True)
    assert [(span.attributes[names.OUTPUT], span.seconds) for span in calls] == [
        ("waited 9.0", 9.0),
        ("waited 2.0", 2.0),
    ]
    (asked,) = agent.trace.of_job("main").of_type(events.LLMReplied)[:1]
    assert [span.attributes[names.TOOL_CALL] for span in calls] == ["call-1-1", "call-1-2"]
    assert len(asked.tool_calls) == len(calls)


@table_test(
    ("calls", "returns"),
    [
        ([("a", ""), ("b", "")], [("a", ""), ("b", "")]),
        ([("a", "c1"), ("b", "c1")], [("a", "c1"), ("b", "c1")]),
    ],
)
def test_a_call_ends_by_its_tool_and_its_id(
    calls: list[tuple[str, str | None]], returns: list[tuple[str, str | None]]
) -> None:
    begun = [events.ToolCalled(0.0, "main", name, "", "call", call_id) for name, call_id in calls]
    ended = [
        events.ToolReturned(float(at), "main", name, name.upper(), None, call_id)
        for at, (name, call_id) in enumerate(returns, 1)
    ]
    spans = [
        span for span in spans_of([*begun, *ended], "run", content=True) if span.operation == "execute_tool"
    ]
    assert [span.end for span in spans if span.name.endswith(" b")] == [
        float(at) for at, (name, _) in enumerate(returns, 1) if name == "b"
    ]
    assert all(span.attributes[names.OUTPUT] == str(span.name)[-1].upper() for span in spans)
    assert all(names.OPEN not in span.attributes for span in spans)


def test_waiting_for_a_person_is_a_span() -> None:
    agent = AgentHarness(
        ScriptedLLM([tool_call("ask_person", question="Why?"), text("done")]),
        tools=[tool_that_asks(seconds=60)],
        person=lambda question: PersonSaid("refused", "no"),
    )
    agent.run("Work.")
    (asked,) = agent.trace.spans("ask_person")
    assert (asked.name, asked.error) == ("ask_person ask_person", "refused")


def test_a_message_later_is_another_task_in_another_trace() -> None:
    agent = AgentHarness(ScriptedLLM([text("one"), text("two")]))
    agent.run("First.", then={10.0: "Second."})
    first, second = agent.trace.spans("invoke_agent")
    assert first.trace != second.trace
    assert first.attributes[names.SESSION] == second.attributes[names.SESSION]
    assert (first.end, second.start) == (0.0, 10.0)


def test_what_was_said_is_in_spans_only_when_asked_for() -> None:
    trace = traced(tool_call("look", place="a"), text("done"))
    assert not [
        key for span in trace.spans() for key in span.attributes if "put" in key and "tokens" not in key
    ]
    (call,) = trace.spans("execute_tool", content=True)
    assert (call.attributes[names.TOOL_ARGUMENTS], call.attributes[names.OUTPUT]) == (
        '{"place": "a"}',
        "a is fine",
    )


@table_test(
    "given",
    [
        {},
        {"place": "a, b='c'", "n": 3, "x": -1.5e-07, "yes": True, "none": None},
        {"quotes": 'it\'s "so"', "lines": "a\nb\\", "far": "\U0001f600 \ud800"},
        {"list": [1, [], {"a": {"b": ["c,", "d]"]}}], "empty": {}},
        {"large": 2**70, "small": -(2**70)},
    ],
)
def test_the_arguments_of_a_call_are_json(given: dict[str, Any]) -> None:
    """They are written as the loop writes them into a trace."""
    written = as_json(", ".join(f"{key}={value!r}" for key, value in given.items()))
    assert written is not None
    assert json.loads(written) == given


@table_test("written", ["x=inf", "x=-inf", "n=1, x=nan", "x=1e999", "x=[1, -1e999]"])
def test_numbers_that_json_does_not_have_leave_the_arguments_as_the_trace_has_them(written: str) -> None:
    assert as_json(written) is None
    called = events.ToolCalled(0.0, "main", "look", written, "call")
    returned = events.ToolReturned(0.0, "main", "look", "ok", None)
    (_, call) = spans_of([called, returned], "run", content=True)
    assert call.attributes[names.TOOL_ARGUMENTS] == written


@table_test(
    "written",
    ["a", "a=", "=1", "from=1", "a b=1", "**{}", "a=[1", "a='b", "a=1]", "a=<Job 3>", "a=f(1)"],
)
def test_what_is_not_written_as_arguments_is_no_json(written: str) -> None:
    assert as_json(written) is None


def test_the_arguments_of_model_written_code_stay_python() -> None:
    called = events.ToolCalled(0.0, "main", "look", "'a', n=3", "code")
    returned = events.ToolReturned(0.0, "main", "look", "ok", None)
    (_, call) = spans_of([called, returned], "run", content=True)
    assert call.attributes[names.TOOL_ARGUMENTS] == "'a', n=3"


def test_a_request_s_input_is_what_it_adds_and_what_is_sent_again_has_it_again() -> None:
    trace = traced(tool_call("look", place="a"), fault(503), text("done"))
    inputs = [span.attributes[names.INPUT] for span in trace.spans("chat", content=True)]
    assert inputs[0] == "user: Work."
    assert inputs[1] == 'assistant: look({"place": "a"})\ntool: a is fine'
    assert inputs[2] == inputs[1]


def test_equal_runs_have_equal_spans_and_other_runs_other_ids() -> None:
    one, two = traced(text("done")), traced(text("done"))
    assert one.spans() == two.spans()
    ids = {span.id for span in one.spans()} & {span.id for span in traced(text("else")).spans()}
    assert ids == set()


def test_spans_as_they_end_are_those_of_the_whole_trace() -> None:
    trace = traced(tool_call("look", place="a"), text("done"), parts=Parts(guards=[watchful], commits=True))
    builder = SpanBuilder(trace.digest())
    live: list[Span] = [span for event in trace.events for span in builder.follow(event)]
    assert live
    assert "invoke_agent agent" not in {span.name for span in live}
    live += builder.finish()
    assert sorted(live, key=lambda span: span.seq) == trace.spans()


@table_test("kept", range(1, 14))
def test_a_trace_that_was_cut_off_has_spans_that_hang_together(kept: int) -> None:
    whole = traced(tool_call("look", place="a"), text("done"), parts=Parts(commits=True)).events
    for part in (whole[:kept], whole[kept:]):
        found = spans_of(part, "run")
        ids = {span.id for span in found}
        assert all(span.parent is None or span.parent in ids for span in found)
        assert len(ids) == len(found)
        assert all(span.end is None or span.end >= span.start for span in found)
        assert all((span.end is None) == (names.OPEN in span.attributes) for span in found)


def test_the_names_are_those_of_the_conventions() -> None:
    known = {value for key, value in vars(gen_ai_attributes).items() if key.startswith("GEN_AI")}
    ours = {
        value for key, value in vars(names).items() if isinstance(value, str) and value.startswith("gen_ai.")
    }
    assert ours - known == {names.COST}
    assert error_attributes.ERROR_TYPE == names.ERROR
    assert Schemas.V1_40_0.value == names.SCHEMA_URL
    operations = {one.value for one in gen_ai_attributes.GenAiOperationNameValues}
    assert {operation.value for operation in names.GEN_AI} <= operations
    providers = {one.value for one in gen_ai_attributes.GenAiProviderNameValues}
    assert {*names.PROVIDERS.values(), *names.MAKERS.values()} <= providers


def test_spans_have_what_the_conventions_require_or_recommend_and_a_trace_knows() -> None:
    trace = traced(tool_call("look", place="a"), tool_call("look", place="nowhere"), text("done"))
    for provider in (None, "OPENAI"):
        every = spans_of(trace.events, "run", provider=provider)
        found = [span for span in every if span.operation in REQUIREMENTS]
        assert {span.operation for span in found} == set(REQUIREMENTS) == names.GEN_AI
        for span in found:
            given = {name for name in span.attributes if name.startswith(("gen_ai.", "error."))}
            wanted = set(REQUIREMENTS[span.operation])
            assert given == (wanted if span.error else wanted - {names.ERROR}), span.name
        assert {span.attributes.get(names.PROVIDER, "openai") for span in found} == {"openai"}


def test_every_span_of_every_scenario_has_what_is_required() -> None:
    """Failures, ladders, subtasks, people: no provider is named, as in `statek-sim trace --otlp`."""
    for scenario in load_or_fail([SCENARIOS / suite for suite in ("agent-people", "agent-escalation")]):
        record = run_one(scenario, scenario.profiles[0]).record
        for span in spans_of(record.events, "run"):
            levels = REQUIREMENTS.get(span.operation, {})
            required = {name for name, level in levels.items() if level == "required"}
            given = {name for name, value in span.attributes.items() if value != ""}
            assert required <= given, (scenario.id, span.name)
            assert (names.ERROR in span.attributes) == (span.error is not None), (scenario.id, span.name)


def test_a_provider_that_nobody_named_is_the_maker_of_the_model_that_is_asked() -> None:
    ladder = Ladder(
        levels=(Level(name="fast", model="claude-haiku-4-5"), Level(name="strong", model="own/llama-4")),
        checks=[lambda task, answer: "GOOD" in answer],
    )
    chats = traced(text("bad"), text("bad too"), parts=Parts(ladder=ladder)).spans("chat")
    assert [chat.attributes[names.PROVIDER] for chat in chats] == ["anthropic", "unknown"]
    assert names.provider_of("openrouter/openai/GPT-4o") == "openai"


def test_attempts_and_steps_up_a_ladder_are_marks() -> None:
    ladder = Ladder(
        levels=(Level(name="fast", model="small"), Level(name="strong", model="large")),
        checks=[lambda task, answer: "GOOD" in answer],
    )
    trace = traced(text("bad"), text("bad too"), parts=Parts(ladder=ladder))
    (root,) = trace.spans("invoke_agent")
    steps = trace.spans("step")
    assert [mark.name for step in steps for mark in step.marks] == ["attempt", "attempt"]
    assert [mark.attributes["statek.to"] for mark in root.marks] == ["strong", "nobody"]
    assert [span.name for span in trace.spans("chat")] == ["chat small", "chat large"]
    assert root.attributes[names.STOPPED] == "unsolved"


def test_our_spans_pass_the_checker_and_so_do_they_in_the_sdks_shape() -> None:
    trace = traced(tool_call("look", place="a"), tool_call("look", place="nowhere"), text("done"))
    assert span_findings(trace.spans(content=True)) == span_findings(trace_spans(trace, content=True)) == []


def test_the_checker_of_spans_finds_what_the_conventions_do_not_want() -> None:
    (call,) = traced(tool_call("look", place="a"), text("done")).spans("execute_tool", content=True)
    (chat,) = traced(text("done")).spans("chat")
    wrong = [
        replace(call, attributes={**call.attributes, names.TOOL_ARGUMENTS: "place='a'"}),
        replace(call, name="look", attributes={**call.attributes}),
        replace(chat, attributes={**chat.attributes, names.INPUT_TOKENS: -1}),
        replace(
            chat, attributes={key: value for key, value in chat.attributes.items() if key != names.PROVIDER}
        ),
    ]
    assert span_findings([call, chat, *wrong]) == [
        "span 'execute_tool look': gen_ai.tool.call.arguments is not a JSON object: \"place='a'\"",
        "span 'look': its name is not 'execute_tool look'",
        "span 'chat gpt-4o': gen_ai.usage.input_tokens is -1, expected a whole number from 0 on",
        "span 'chat gpt-4o': gen_ai.provider.name is missing, which version 1.40.0 requires",
    ]
