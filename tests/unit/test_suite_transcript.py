"""A run as readable lines."""

from __future__ import annotations

from pathlib import Path

from statek_sim import trace as events
from statek_sim.suite.transcript import Line, formatted, transcript
from statek_sim.trace import Event
from tests.unit.suite_samples import claims


def test_a_run_reads_from_prompt_to_handler_without_repeating_itself(tmp_path: Path) -> None:
    lines = [(line.who, line.text) for line in transcript(claims(tmp_path).record.events)]
    assert lines[:6] == [
        ("job", "main: agent worker on gpt-4o"),
        ("user", "go on"),
        ("system", "You work."),
        ("assistant", "for n in range(2):\n    print(n)\n"),
        ("console", "0"),
        ("console", "1"),
    ]
    assert lines.count(("user", "go on")) == 1
    assert ("tool", "echo -> hello") in lines
    stop = "Maximum consecutive exceptions exceeded: 2/1"
    assert ("stopped", f"max_consecutive_exceptions: {stop}") in lines
    assert lines[-1][0] == "handler"


def test_only_one_job_and_what_concerns_none_are_told() -> None:
    trace: list[Event] = [
        events.ConsoleLine(0.0, "main", 0, "mine", None),
        events.ConsoleLine(0.0, "other", 0, "not mine", None),
        events.WorldChanged(1.0, "", "worker", "killed"),
    ]
    assert list(transcript(trace, job="main")) == [
        Line(0.0, "main", "console", "mine"),
        Line(1.0, "", "world", "worker: killed"),
    ]


def test_every_kind_of_event_can_be_told() -> None:
    kinds: list[Event] = [
        events.JobCreated(0.0, "a", "worker", "gpt-4o", "b"),
        events.StatusChanged(0.0, "a", "READY", "STARTED"),
        events.StepStarted(0.0, "a", 1),
        events.CodeExecuted(0.0, "a", "code", "warm = up()", "waiting"),
        events.Waiting(0.0, "a", "(0, 1)"),
        events.Released(0.0, "a"),
        events.ExitCalled(0.0, "a", "ok"),
        events.LLMReplied(0.0, "a", 1, 0, 0, 0, None, None, "", ()),
        events.RequestFailed(0.0, "a", 1, 1, "HTTP 429", 2.5),
        events.RequestFailed(0.0, "a", 1, 2, "HTTP 429", None),
        events.Delivered(0.0, "a", "hello", "a.png"),
        events.ToolReturned(0.0, "a", "claim", None, "ValueError: no"),
        events.HandlerRan(0.0, "a", "cleanup", "None", None, "RuntimeError: no"),
        events.Reactivated(0.0, "a", "message", 1),
        events.Notified(0.0, "a", "text", "look", True),
        events.SubtaskCompleted(0.0, "a", "part", None, "no"),
        events.SubtaskCompleted(0.0, "a", "part", "7", None),
        events.DifficultyRaised(0.0, "a", "L", 99),
    ]
    assert [f"{line.who}: {line.text}" for line in transcript(kinds)] == [
        "job: a: agent worker on gpt-4o, child of b",
        "code: warm = up()",
        "code: (waiting)",
        "job: waits in python_cli at (0, 1)",
        "job: the awaited future is ready",
        "exit: ok",
        "assistant: (empty)",
        "provider: HTTP 429 (retry in 2.5s)",
        "provider: HTTP 429 (gives up)",
        "delivered: hello [media a.png]",
        "tool: claim raised ValueError: no",
        "handler: cleanup(context=None, error=None), raised RuntimeError: no",
        "job: active again, by message",
        "notice: look (queued)",
        "subtask: part failed: no",
        "subtask: part -> 7",
        "job: difficulty is now L, at 99 tokens",
    ]


def test_console_output_in_a_box_is_not_told_twice() -> None:
    boxed = {"role": "user", "content": "<CONSOLE>\none\n</CONSOLE>"}
    asked = {"role": "user", "content": "one more thing"}
    trace: list[Event] = [
        events.ConsoleLine(0.0, "main", 0, "one", None),
        events.LLMRequested(0.0, "main", 1, 1, "gpt-4o", 10, 0, (boxed, asked)),
    ]
    assert [line.text for line in transcript(trace)] == ["one", "one more thing"]


def test_times_are_shown_when_they_change_and_long_texts_shortened() -> None:
    text = "\n".join(["x" * 200, *map(str, range(20))])
    lines = formatted(
        [Line(0.0, "a", "console", "1"), Line(0.0, "a", "console", "2"), Line(2.5, "b", "user", text)],
        name_jobs=True,
    )
    assert lines[:2] == ["     0s  a  console    1", "         a  console    2"]
    assert lines[2].startswith("   2.5s  b  user       xxx")
    assert len(lines) == 2 + 9
    assert lines[7].strip() == "... 13 more lines ..."
    assert max(map(len, lines)) < 130


def test_a_future_that_a_tool_returned_is_told_without_its_private_fields() -> None:
    shown = "Happening(deps=<Object>,state_num=0,_condition=None,event=<Object>)"
    trace: list[Event] = [events.ToolReturned(0.0, "a", "wait_for", shown, None)]
    assert [line.text for line in transcript(trace)] == ["wait_for -> a future"]


def test_where_a_job_waits_is_told_as_people_count() -> None:
    trace: list[Event] = [events.Waiting(0.0, "a", "0")]
    assert [line.text for line in transcript(trace)] == ["waits in statement 1"]
