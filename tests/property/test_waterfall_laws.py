"""The waterfall adds up over any conversation, and each of its levels is a count one can take another way."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from statek_sim.analysis.run_usage import scenario_use
from statek_sim.backends.call_log import AnsweredCall, reply_texts
from statek_sim.suite.result import ScenarioResult
from statek_sim.trace import LLMRequested
from statek_sim.usage.breakdown import STEPS, CallParts, ScenarioUse, Waterfall, waterfall
from statek_sim.usage.messages import (
    REPLY_PRIMING,
    format_tokens,
    message_texts,
    message_tokens,
    prompt_tokens,
    tools_tokens,
)
from statek_sim.usage.tokenizers import tokenizer_for_model
from statek_sim.values import JSON, Message
from tests.examples import examples
from tests.unit.usage_samples import dialog, played

COUNT = tokenizer_for_model("gpt-4o").tokenizer

texts = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]) | st.sampled_from('aż好😀\n"\\<|'),
    max_size=40,
)
chats = texts.map(lambda text: {"text": f"said: {text}"})
calls = texts.map(lambda text: {"tools": [{"name": "echo", "args": {"value": text}}]})
conversations = st.lists(chats | calls, max_size=5).map(lambda replies: [*replies, {"text": "done"}])


def run(replies: Sequence[JSON], message: str, *, tools: bool) -> tuple[ScenarioResult, ScenarioUse]:
    """Play a conversation: a user who pushes a message after every final reply, and a model with one tool."""
    pushes: list[JSON] = [
        {"at": float(number), "push": "main", "message": f"{message} {number}"} for number in range(1, 6)
    ]
    answers: list[JSON] = [*replies, {"text": "and done", "repeat": "forever"}]
    text = dialog(*answers, message=message, tools=["echo"], tools_scope="ALL" if tools else None)
    result = played({**text, "events": pushes})
    return result, scenario_use(result)


@settings(max_examples=examples(40), deadline=None)
@given(replies=conversations, message=texts.filter(bool), tools=st.booleans())
def test_every_level_of_the_waterfall_is_what_the_bodies_say(
    replies: list[JSON], message: str, tools: bool
) -> None:
    result, use = run(replies, message, tools=tools)
    steps = use.use.waterfall
    assert result.record.calls
    assert [steps.once, *_running(steps)] == _levels(result)


@settings(max_examples=examples(40), deadline=None)
@given(replies=conversations, message=texts.filter(bool), tools=st.booleans())
def test_the_waterfall_starts_at_the_estimate_and_ends_at_the_measure(
    replies: list[JSON], message: str, tools: bool
) -> None:
    result, use = run(replies, message, tools=tools)
    steps, usage = use.use.waterfall, result.record.usage
    assert steps.estimate == usage.approx_tokens
    assert steps.estimate + sum(getattr(steps, step) for step in STEPS[1:]) == usage.measured_tokens
    assert steps.measured == usage.measured_tokens


@settings(max_examples=examples(20), deadline=None)
@given(replies=conversations, message=texts.filter(bool))
def test_turns_add_up_to_jobs_and_jobs_to_the_scenario(replies: list[JSON], message: str) -> None:
    result, use = run(replies, message, tools=False)
    (job,) = use.jobs
    assert job.use.parts == use.use.parts
    assert [sum(column) for column in zip(*(turn.use.parts for turn in job.turns), strict=True)] == list(
        use.use.parts
    )
    assert use.use.calls == len(result.record.calls) == len(job.turns)


@given(parts=st.lists(st.tuples(*[st.integers(0, 10_000)] * 11), max_size=5))
def test_sums_of_waterfalls_add_up_too(parts: list[tuple[int, ...]]) -> None:
    total = Waterfall()
    for figures in parts:
        total = total.plus(waterfall(CallParts(*figures)))
    assert total.measured == sum(figures[-1] for figures in parts)
    assert total.estimate == sum((figures[0] + figures[1]) // 4 for figures in parts)


contents = (
    texts | st.none() | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": texts}) | texts)
)
functions = st.fixed_dictionaries({"name": texts, "arguments": texts})
tool_calls = st.lists(st.fixed_dictionaries({"id": texts, "function": functions}) | texts, max_size=3)
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool"])},
    optional={"content": contents, "name": texts, "tool_calls": tool_calls},
)


@given(message=messages)
def test_a_messages_tokens_are_those_of_its_texts_and_of_its_frame(message: Message) -> None:
    apart = sum(map(COUNT.count, message_texts(message)))
    assert format_tokens(message, COUNT) + apart == message_tokens(message, COUNT)


def _running(steps: Waterfall) -> list[int]:
    """Return the levels after the first."""
    levels, at = [], steps.once
    for step in STEPS:
        at += getattr(steps, step)
        levels.append(at)
    return levels


def _levels(result: ScenarioResult) -> list[int]:
    """Count every level from whole request and response bodies, without sums and without sharing anything."""
    once = sent = received = unescaped = tools = words = 0
    frames = tools_in_prompts = replies = call_frames = measured = 0
    before: Sequence[Message] = ()
    calls = result.record.calls
    for call in calls:
        now = _messages(result, call)
        body: dict[str, JSON] = {"model": call.model, "messages": [dict(message) for message in now]}
        if call.tools:
            body["tools"] = [dict(spec) for spec in call.tools]
        shared = _shared(before, now)
        before = now
        sent += len(json.dumps(body))
        received += len(call.body)
        once += len(json.dumps({**body, "messages": [dict(message) for message in now[shared:]]}))
        unescaped += _utf8(json.dumps(body, ensure_ascii=False))
        if "tools" in body:
            tools += _utf8(', "tools": ' + json.dumps(body["tools"], ensure_ascii=False))
        said = [text for message in now for text in message_texts(message)]
        words += sum(map(_utf8, said))
        offered = tools_tokens(call.tools, COUNT)
        tools_in_prompts += offered
        prompt = prompt_tokens(now, call.tools, COUNT)
        frames += prompt - offered - sum(map(COUNT.count, said))
        written = reply_texts(call)
        replies += sum(map(_utf8, written))
        call_frames += call.usage.measured_completion - sum(map(COUNT.count, written))
        measured += call.usage.measured_tokens
        assert prompt == call.usage.measured_prompt
    assert frames >= REPLY_PRIMING * len(calls)
    return [
        (once + received) // 4,
        (sent + received) // 4,
        (unescaped + received) // 4,
        (tools + words + received) // 4 + frames,
        (words + received) // 4 + frames + tools_in_prompts,
        (words + replies) // 4 + frames + tools_in_prompts + call_frames,
        measured,
    ]


def _messages(result: ScenarioResult, call: AnsweredCall) -> list[Message]:
    """Return the messages of one call's request, put together from the trace."""
    messages: list[Message] = []
    for event in result.record.events:
        if isinstance(event, LLMRequested) and event.job == call.job and event.turn <= call.turn:
            messages = [*messages[: event.kept], *event.new]
    return messages


def _shared(before: Sequence[Message], now: Sequence[Message]) -> int:
    same = 0
    for one, other in zip(before, now, strict=False):
        if one != other:
            break
        same += 1
    return same


def _utf8(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
