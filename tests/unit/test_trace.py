from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, get_args

import pytest

from statek_sim import Agent, DialogAgent, Runtime, ScriptedLLM, tool
from statek_sim.errors import BadInput
from statek_sim.providers.script import code
from statek_sim.trace import Event, ExitCalled, StepStarted, Trace, UserMessage, WorldChanged, as_dict
from tests.tables import table_test
from tests.unit.runtime_samples import run_one

KINDS = get_args(Event)


def make(kind: Any) -> Any:
    """Return an event with plain values; which ones does not matter."""
    values = {"at": 1.5, "job": "j", "new": (), "tool_calls": ("f()",)}
    return kind(*(values.get(spec.name, 1) for spec in fields(kind)))


@table_test("kind", KINDS)
def test_every_event_has_time_and_job_and_becomes_one_line_of_ascii_json(kind: type[Event]) -> None:
    trace = Trace(profile="docs", seed=0)
    trace.add(make(kind))
    _, line = trace.lines()
    assert line.isascii()
    assert "\n" not in line
    said = json.loads(line)
    assert list(said)[:3] == ["event", "at", "job"]
    assert list(said) == ["event", *(spec.name for spec in fields(kind))]


@table_test("kind", KINDS)
def test_any_further_event_changes_the_digest(kind: type[Event]) -> None:
    trace = Trace(profile="docs", seed=0)
    digests = {trace.digest()}
    for _ in range(2):
        trace.add(make(kind))
        digests.add(trace.digest())
    assert len(digests) == 3


def test_the_order_of_events_is_part_of_the_digest() -> None:
    one, other = Trace(profile="docs", seed=0), Trace(profile="docs", seed=0)
    events: list[Event] = [StepStarted(0.0, "a", 1), StepStarted(0.0, "b", 1)]
    for event in events:
        one.add(event)
    for event in reversed(events):
        other.add(event)
    assert one.digest() != other.digest()


def test_the_header_says_version_profile_and_seed() -> None:
    (line,) = Trace(profile="1.2", seed=7).lines()
    assert line == '{"trace": 1, "profile": "1.2", "seed": 7}'


def test_profile_and_seed_are_part_of_the_digest() -> None:
    digests = [Trace(profile=name, seed=seed).digest() for name in ("docs", "1.4") for seed in (0, 1)]
    assert len(set(digests)) == 4


def test_text_is_escaped_and_floats_are_exact() -> None:
    trace = Trace(profile="docs", seed=0)
    trace.add(UserMessage(0.1 + 0.2, "j", "Grüße\n🙂"))
    assert list(trace.lines())[1] == (
        '{"event": "UserMessage", "at": 0.30000000000000004, "job": "j", "text": "Gr\\u00fc\\u00dfe\\n\\ud83d\\ude42"}'
    )


def test_an_event_as_a_mapping_keeps_the_order_of_its_fields() -> None:
    assert as_dict(WorldChanged(2.0, "", "worker", "killed")) == {
        "event": "WorldChanged",
        "at": 2.0,
        "job": "",
        "subject": "worker",
        "change": "killed",
    }


def test_the_trace_of_a_job_has_its_events_only() -> None:
    trace = Trace(profile="docs", seed=0)
    for job in ("a", "b", ""):
        trace.add(UserMessage(0.0, job, f"to {job}"))
    trace.add(StepStarted(1.0, "a", 1))
    assert list(trace.of_job("a")) == [UserMessage(0.0, "a", "to a"), StepStarted(1.0, "a", 1)]
    assert trace.of_job("a").of_type(StepStarted) == [StepStarted(1.0, "a", 1)]


def test_a_job_tells_its_console_requests_and_exit() -> None:
    job = run_one("print('hello')", "exit('ok')")
    assert job.trace.console() == ["hello", "None"]
    assert [request.turn for request in job.trace.requests()] == [1, 2]
    assert [event.status for event in job.trace.of_type(ExitCalled)] == ["ok"]


def test_every_line_of_a_real_run_reads_back_as_it_was_written() -> None:
    job = run_one("x = {'a': [1.5, None]}\nprint(x)", "1/0", "exit(x)")
    lines = list(job.host.trace.lines())
    assert [json.dumps(json.loads(line)) for line in lines] == lines


class Opaque:
    """An object whose only text carries its address."""

    __llm_repr__ = object.__repr__


class Unspeakable:
    """An object that has no text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


@table_test("value", [Unspeakable(), {1, 2}, b"\xff", [Unspeakable()], object])
def test_whatever_code_exits_with_the_trace_can_be_written(value: object) -> None:
    runtime = Runtime(ScriptedLLM([code("exit(value)")]))
    job = runtime.create_job(DialogAgent(lambda body, media=None: None), shared_vars={"value": value})
    runtime.run()
    assert job.stop_reason == "exit"
    assert job.py_env.exit_status is value
    assert runtime.trace.digest()


@table_test("media", ["'photo.png'", "{1, 2}", "None", "value"])
def test_whatever_is_delivered_the_trace_can_be_written(media: str) -> None:
    runtime = Runtime(ScriptedLLM([code(f"answer('here', media={media})")]))
    job = runtime.create_job(
        DialogAgent(lambda body, media=None: None), message="hi", shared_vars={"value": Unspeakable()}
    )
    runtime.run()
    assert [event.body for event in job.trace.delivered()] == ["here"]
    assert runtime.trace.digest()


def test_the_calls_of_a_tool_that_there_is_not_are_an_error_and_not_none() -> None:
    @tool
    def claim(**kwargs: object) -> int:
        return 1

    @tool
    def release(**kwargs: object) -> int:
        return 2

    runtime = Runtime(ScriptedLLM([code("claim()"), code("exit(late())")]))
    job = runtime.create_job(Agent("worker", tools=[claim]), shared_vars={"late": release})
    runtime.run()
    trace = job.trace
    assert [len(trace.tool_calls(name)) for name in ("claim", "release", "print_locals")] == [1, 1, 0]
    with pytest.raises(
        BadInput, match=r"tool_calls\('relase'\): job '.*' has no tool .* Did you mean 'release'\?"
    ):
        trace.tool_calls("relase")
    with pytest.raises(BadInput, match=r"It has brief, claim, "):
        trace.tool_calls("zzz")


def test_the_events_of_each_job_are_found_with_one_look_at_each() -> None:
    trace = Trace(profile="1.4", seed=1)
    for number in range(3):
        for name in ("a", "b"):
            trace.add(StepStarted(float(number), name, number))
        assert [event.job for event in trace.of_job("a")] == ["a"] * (number + 1)
    trace.resume([StepStarted(9.0, "b", 1)])
    assert [list(trace.of_job(name)) for name in ("a", "b")] == [[], [StepStarted(9.0, "b", 1)]]
